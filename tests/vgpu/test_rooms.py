"""The virtual driver's folders: what its README names, and in which order headers include each other."""

from __future__ import annotations

import re
from pathlib import Path

import ffm.vgpu

DRIVER = next(path for folder in ffm.vgpu.__path__ if (path := Path(folder) / "driver").is_dir())
ROOMS = re.findall(r"^\| `driver/(\w+)/` \| \S", (DRIVER.parent / "README.md").read_text(), re.MULTILINE)
MOST_FILES = 25


def test_the_readme_has_a_sentence_for_each_folder() -> None:
    assert {folder.name for folder in DRIVER.iterdir() if folder.is_dir()} == set(ROOMS)


def test_no_folder_is_too_full_to_be_read() -> None:
    full = {folder for folder in DRIVER.rglob("*") if folder.is_dir() and len(files(folder)) > MOST_FILES}
    assert not full


def test_headers_include_only_those_of_their_own_folder_and_of_folders_named_before_it() -> None:
    """Sources may include all: a context that is destroyed frees its memory, and a copy may be captured in a graph."""
    wrong = [
        (header.name, name)
        for header in DRIVER.rglob("*.h")
        for name in re.findall(r'^#include "(\w+)/', header.read_text(), re.MULTILINE)
        if name in ROOMS and ROOMS.index(name) > ROOMS.index(header.relative_to(DRIVER).parts[0])
    ]
    assert not wrong


def files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file()]
