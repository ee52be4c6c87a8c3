"""The search tree of ranges against a plain list: ranges that overlap, added and removed in turn."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.layers import NATIVE, includes_of

ROOM = 400
MOST = 32


class Interval(ctypes.Structure):
    """`ffm_interval` of intervals.h."""

    _fields_ = (
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("furthest", ctypes.c_uint64),
        ("parent", ctypes.c_uint32),
        ("left", ctypes.c_uint32),
        ("right", ctypes.c_uint32),
    )


class Intervals(ctypes.Structure):
    """`ffm_intervals`."""

    _fields_ = (("nodes", ctypes.POINTER(Interval)), ("root", ctypes.c_uint32))


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library: Path = tmp_path_factory.mktemp("intervals") / "libintervals.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fsanitize=undefined",
            "-fno-sanitize-recover=all", *includes_of("base"), "-o", str(library), str(NATIVE / "base/intervals.c"),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(library))


ADDRESS = st.integers(0, 60)
CHANGE = st.tuples(ADDRESS, st.integers(1, 20), st.integers(0, 5))
"""Where a range starts, how long it is, and which of the present ones goes if it is 0."""


@given(st.lists(CHANGE, max_size=80), ADDRESS, st.integers(1, 12))
def test_what_overlaps_is_found(native: ctypes.CDLL, changes: list[tuple[int, int, int]], at: int, length: int) -> None:
    nodes = (Interval * (ROOM + 1))()
    tree = Intervals(nodes, 0)
    present: dict[int, tuple[int, int]] = {}
    for number, (start, size, chance) in enumerate(changes, 1):
        native.ffm_intervals_add(ctypes.byref(tree), number, ctypes.c_uint64(start), ctypes.c_uint64(start + size))
        present[number] = (start, start + size)
        if chance == 0:
            gone = sorted(present)[start % len(present)]
            native.ffm_intervals_remove(ctypes.byref(tree), gone)
            del present[gone]
    end = at + length
    expected = {number for number, (start, stop) in present.items() if start < end and at < stop}
    numbers = (ctypes.c_uint32 * MOST)()
    found = native.ffm_intervals_within(ctypes.byref(tree), ctypes.c_uint64(at), ctypes.c_uint64(end), numbers, MOST)
    if len(expected) > MOST:
        assert found == MOST + 1
    else:
        assert found == len(expected) and set(numbers[:found]) == expected
