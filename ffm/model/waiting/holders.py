"""Which thread held up a waiting one: the thread that it waited for, or the one that that thread waited for in turn."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Stretches

LONGEST_CHAIN = 16
"""So many threads are followed, each of which waits for the next; then the last of them counts. In damaged records,
threads can wait for each other in a circle.
"""


def on_holders(stretches: Stretches, meetings: Meetings) -> Stretches:
    """Return stretches of threads in the order of time, those parts in which a thread waited on the thread that came
    last. They cover the same time as before. O(n log n) for each thread of the longest chain.
    """
    if not (meetings.waited > 0).any():
        return stretches
    waits = _Waits(meetings)
    thread, begin, end = stretches.where, stretches.begin, stretches.end
    for _ in range(LONGEST_CHAIN):
        thread, begin, end, moved = waits.passed_on(thread, begin, end)
        if not moved:
            break
    order = np.argsort(begin, kind="stable")
    return Stretches.on_threads(thread[order], begin[order], end[order])


class _Waits:
    """When threads waited at meetings, and for whom."""

    def __init__(self, meetings: Meetings) -> None:
        waited = meetings.waited
        entries = np.flatnonzero(waited > 0)
        entries = entries[np.lexsort((meetings.came[entries], meetings.thread[entries]))]
        self._thread = meetings.thread[entries].astype(np.int32)
        self._begin = meetings.came[entries]
        self._end = self._begin + waited[entries]
        # A thread waits at one meeting at a time.
        same = self._thread[1:] == self._thread[:-1]
        self._end[:-1] = np.where(same, np.minimum(self._end[:-1], self._begin[1:]), self._end[:-1])
        self._holder = meetings.thread[meetings.last[meetings.number[entries]]].astype(np.int32)

    def passed_on(
        self, thread: NDArray[np.int32], begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], bool]:
        """Return stretches cut where their threads began or ended to wait, with the waits on whom these were for, and
        whether there are any.
        """
        order = np.argsort(thread, kind="stable")
        thread, begin, end = thread[order], begin[order], end[order]
        waiting = np.isin(thread, self._thread)
        if not waiting.any():
            return thread, begin, end, False
        parts = [(thread[~waiting], begin[~waiting], end[~waiting])]
        thread, begin, end = thread[waiting], begin[waiting], end[waiting]
        bounds = np.append(np.flatnonzero(np.append(True, thread[1:] != thread[:-1])), len(thread)).tolist()
        moved = False
        for first, last in itertools.pairwise(bounds):
            part, waits = self._cut(int(thread[first]), begin[first:last], end[first:last])
            parts.append(part)
            moved |= waits
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        lasts = columns[2] > columns[1]
        return columns[0][lasts], columns[1][lasts], columns[2][lasts], moved

    def _cut(
        self, thread: int, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]], bool]:
        """Do that for the stretches of one thread that waits."""
        first, last = np.searchsorted(self._thread, (thread, thread + 1))
        since, until, holder = (column[first:last] for column in (self._begin, self._end, self._holder))
        edges = np.column_stack((since, until)).reshape(-1)
        low = np.searchsorted(edges, begin, side="right")
        inside = np.maximum(np.searchsorted(edges, end) - low, 0)
        whole = np.repeat(np.arange(len(begin)), inside + 1)  # which stretch each piece is of
        place = np.arange(len(whole)) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)
        edge = low[whole] + place  # the next one, at which the piece ends unless its stretch ends before
        starts = np.where(place > 0, edges[(edge - 1).clip(0)], begin[whole])
        ends = np.where(place < inside[whole], edges[edge.clip(max=len(edges) - 1)], end[whole])
        waits = edge % 2 == 1
        who = np.where(waits, holder[(edge // 2).clip(max=len(holder) - 1)], np.int32(thread))
        return (who, starts, ends), bool(waits.any())
