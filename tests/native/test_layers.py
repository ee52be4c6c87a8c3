"""The code that enters programs lies in folders that see only those above them."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, layers

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
LIBRARIES_OF_THEIR_OWN = ("preload", "ranges")
"""Not layers: each of their libraries is compiled from files of the folder."""

MOST_FILES = 25


def folders() -> list[str]:
    """The folders with code."""
    return sorted({str(file.parent.relative_to(NATIVE)) for file in NATIVE.glob("*/**/*.c")})


def includes_in(file: Path) -> set[str]:
    """The names of our files that a file includes."""
    return set(re.findall(r'^#\s*include "([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE))


def sources(folder: str) -> list[Path]:
    return [file for file in (NATIVE / folder).iterdir() if file.suffix in {".c", ".h"}]


def included(folder: str) -> set[str]:
    """What files of a folder include of ours."""
    return set[str]().union(*(includes_in(file) for file in sources(folder)))


def test_each_folder_is_a_layer() -> None:
    assert folders() == sorted([*layers(), *LIBRARIES_OF_THEIR_OWN])


def test_a_layer_sees_only_those_above_it() -> None:
    above: list[str] = []
    for folder, seen in layers().items():
        assert set(seen) <= set(above), folder
        above.append(folder)


@pytest.mark.parametrize("folder", folders())
def test_files_include_only_what_their_layer_sees(folder: str) -> None:
    seen = (folder, *layers().get(folder, ("base",)))
    generated = {"catalogue.inc"}
    for name in included(folder) - generated:
        assert any((NATIVE / place / name).is_file() for place in seen), name


@pytest.mark.parametrize("folder", folders())
def test_no_files_of_a_folder_use_each_other_in_a_circle(folder: str) -> None:
    """A source and the header of its name count as one, so that a circle through declarations is seen as well."""
    uses: dict[str, set[str]] = {}
    for file in sources(folder):
        names = {name.rpartition(".")[0] for name in includes_in(file)}
        uses.setdefault(file.stem, set()).update(names - {file.stem})
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def test_a_header_has_one_place_in_what_a_layer_sees() -> None:
    for folder, seen in layers().items():
        names = [header.name for place in (folder, *seen) for header in (NATIVE / place).glob("*.h")]
        assert len(names) == len(set(names)), folder


@pytest.mark.parametrize("folder", folders())
def test_no_folder_is_too_full_to_be_read(folder: str) -> None:
    assert sum(entry.is_file() for entry in (NATIVE / folder).iterdir()) <= MOST_FILES


def test_the_architecture_has_a_sentence_for_each_folder() -> None:
    rows = re.findall(
        r"^\| `ffm/instrument/native/([^`]+)` \| \S", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [*layers(), *LIBRARIES_OF_THEIR_OWN]
