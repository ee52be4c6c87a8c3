"""The virtual driver's folders: what its README names, and in which order headers include each other."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import ffm.vgpu

DRIVER = next(path for folder in ffm.vgpu.__path__ if (path := Path(folder) / "driver").is_dir())
CODE = (".h", ".c", ".cpp", ".cu")
SEEN_BY_ALL = (
    DRIVER,
    DRIVER.parent / "include",
    DRIVER.parent / "samples/common",
    DRIVER.parent / "samples/fft/library",
)
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


def test_no_files_use_each_other_in_a_circle() -> None:
    """A source and the header of its name count as one, so that a circle through declarations is seen as well."""
    uses: dict[str, set[str]] = {}
    for file in DRIVER.parent.rglob("*"):
        if file.suffix in CODE:
            uses.setdefault(unit(file), set()).update({unit(name) for name in included(file)} - {unit(file)})
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def unit(file: Path) -> str:
    return file.relative_to(DRIVER.parent).with_suffix("").as_posix()


def included(file: Path) -> list[Path]:
    """The files of ours that a file includes, in the order in which the compiler looks for each."""
    names = re.findall(r'^#\s*include "([^"]+)"', file.read_text(), re.MULTILINE)
    return [
        next(path for folder in (file.parent, *SEEN_BY_ALL) if (path := (folder / name).resolve()).is_file())
        for name in names
    ]


def files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file()]
