"""Finds the calls between which the samples of a run were taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.results.columnar.columns import Columns


def calls_around(recording: Recording, process: int, columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each sample of a process, the rows of its thread's operations before and after it; -1 for none.

    `columns` are the operations of the run, by process, thread and start.
    """
    samples = recording.samples
    before, after = (np.full(len(samples), -1, np.int64) for _ in range(2))
    begin, end = np.searchsorted(columns["process"], (process, process + 1))
    threads = columns["thread"][begin:end]
    for thread in np.unique(samples.thread).tolist():
        first, last = begin + np.searchsorted(threads, (thread, thread + 1))
        mine = np.flatnonzero(samples.thread == thread)
        row = first + np.searchsorted(columns["number"][first:last], samples.operation[mine])
        before[mine] = np.where(row > first, row - 1, -1)
        after[mine] = np.where(row < last, row, -1)
    return before, after


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What threads that never call the driver did between the calls of one that does. Columns of equal length."""

    row: NDArray[np.int64]
    """The call before; another one of the same thread follows."""
    sample: NDArray[np.int64]
    """The sample's number in the recording."""
    nanoseconds: NDArray[np.int64]
    """Its share of the time in which such threads worked and the one that calls was not seen to."""


def work_meanwhile(recording: Recording, process: int, columns: Columns) -> Meanwhile:
    """Return what other threads did while those that call the driver were between two calls.

    A sample that stands for some processor time says that its thread worked for that long until then. Arguments as for
    `calls_around`.
    """
    samples = recording.samples
    begin, end = np.searchsorted(columns["process"], (process, process + 1))
    threads = columns["thread"][begin:end]
    callers = np.unique(threads)
    others = np.flatnonzero(~np.isin(samples.thread, callers))
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))]
    for thread in callers.tolist() if len(others) else []:
        first, last = begin + np.searchsorted(threads, (thread, thread + 1))
        start = columns["start"][first:last].astype(np.int64)
        over = start + columns["duration"][first:last].astype(np.int64)
        own = _within(samples.time, samples.nanoseconds, np.flatnonzero(samples.thread == thread), start, over)
        beside = _within(samples.time, samples.nanoseconds, others, start, over)
        both = _Stretches(*(np.concatenate(pair) for pair in zip(own.columns, beside.columns, strict=True)))
        alone = both.union(len(start)) - own.union(len(start))
        length = beside.end - beside.begin
        work = np.bincount(beside.gap, weights=length, minlength=len(start))[beside.gap]
        share = (length * alone[beside.gap] / np.maximum(work, 1)).astype(np.int64)
        found.append((first + beside.gap, beside.sample, share))
    return Meanwhile(*(np.concatenate(column) for column in zip(*found, strict=True)))


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Stretches of time within the gaps between a thread's calls. Columns of equal length."""

    gap: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    sample: NDArray[np.int64]

    @property
    def columns(self) -> tuple[NDArray[np.int64], ...]:
        return self.gap, self.begin, self.end, self.sample

    def union(self, gaps: int) -> NDArray[np.int64]:
        """Return how much of each gap the stretches cover together."""
        order = np.lexsort((self.begin, self.gap))
        end = self.end[order]
        reached = np.concatenate(([0], np.maximum.accumulate(end)[:-1])) if len(end) else end
        more = (end - np.maximum(self.begin[order], reached)).clip(0)
        return np.bincount(self.gap[order], weights=more, minlength=gaps).astype(np.int64)


def _within(
    time: NDArray[np.int64],
    nanoseconds: NDArray[np.int64],
    chosen: NDArray[np.int64],
    start: NDArray[np.int64],
    over: NDArray[np.int64],
) -> _Stretches:
    """Return for what time some samples stand that were taken between calls, which start and are over then."""
    gap = np.searchsorted(start, time[chosen], side="right") - 1
    inside = (gap >= 0) & (gap < len(start) - 1)
    inside &= time[chosen] > over[gap.clip(0)]
    chosen, gap = chosen[inside], gap[inside]
    begin = np.maximum(time[chosen] - nanoseconds[chosen], over[gap])
    return _Stretches(gap, begin, time[chosen], chosen)
