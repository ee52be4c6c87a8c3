"""Where a program on this machine would find the CUDA driver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAME = "libcuda.so.1"
"""What the CUDA runtime loads; the driver's SONAME."""

NOT_FOUND = f"the dynamic linker finds no {NAME}: install NVIDIA's driver, or set LD_LIBRARY_PATH to its folder"
"""Why there is no driver, and what to do."""

# Only loading it reveals what the dynamic linker finds: LD_LIBRARY_PATH, its cache and its own folders decide. This
# runs in a separate process because drivers do not unload cleanly.
_ASK = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
for line in open("/proc/self/maps"):
    path = line.split(maxsplit=5)[-1].strip()
    if "/libcuda.so" in path:
        print(path)
        break
"""


def find_driver(name: str = NAME) -> Path | None:
    """Return the file of the driver that the dynamic linker loads by `name`, or None if it finds none."""
    asked = subprocess.run([sys.executable, "-c", _ASK, name], capture_output=True, text=True, check=False)
    path = asked.stdout.strip()
    return Path(path) if asked.returncode == 0 and path else None
