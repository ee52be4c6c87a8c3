"""A disk that fills up, or fails, at the n-th operation: the library for it, and the environment that enables it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def build_full_disk(folder: Path) -> Path:
    """Compile the library to be preloaded into a folder."""
    library = folder / "full_disk.so"
    source = Path(__file__).with_name("full_disk.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def failing_disk(library: Path, folder: Path, at: int, error: int) -> dict[str, str]:
    """Return the environment in which file operations below `folder` fail from the operation `at` on."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAULT_FOLDER": str(folder.resolve()),
        "FAULT_AT": str(at),
        "FAULT_ERRNO": str(error),
    }
