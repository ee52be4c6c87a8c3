"""How much of the memory that kernels access is looked through for addresses, and how long that may take."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.native.layers import NATIVE, includes_of

NOTHING_NEW, UNKNOWN = 0, 2
MS = 1_000_000
PIECE = 1 << 20
SMALL = 1 << 12

BYTES = st.one_of(st.sampled_from([8, SMALL, PIECE, PIECE + 8]), st.integers(1, 1 << 34))
LAUNCH = st.tuples(st.integers(0, 200 * MS), st.integers(1, 20 * MS), st.integers(0, 2000), BYTES, st.booleans())


@dataclass
class Sought:
    """A program's launches, and the time from the first one on, in ns."""

    library: ctypes.CDLL
    passed: int = 0
    spent: int = 0

    def launch(self, later: int, cost: int, place: int, size: int, managed: bool) -> tuple[int, int]:
        """Return the answer for a block, and how many of its bytes were looked at."""
        looked, took = ctypes.c_uint64(), ctypes.c_uint64()
        stored = self.library.launch(
            ctypes.c_uint64(later), ctypes.c_uint64(cost), place, ctypes.c_uint64(size), int(managed),
            ctypes.byref(looked), ctypes.byref(took),
        )  # fmt: skip
        self.passed += later + took.value
        self.spent += took.value
        return stored, looked.value


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built: Path = tmp_path_factory.mktemp("stored") / "libstored.so"
    built.with_name("catalogue.inc").write_text(include_text(load_catalogue()))
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{built.parent}", *includes_of("watch/reach"),
            "-o", str(built), str(Path(__file__).with_name("stored_addresses.c")),
            str(NATIVE / "watch/reach/stored_addresses.c"),
        ],
        check=True,
    )  # fmt: skip
    return built


@pytest.fixture
def sought(library: Path, tmp_path: Path) -> Sought:
    copy = tmp_path / library.name
    copy.write_bytes(library.read_bytes())  # of its own: what was spent begins at 0
    return Sought(ctypes.CDLL(str(copy)))


def test_a_large_block_is_looked_at_to_its_end(sought: Sought) -> None:
    assert sought.launch(0, 10_000, 0, 100 * PIECE + 24, True) == (NOTHING_NEW, 100 * PIECE + 24)


def test_what_there_is_no_time_for_is_unknown(sought: Sought) -> None:
    stored, looked = sought.launch(0, 10 * MS, 0, 100 * PIECE, True)
    assert (stored, looked) == (UNKNOWN, 6 * PIECE)
    # It takes 1,000 ms, so it is not begun again before there is time for all of it.
    assert sought.launch(1000 * MS, 10 * MS, 0, 100 * PIECE, True) == (UNKNOWN, 0)
    assert sought.launch(20_000 * MS, 10 * MS, 0, 100 * PIECE, True) == (NOTHING_NEW, 100 * PIECE)


def test_small_pinned_blocks_are_looked_at_in_each_launch(sought: Sought) -> None:
    sought.launch(0, 200 * MS, 0, PIECE, True)
    for _ in range(100):
        assert sought.launch(0, 1, 1, SMALL, False) == (NOTHING_NEW, SMALL)


@given(data=st.data())
def test_looking_takes_a_bounded_share_of_the_time(library: Path, tmp_path_factory: pytest.TempPathFactory,
                                                   data: st.DataObject) -> None:  # fmt: skip
    copy = tmp_path_factory.mktemp("run") / library.name
    copy.write_bytes(library.read_bytes())
    sought, free = Sought(ctypes.CDLL(str(copy))), 0
    for later, cost, place, size, managed in data.draw(st.lists(LAUNCH, min_size=1, max_size=40)):
        before = sought.spent
        stored, looked = sought.launch(later if sought.passed else 0, cost, place, size, managed)
        assert (stored, looked == size) in [(NOTHING_NEW, True), (UNKNOWN, False)]
        if size <= PIECE:  # one of the first 16 looks, or small
            free += sought.spent - before
        assert sought.spent - free <= 50 * MS + sought.passed / 16 + cost
