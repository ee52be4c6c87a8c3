"""How many call stacks a process can tell apart, and what becomes of further ones."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.native.layers import NATIVE, includes_of
from tests.native.loading import LOADED_OFTEN, loaded_anew

MOST = 1 << 20
"""`FFM_MOST_STACKS`."""
WHOLE, INNER = (
    int(number) << 20
    for number in re.findall(r"(?:WHOLE|INNER) = (\d+) << 20", (NATIVE / "stacks" / "stacks.c").read_text())
)
"""Frames up to which stacks are recorded whole, and with their inner frames."""
INNER_FRAMES, INNERMOST_FRAMES = 12, 3


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The numbers of the collector's stacks, with nothing around them."""
    path = tmp_path_factory.mktemp("stacks") / "libstacks.so"
    parts = [NATIVE / "stacks" / f"{part}.c" for part in ("stacks", "interned", "described_stacks", "frame_tree")]
    sources = [*parts, Path(__file__).with_name("stacks_records.c")]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            LOADED_OFTEN, *includes_of("stacks"), "-o", str(path), *map(str, sources),
        ],
        check=True,
    )  # fmt: skip
    return path


class Stacks:
    """The stacks of one process."""

    def __init__(self, library: Path) -> None:
        self._native = loaded_anew(library)
        self._native.ffm_stacks_open()
        self._native.ffm_stack_number.restype = ctypes.c_uint32

    def numbers(self, stacks: np.ndarray) -> list[int]:
        """Return the number of each stack; shape (stacks, frames), innermost frame first."""
        stacks = np.ascontiguousarray(stacks, np.uint64)
        number, depth, size = self._native.ffm_stack_number, ctypes.c_uint32(stacks.shape[1]), stacks.strides[0]
        place = stacks.ctypes.data
        return [number(ctypes.c_void_p(place + index * size), depth) for index in range(len(stacks))]

    def frames(self, number: int, room: int = 192) -> list[int]:
        """Return the innermost frames of a stack, at most `room`."""
        found = (ctypes.c_uint64 * room)()
        return list(found[: self._native.ffm_stack_frames(ctypes.c_uint32(number), found, ctypes.c_uint32(room))])

    def record(self, takes: bool) -> None:
        """Let the recording take records, or not."""
        ctypes.c_bool.in_dll(self._native, "takes").value = takes

    def count(self, name: str) -> int:
        return ctypes.c_uint64.in_dll(self._native, name).value

    def fork(self) -> None:
        self._native.ffm_stacks_after_fork()


@pytest.fixture
def process(library: Path) -> Callable[[], Stacks]:
    return lambda: Stacks(library)


@pytest.mark.thorough
def test_a_million_stacks_are_told_apart_and_those_after_them_have_none(process: Callable[[], Stacks]) -> None:
    known = process()
    shown = np.stack([np.arange(1, MOST + 1), np.full(MOST, 7)], axis=1)
    numbers = known.numbers(shown)
    assert numbers == [*range(1, MOST), 0]  # 0 is the empty stack
    assert known.numbers(shown[::4099]) == numbers[::4099]
    assert known.count("recorded") == MOST
    assert known.numbers(shown[:5] + 10 * MOST) == [0] * 5


def test_a_million_places_of_a_search_are_told_apart_with_all_their_frames(process: Callable[[], Stacks]) -> None:
    """Stacks of a binary tree, whose inner frames are always the same: their chains have few frames."""
    known, levels = process(), 18
    left_or_right = np.arange(1 << levels)[:, None] >> np.arange(levels) & 1
    shown = np.concatenate([np.tile(np.arange(10, 16), (1 << levels, 1)), 100 + left_or_right], axis=1)
    numbers = known.numbers(shown)
    assert len(set(numbers)) == len(shown)
    assert known.count("recorded_frames") < len(shown) / 10
    for place in (0, 4711, len(shown) - 1):
        assert known.frames(numbers[place]) == shown[place].tolist()
        assert known.frames(numbers[place], room=9) == shown[place, :9].tolist()


@pytest.mark.thorough
def test_stacks_are_cut_when_their_chains_have_too_many_frames(process: Callable[[], Stacks]) -> None:
    known, depth = process(), 40
    whole = WHOLE // depth
    inside = np.arange(1, whole + 1001)[:, None]
    shown = np.arange(depth) << 32 | inside
    numbers = known.numbers(shown)
    assert len(set(numbers)) == len(numbers)
    assert known.count("recorded_frames") == whole * depth + 1000 * INNER_FRAMES
    # Those that differ in their outer frames only are one place.
    shown[-1000:, -1] += 1
    assert known.numbers(shown[-1000:]) == numbers[-1000:]
    # And when the inner frames are too many as well, the innermost stay.
    more = np.arange(10**6, 10**6 + (INNER - WHOLE) // INNER_FRAMES)[:, None]
    known.numbers(np.arange(depth) << 32 | more)
    before = known.count("recorded_frames")
    last = np.arange(depth) << 32 | np.arange(10**7, 10**7 + 100)[:, None]
    assert len(set(known.numbers(last))) == 100
    assert known.count("recorded_frames") - before == 100 * INNERMOST_FRAMES


def test_frames_that_could_not_be_recorded_keep_the_numbers_of_the_others(process: Callable[[], Stacks]) -> None:
    known = process()
    known.record(False)
    known.numbers(np.array([[1, 2, 3]]))
    known.record(True)
    known.numbers(np.array([[4, 2, 3]]))
    assert known.count("recorded_frames") == 6  # 1, 2, 3 without content; then 4, 2, 3


def test_a_forked_child_numbers_its_stacks_anew(process: Callable[[], Stacks]) -> None:
    known = process()
    shown = np.arange(1, 50_001)[:, None]
    first = known.numbers(shown)
    known.fork()
    assert known.numbers(shown[::-1]) == first
    assert known.count("recorded") == 2 * (1 + len(first))
