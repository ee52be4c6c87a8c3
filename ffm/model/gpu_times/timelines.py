"""The timelines of the GPU that the inference yields (`ffm.model.gpu_times.inference`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

ENDLESS_NS = 1 << 50
"""Expected duration, in the slow timeline, of work that nothing ever waited for; waits shorten it to what is possible.
"""


@dataclass(frozen=True, slots=True)
class GpuTimes:
    """One timeline of the GPU. Columns parallel to those of the timeline, in nanoseconds."""

    gpu: NDArray[np.int64]
    """How long the GPU does the work that the row enqueued; 0 for rows that enqueue nothing."""
    ready: NDArray[np.int64]
    """When all work of the process that was enqueued before the row is done."""
    latency: NDArray[np.int64]
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
        return replace(self, ready=nothing, latency=nothing)


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
