"""Builds `stub_library.c` in several ways, and says where its functions are."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
WITHOUT_UNWIND_TABLES = (
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-nostartfiles",
    "-Wl,--no-eh-frame-hdr",
)


@dataclass(frozen=True, slots=True)
class Built:
    path: Path
    """The stripped library."""
    functions: dict[str, tuple[int, int]]
    """Start and size of every function, including internal ones."""


def build(folder: Path, *options: str) -> Built:
    """Compile the library into `folder`, with `options` after the usual flags."""
    library = folder / "libstub.so"
    subprocess.run(["gcc", *FLAGS, *options, "-o", str(library), str(SOURCE)], check=True)
    text = subprocess.run(["nm", "-S", str(library)], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    functions = {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "tT"}
    subprocess.run(["strip", str(library)], check=True)
    return Built(library, functions)
