"""The timelines of the GPU that the inference yields (`ffm.model.gpu_times.inference`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.grouping import parts

ENDLESS_NS = 1 << 50
"""Expected duration, in the slow timeline, of work that nothing ever waited for; waits shorten it to what is possible.
"""

LONG_OVER_NS = 1 << 30
"""Work that was over so long before a call counts as over for no longer: it delays nothing any more."""

Times = NDArray[np.int64] | NDArray[np.int32]

SHORT = np.iinfo(np.int32)
"""What times are stored as, if all of a run fit."""


def fits(column: Times) -> bool:
    """Return whether all numbers of a column fit in 32 bits."""
    if column.dtype == SHORT.dtype:
        return True
    return all(column[part].min() >= SHORT.min and column[part].max() <= SHORT.max for part in parts(len(column)))


def shortened(column: Times) -> Times:
    """Turn a column whose numbers all fit in 32 bits into one of these, in its own memory if it has any, of which half
    becomes free.
    """
    if column.dtype == np.int32 or not column.flags.owndata:
        return np.asarray(column, np.int32)
    count = len(column)
    short = column.view(np.int32)[:count]
    for part in parts(count):
        short[part] = column[part]
    del short  # resizing may move what it is a view of
    column.resize((count + 1) // 2, refcheck=False)
    return column.view(np.int32)[:count]


def packed(column: Times) -> Times:
    """Turn a column into one of 32 bits, as `shortened` does, if all of its numbers fit."""
    return shortened(column) if fits(column) else column


@dataclass(frozen=True, slots=True)
class GpuTimes:
    """One timeline of the GPU. Columns parallel to those of the timeline, in nanoseconds."""

    gpu: Times
    """How long the GPU does the work that the row enqueued; 0 for rows that enqueue nothing."""
    left: Times
    """From the start of the row's call until all work of the process is done that was enqueued before; negative if it
    was done by then, but not below -`LONG_OVER_NS`.
    """
    latency: Times
    """From the end of the work until the waiting CPU continues; -1 - wait if the reason for the wait is unknown."""
    explained: int
    """How much of all waiting this timeline explains."""
    waited: int
    """All waiting."""
    pause: int = 0
    """From the end of a stream's work to the begin of the next if that is queued."""

    def work_alone(self) -> GpuTimes:
        """Return the same without what only a replay needs, which takes two thirds of the memory."""
        nothing = np.empty(0, np.int64)
        return replace(self, left=nothing, latency=nothing)

    def short(self) -> GpuTimes:
        """Return the same in 32 bits if all numbers fit, and otherwise as it is."""
        return self.of_type(np.int32) if all(map(fits, (self.gpu, self.left, self.latency))) else self

    def of_type(self, kind: type[Any]) -> GpuTimes:
        """Return the same with columns of a type."""
        gpu, left, latency = (np.asarray(one, kind) for one in (self.gpu, self.left, self.latency))
        return replace(self, gpu=gpu, left=left, latency=latency)


@dataclass(frozen=True, slots=True)
class GuessedTotals:
    """The work of which neither events, nor waits for it or for enough equal work, show how long it takes: the likely
    timeline is a guess there, and the other two say how far it may be wrong. Nanoseconds.
    """

    count: int
    least: int
    likely: int
    most: int | None
    """None if nothing limits it."""

    @classmethod
    def of(cls, rows: NDArray[np.int64], fast: GpuTimes, likely: GpuTimes, slow: GpuTimes) -> GuessedTotals:
        """Add up the times of rows with such work in the three timelines."""
        least, usual, most = (int(times.gpu[rows].sum()) for times in (fast, likely, slow))
        return cls(len(rows), least, usual, most if most < ENDLESS_NS // 2 else None)


@dataclass(frozen=True, slots=True)
class Inference:
    """The three timelines."""

    order: NDArray[np.int64]
    """In which their rows are visited: by process, then by when each acts on the GPU, as in `ffm.model.visits`."""
    likely: GpuTimes
    slow: GpuTimes
    fast: GpuTimes
    latency_ns: int
    """The usual time in this run from the end of the GPU's work until the CPU continues."""
    waking_ns: int
    """How much of a latency at most is the waking of the thread, in the fast timeline. During the rest, the GPU may not
    have been done yet.
    """
    fastest: GpuTimes | None = None
    """The fastest timeline that a trace without measured times allows: any wait may have ended late. None if it was not
    asked for.
    """

    guessed: GuessedTotals | None = None
    """None if it is not known."""

    def of_one_type(self) -> Inference:
        """Return the same with timelines in 32 bits if all fit, so that passes are compiled once for all of them."""
        likely, slow, fast = (times.short() for times in (self.likely, self.slow, self.fast))
        fastest = None if self.fastest is None else self.fastest.short()
        if any(times is not None and times.gpu.dtype != np.int32 for times in (likely, slow, fast, fastest)):
            likely, slow, fast = (times.of_type(np.int64) for times in (likely, slow, fast))
            fastest = None if fastest is None else fastest.of_type(np.int64)
        return replace(self, likely=likely, slow=slow, fast=fast, fastest=fastest)

    def work_alone(self) -> Inference:
        """As `GpuTimes.work_alone`, of the three timelines."""
        likely, slow, fast = (times.work_alone() for times in (self.likely, self.slow, self.fast))
        return replace(self, likely=likely, slow=slow, fast=fast, fastest=None)

    def if_anything_is_late(self) -> Inference:
        """Return the same with the fastest timeline as the fast one."""
        assert self.fastest is not None, "it was not inferred"
        return replace(self, fast=self.fastest, waking_ns=ENDLESS_NS, fastest=None)

    def likely_alone(self) -> Inference:
        """Return the same with the likely timeline in place of the others."""
        return replace(self, slow=self.likely, fast=self.likely, fastest=None)
