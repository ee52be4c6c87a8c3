"""Blocks of a test that may wait for the GPU a limited number of times: `with gpu_waits(max=3):`.

The process notes when each block began and ended, since only the trace shows how often the program waited in between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

GpuWaits = Callable[..., AbstractContextManager[None]]
"""What the fixture is: `gpu_waits(max=3)` is a context manager."""


class Block(NamedTuple):
    """What a test said about one of its blocks. Times in nanoseconds of `CLOCK_MONOTONIC`."""

    most: int
    begin: int
    end: int
    where: str
    """The file's name and the line, `test_solver.py:57`."""


def noting_blocks(notes: Path | None, place: Callable[[], str]) -> GpuWaits:
    """Return what the fixture is in a process; `notes` is the file for its blocks, None if nobody traces.

    `place` says where it is called.
    """

    def gpu_waits(*, max: int) -> AbstractContextManager[None]:
        if not is_count(max):
            raise TypeError("write `gpu_waits(max=3)`: it takes a number of waits.")
        return nullcontext() if notes is None else _noted(notes, max, place())

    return gpu_waits


def read_blocks(notes: Path) -> list[Block]:
    """Return the blocks that a traced process noted."""
    if not notes.exists():
        return []
    return [Block(*json.loads(line)) for line in notes.read_text().splitlines()]


def is_count(value: object) -> bool:
    """Return whether a value is a number of waits."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@contextmanager
def _noted(notes: Path, most: int, where: str) -> Iterator[None]:
    begin = time.monotonic_ns()
    try:
        yield
    finally:
        end = time.monotonic_ns()
        with notes.open("a") as file:
            file.write(json.dumps(Block(most, begin, end, where)) + "\n")
