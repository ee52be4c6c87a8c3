"""Which threads follow which: whose gaps end soon after the waits of another thread do (`ffm.model.thread_relations`).

Threads are compared in blocks, each of which takes a few steps over columns, however many threads there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.grouping import PART_ROWS, ranks_within
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import WORTH_FOLLOWING_NS

FOLLOWED_OFTEN = 10
"""This many gaps must end with another thread's waits before that is more than chance."""

LEADERS_TRIED = 16
"""If more threads of a process could lead a thread, these are tried: those whose waits most often end shortly before
its gaps do.
"""

MOST_OF_THEM = 0.5
"""More than this share of a thread's gaps must end soon after the waits of the thread that it follows."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """When the waits of threads end that may lead others. Columns of shape (leaders,) or (waits,)."""

    thread: NDArray[np.int64]
    """Each leader, ascending. Its place here is its number."""
    first: NDArray[np.int64]
    """The first of its waits in `end`."""
    soon: NDArray[np.float64]
    """Nanoseconds after a wait that are soon: a quarter of the mean time between two."""
    end: NDArray[np.int64]
    """By leader, ascending for each."""
    key: NDArray[np.int64]
    """Of each in `end`, ascending: its place in `every`, plus its leader's number times the waits plus one."""
    every: NDArray[np.int64]
    """All ends, ascending."""
    whose: NDArray[np.int64]
    """The number of the leader of each in `every`."""

    @classmethod
    def of(cls, ends: dict[int, NDArray[np.int64]]) -> _Waits:
        """Return the waits of some threads, ascending, with at least two ends each."""
        count = np.array([len(over) for over in ends.values()])
        end, whose = np.concatenate(list(ends.values())), np.repeat(np.arange(len(count)), count)
        by_end = np.argsort(end, kind="stable")
        rank = np.empty(len(end), np.int64)
        rank[by_end] = np.arange(len(end))
        last = np.cumsum(count) - 1
        first = last + 1 - count
        soon = (end[last] - end[first]) / (count - 1) / 4
        return cls(np.array(list(ends)), first, soon, end, whose * (len(end) + 1) + rank, end[by_end], whose[by_end])

    def last_before(self, leader: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the last place in `end` of a leader's waits among the first `before` in `every`; one before its first
        if there is none.
        """
        return np.searchsorted(self.key, leader * (len(self.every) + 1) + before) - 1


def find_leaders(
    timeline: Timeline, begins: NDArray[np.int64], members: NDArray[np.int64], follows: NDArray[np.int32]
) -> None:
    """Fill in which thread each thread of a process follows: the one with whose waits most of its gaps end.

    They end soon after one of its waits: within a quarter of the mean time between these. By chance, a quarter of the
    gaps would.

    Args:
        timeline: the operations, sorted by thread, then start.
        begins: the first row of each thread, and the number of rows; shape (threads + 1,).
        members: the threads of the process, ascending.
        follows: receives the threads that are followed; shape (threads,).
    """
    ends: dict[int, NDArray[np.int64]] = {}
    for thread in members.tolist():
        rows = slice(begins[thread], begins[thread + 1])
        waits = timeline.wait[rows] > WORTH_FOLLOWING_NS
        over = (timeline.start[rows] + timeline.duration[rows])[waits]
        if len(over) >= FOLLOWED_OFTEN:
            ends[thread] = over
    if not ends:
        return
    leaders = _Waits.of(ends)
    for threads, moments in _blocks(timeline, begins, members):
        follows[threads] = _leaders_of(leaders, np.array(threads), moments)


def _blocks(
    timeline: Timeline, begins: NDArray[np.int64], members: NDArray[np.int64]
) -> Iterator[tuple[list[int], list[NDArray[np.int64]]]]:
    """Return some threads at a time, and when their gaps end that are worth following; ascending for each."""
    threads: list[int] = []
    moments: list[NDArray[np.int64]] = []
    total = 0
    for thread in members.tolist():
        rows = slice(begins[thread], begins[thread + 1] - 1)
        goes_on = timeline.start[begins[thread] + 1 : begins[thread + 1]][timeline.gap[rows] > WORTH_FOLLOWING_NS]
        if len(goes_on) < FOLLOWED_OFTEN:
            continue
        threads.append(thread)
        moments.append(goes_on)
        total += len(goes_on)
        if total >= PART_ROWS:
            yield threads, moments
            threads, moments, total = [], [], 0
    if threads:
        yield threads, moments


def _leaders_of(waits: _Waits, threads: NDArray[np.int64], moments: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the thread soon after whose waits' ends most moments of each thread are, -1 if there is none."""
    count = np.array([len(goes_on) for goes_on in moments])
    moment = np.concatenate(moments)
    before = np.searchsorted(waits.every, moment)
    follower, leader = _tried(waits, before, count)
    another = np.flatnonzero(threads[follower] != waits.thread[leader])
    another = another[np.argsort(leader[another], kind="stable")]  # so that searches are in places close to each other
    follower, leader = follower[another], leader[another]
    found = np.full(len(threads), -1, np.int64)
    if not len(leader):
        return found
    share = np.empty(len(leader))
    for piece in _pieces(count[follower]):
        share[piece] = _shares(waits, moment, before, count, follower[piece], leader[piece])
    best = np.lexsort((leader, -share, follower))
    best = best[ranks_within(follower[best], len(threads)) == 0]
    best = best[share[best] > MOST_OF_THEM]
    found[follower[best]] = waits.thread[leader[best]]
    return found


def _tried(
    waits: _Waits, before: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of threads and leaders that are tried: of each thread, those whose waits are most often among the
    last to end before its moments.

    `before` is how many waits end before each moment, and `count` how many moments each thread has.
    """
    threads, leaders = len(count), len(waits.thread)
    if leaders <= LEADERS_TRIED:
        return np.repeat(np.arange(threads), leaders), np.tile(np.arange(leaders), threads)
    last = before[:, None] - 1 - np.arange(LEADERS_TRIED)
    pair = np.repeat(np.arange(threads) * leaders, count)[:, None] + waits.whose[last.clip(0)]
    pairs, times = np.unique(pair[last >= 0], return_counts=True)
    follower, leader = np.divmod(pairs, leaders)
    order = np.lexsort((-times, follower))
    order = order[ranks_within(follower[order], threads) < LEADERS_TRIED]
    return follower[order], leader[order]


def _pieces(size: NDArray[np.int64]) -> list[slice]:
    """Return slices of pairs with so many moments each, of which the columns fit into a processor's cache if those of
    one pair do.
    """
    ends = np.append(np.flatnonzero(np.diff(np.cumsum(size) // PART_ROWS)) + 1, len(size)).tolist()
    return [slice(begin, end) for begin, end in itertools.pairwise([0, *ends])]


def _shares(
    waits: _Waits,
    moment: NDArray[np.int64],
    before: NDArray[np.int64],
    count: NDArray[np.int64],
    follower: NDArray[np.int64],
    leader: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return, for each pair, how many of the follower's moments that are after any wait of the leader are soon after
    one, as a share.
    """
    size = count[follower]
    begin = np.cumsum(size) - size
    first = np.cumsum(count) - count
    row = np.arange(size.sum()) + np.repeat(first[follower] - begin, size)
    of = np.repeat(leader, size)
    last = waits.last_before(of, before[row])
    after = last >= waits.first[of]
    soon = after & (moment[row] - waits.end[last.clip(0)] < waits.soon[of])
    share: NDArray[np.float64] = np.add.reduceat(soon, begin, dtype=np.float64)
    share /= np.add.reduceat(after, begin, dtype=np.int64).clip(1)
    return share
