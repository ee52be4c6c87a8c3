"""The folders of the code that enters programs, as CMake compiles them."""

from __future__ import annotations

import re
from pathlib import Path

import ffm.instrument

NATIVE = next(Path(folder) / "native" for folder in ffm.instrument.__path__ if (Path(folder) / "native").is_dir())


def layers() -> dict[str, tuple[str, ...]]:
    """Return each folder below `NATIVE`, with the folders whose headers it sees besides its own, in CMake's order."""
    text = (NATIVE / "CMakeLists.txt").read_text(encoding="utf-8")
    lists = {name: words.split() for name, words in re.findall(r"^set\((\w+) ([^)]*)\)", text, re.MULTILINE)}
    found = {}
    for arguments in re.findall(r"^ffm_layer\(([^)]*)\)", text, re.MULTILINE):
        folder, *seen = arguments.split()
        found[folder] = tuple(
            name for word in seen for name in (lists[word[2:-1]] if word.startswith("${") else [word])
        )
    return found


def sources_of(folder: str) -> list[Path]:
    """Return the files that a folder and the folders it sees are compiled from."""
    return [source for name in (*layers()[folder], folder) for source in sorted((NATIVE / name).glob("*.c"))]


def includes_of(folder: str) -> list[str]:
    """Return the compiler's options with which a folder's headers, and those it sees, are found."""
    return [f"-I{NATIVE / name}" for name in (folder, *layers()[folder])]
