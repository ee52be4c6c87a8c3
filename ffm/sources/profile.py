"""What a profiler recorded of a run: calls of the CUDA runtime and driver, and what the GPU did for them.

Nsight Systems and PyTorch record the same facts in different files. Their readers fill these tables, and
`ffm.sources.profiled` turns the tables into what the model works on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.results.documents.notes import AnyNote, UnlaunchedWork
from ffm.sources.partners import Partners

_VERSION = re.compile(r"_(?:v\d+|ptsz|ptds)+$")

NO_STREAM = -1

CUPTI_NONE = (1 << 32) - 1
"""CUPTI's number of a stream or an event that does not exist."""
CUPTI_DEFAULT_STREAM = 7
"""CUPTI's number of the default stream."""


class Place(IntEnum):
    """Where the bytes of a copy come from or go to."""

    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2
    DEVICE = 3
    MANAGED = 4


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls, sorted by process, thread and start; calls within calls are left out. Times in nanoseconds."""

    process: NDArray[np.int64]
    thread: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.int64]
    """Index into `Profile.names`."""
    chain: NDArray[np.int64]
    """Index into `Profile.chains`; -1 if the call stack is unknown."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Work:
    """What the GPU did. Times in nanoseconds, on the same clock."""

    call: NDArray[np.int64]
    """The row of the call that put it on its stream."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    stream: NDArray[np.int64]
    """Index into `Profile.streams`."""
    name: NDArray[np.int64]
    """Of a kernel: index into `Profile.names`; -1 for copies and sets."""
    bytes: NDArray[np.int64]
    source: NDArray[np.uint8]
    """A value of `Place`."""
    destination: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Waits:
    """What calls wait for, or record, as far as the profiler says: one row for each such call."""

    call: NDArray[np.int64]
    stream: NDArray[np.int64]
    """Index into `Profile.streams`; `NO_STREAM` if none is named."""
    event: NDArray[np.int64]
    """A number of the event; -1 if none is named."""
    device: NDArray[np.int64]
    """The number, in the process, of the device of the call's context; -1 if that is unknown."""


@dataclass(frozen=True, slots=True)
class Unlaunched:
    """What the GPU did for calls that were not recorded, such as those before the profiler began. It has no row in the
    timeline, but waits may be for it.
    """

    process: NDArray[np.int64]
    stream: NDArray[np.int64]
    """Index into `Profile.streams`."""
    end: NDArray[np.int64]

    @classmethod
    def none(cls) -> Unlaunched:
        """Return that all of the GPU's work belongs to calls."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.end)

    @property
    def notes(self) -> list[AnyNote]:
        """Return what a reader must know of it."""
        return [UnlaunchedWork(pieces=len(self))] if len(self) else []


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, which belongs to a process (its number in the file)."""

    process: int
    legacy: bool
    """Whether it is the default stream, which orders all others of its process."""
    device: int = -1
    """The number of its device in the process; -1 if that is unknown."""


FrameRow = tuple[str, str, str, int]
"""A frame of a call stack: function, module, file and line, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A call stack, innermost first."""

    frames: tuple[FrameRow, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """An iteration that the program marked; all threads of its process work on it. Nanoseconds."""

    name: str
    process: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One profiled run."""

    application: str
    recorded_by: str
    names: list[str]
    calls: Calls
    work: Work
    waits: Waits
    streams: list[Stream]
    chains: list[Chain] = field(default_factory=list)
    unlaunched: Unlaunched = field(default_factory=Unlaunched.none)
    partners: Partners | None = None
    """What calls waited for from other threads; None if the profiler does not tell."""
    steps: list[Step] = field(default_factory=list)
    notes: list[AnyNote] = field(default_factory=list)
    lines: bool = True
    """Whether it was recorded so that stacks name lines of the program."""


def plain_name(name: str) -> str:
    """Return a call's name without the version of its interface: `cudaFree_v3020` is `cudaFree`."""
    return _VERSION.sub("", name)


def outermost(
    process: NDArray[np.int64], thread: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort calls, and find those that are not within another call of their thread.

    A call of the runtime contains calls of the driver, and some versions of Nsight Systems list a call twice.

    Returns:
        The rows of the outermost calls, sorted by process, thread and start; and, for each row of the input, which of
        these contains it.
    """
    order = np.lexsort((-end, start, thread, process))
    outer = np.ones(len(order), bool)
    changes = np.flatnonzero((np.diff(process[order]) != 0) | (np.diff(thread[order]) != 0)) + 1
    for rows in np.split(np.arange(len(order)), changes):
        ends = end[order[rows]]
        before = np.maximum.accumulate(ends)[:-1]
        # In whole microseconds, a call can seem to take no time, at the end of the one before it.
        outer[rows[1:]] = (ends[1:] > before) | (start[order[rows[1:]]] >= before)
    holder = np.empty(len(order), np.int64)
    holder[order] = np.cumsum(outer) - 1
    return order[outer], holder
