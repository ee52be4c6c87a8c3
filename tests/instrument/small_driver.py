"""Builds `small_driver.c` in one of its shapes."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("small_driver.c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
WITHOUT_UNWIND_TABLES = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,--no-eh-frame-hdr")


def build(folder: Path, *options: str, strip: bool = True) -> Path:
    """Compile the driver with `options` into `folder`; return the path of the library."""
    library = folder / "libcuda.so.1"
    subprocess.run(["gcc", *FLAGS, *options, "-o", str(library), str(SOURCE)], check=True)
    if strip:
        subprocess.run(["strip", str(library)], check=True)
    return library


def addresses(folder: Path, *options: str) -> dict[str, int]:
    """Return the address of every function of the shape `options`, including internal ones."""
    symbols = folder / "symbols"
    symbols.mkdir()
    library = build(symbols, *options, strip=False)
    text = subprocess.run(["nm", str(library)], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3 and row[1] in "tT"}
