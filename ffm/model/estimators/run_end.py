"""How much earlier a run ends if each of its threads does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, run
from ffm.model.device import DeviceWork
from ffm.model.thread_relations import sharing_sites
from ffm.model.thread_relations_kernels import Family
from ffm.model.timeline import NANOSECONDS_IN_SECOND, Timeline

Columns = NDArray[Any]


class RunEnd:
    """The end of a run. Threads, and processes, that share a call site run the same code side by side: the last of
    these to end counts.
    """

    def __init__(self, timeline: Timeline, work: DeviceWork, family: Family) -> None:
        self._ends = _thread_ends(timeline, len(work.process_of_thread))
        of_thread = work.process_of_thread.astype(np.int64)
        self._whole = None
        if work.encounters is not None:
            self._whole = _Sets(np.arange(len(of_thread)), np.zeros(len(of_thread), np.int64))
            self._ends = _told_ends(timeline, self._ends)
        threads = np.arange(len(of_thread))
        self._by_process = _Sets(threads, of_thread)
        roots = threads[family.parent < 0]
        self._roots = _Sets(roots, of_thread[roots] * (len(threads) + 1) + family.alike[roots])
        self._process_of_set = of_thread[self._roots.first]
        processes = np.arange(work.processes)
        together = processes
        if work.processes > 1 and len(timeline):
            together = sharing_sites(of_thread[timeline.thread], timeline.site, work.processes).astype(np.int64)
        self._together = _Sets(processes, together)
        self._processes = work.processes

    def savings(self, early: NDArray[np.int64]) -> tuple[float, float, float]:
        """Return the seconds by which the run ends earlier (at least, likely, at most) if each thread does by its own
        nanoseconds, shape (threads,).

        At least: determined by each process's last thread to end and, among processes, by the slowest. Likely: the
        largest saving of any threads, or processes, that run the same code, but no less than what each process's last
        thread saves. At most: the largest of any thread. If a profiler recorded who waits for whom, all three are what
        the last thread of all saves.
        """
        if self._whole is not None:
            saved = max(int(self._whole.sooner(self._ends, early)[0]), 0) / NANOSECONDS_IN_SECOND
            return saved, saved, saved
        at_least = self._by_process.sooner(self._ends, early)
        least = np.iinfo(np.int64).min
        likely, over = np.full(self._processes, least), np.zeros(self._processes, np.int64)
        np.maximum.at(likely, self._process_of_set, self._roots.sooner(self._ends, early))
        np.maximum.at(likely, self._by_process.number, at_least)  # the last may be a thread that no row joins
        likely[likely == least] = 0  # a process that made no call, such as the parent of the one that did
        over[self._by_process.number] = self._by_process.latest(self._ends)
        most = int(self._together.sooner(over, likely).max())
        return (
            max(int(at_least.min()), 0) / NANOSECONDS_IN_SECOND,
            max(most, 0) / NANOSECONDS_IN_SECOND,
            max(int(early.max()), most, 0) / NANOSECONDS_IN_SECOND,
        )


class _Sets:
    """Sets of threads or processes: `members`, shape (n,), and the number of each one's set."""

    def __init__(self, members: NDArray[np.int64], number: NDArray[np.int64]) -> None:
        order = np.argsort(number, kind="stable")
        self._members = members[order]
        self._begins = np.flatnonzero(np.diff(number[order], prepend=-1))
        self.first = self._members[self._begins]
        """A member of each set."""
        self.number = number[order][self._begins]

    def latest(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the latest time in each set."""
        return np.asarray(np.maximum.reduceat(time[self._members], self._begins), np.int64)

    def sooner(self, ends: NDArray[np.int64], early: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how much earlier the last of each set ends if each ends earlier by its own time."""
        return self.latest(ends) - self.latest(ends - early)


def _told_ends(timeline: Timeline, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when threads end if a profiler recorded what they wait for: all but one with their last call.

    What happens in the gap after that is known only for the thread with which the run, and its path, ends.
    """
    calls = np.zeros_like(ends)
    np.maximum.at(calls, timeline.thread, timeline.start + timeline.duration)
    if len(ends):
        calls[int(np.argmax(ends))] = ends.max()
    return calls


def _thread_ends(timeline: Timeline, threads: int) -> NDArray[np.int64]:
    """Return when each thread's last operation, and the gap after it, are over."""
    ends = np.zeros(threads, np.int64)
    run(_end_last, len(timeline), timeline.thread, timeline.start, timeline.duration, timeline.gap, ends)
    return ends


def _end_last(thread: Columns, start: Columns, duration: Columns, gap: Columns, ends: Columns) -> None:
    """Let each thread end no earlier than its rows, with the gaps after them; in the Python that Numba compiles."""
    for row in range(len(thread)):
        one = index(thread[row])
        ends[one] = max(ends[one], start[row] + duration[row] + gap[row])
