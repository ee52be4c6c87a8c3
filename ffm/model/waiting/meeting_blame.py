"""What is to blame when threads wait for each other at meetings (Dietrich 2019, 5.3 and 5.4.2).

The waiting is blamed on what the last thread to arrive did since it left its previous meeting, by how long each part
took. If that thread itself waited meanwhile, this part of the blame can be passed on, to the meeting or to the GPU work
that it waited for (there, 5.3.3). Blame that is passed on ends at work. It still adds up to the waiting that was found.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import Graph
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Part, Path, path_on_threads


@dataclass(frozen=True, slots=True)
class Shared:
    """The waiting at meetings, shared among what caused it. Nanoseconds."""

    pieces: Path
    """What the last ones did. Not a path: the pieces of different threads overlap."""
    meeting: NDArray[np.int64]
    """The meeting that each piece delayed."""
    blame: NDArray[np.float64]
    """Of each piece."""
    on_wait: NDArray[np.float64]
    """What is passed on to the GPU work that a row waited for, shape (rows,); empty if nothing is passed on."""
    on_meeting: NDArray[np.float64]
    """What stays with waiting at each other meeting; zeros if it is passed on."""


def share_meetings(
    timeline: Timeline, work: DeviceWork, graph: Graph, meetings: Meetings, *, pass_on: bool = False
) -> Shared:
    """Blame the waiting at meetings on what the last ones did; if `pass_on`, not on their own waiting.

    O(n log n), for as many meetings and waits that overlap with what the last ones did.
    """
    last, waited = meetings.last, meetings.waited
    pool = np.bincount(meetings.number, weights=waited, minlength=len(last))
    stays = np.zeros(len(last))
    on_wait = np.zeros(len(timeline) if pass_on else 0)
    own = _own_waits(meetings, waited)
    stretches = [_Stretch(number, meetings, int(entry), own) for number, entry in enumerate(last.tolist())]
    owner = np.array([one.meeting for one in stretches for _ in one.busy], np.int64)
    begin, end = (np.array([busy[side] for one in stretches for busy in one.busy], np.int64) for side in range(2))
    pieces = path_on_threads(timeline, work, graph, meetings.thread[last][owner], begin, end)
    lasting = pieces.end - pieces.begin
    stretch = np.searchsorted(np.cumsum(end - begin), np.cumsum(lasting) - lasting, side="right")
    meeting = owner[stretch] if len(owner) else stretch
    on_gpu = _waiting_for_gpu(timeline, work, graph, pieces) if pass_on else np.zeros(len(lasting), np.int64)
    of_meeting = np.searchsorted(meeting[np.argsort(meeting, kind="stable")], np.arange(len(last) + 1))
    by_meeting = np.argsort(meeting, kind="stable")
    busy = lasting - on_gpu
    blame = np.zeros(len(lasting))
    for number in np.argsort(meetings.came[last], kind="stable")[::-1].tolist():
        entry = int(last[number])
        whole = int(meetings.came[entry] - meetings.since[entry])
        if whole <= 0 or pool[number] <= 0:
            stays[number] += pool[number]
            continue
        share = pool[number] / whole
        mine = by_meeting[of_meeting[number] : of_meeting[number + 1]]
        blame[mine] = share * busy[mine]
        if pass_on:
            np.add.at(on_wait, pieces.row[mine], share * on_gpu[mine])
        for other, length in stretches[number].waits:
            if pass_on:
                pool[other] += share * length
            else:
                stays[other] += share * length
    return Shared(pieces, meeting, blame, on_wait, stays)


def _own_waits(meetings: Meetings, waited: NDArray[np.int64]) -> dict[int, _Waits]:
    """Return when each thread waited at meetings."""
    entries = np.flatnonzero(waited > 0)
    if not len(entries):
        return {}
    entries = entries[np.lexsort((meetings.came[entries], meetings.thread[entries]))]
    thread, begin = meetings.thread[entries], meetings.came[entries]
    end, number = begin + waited[entries], meetings.number[entries]
    bounds = np.append(np.flatnonzero(np.append(True, thread[1:] != thread[:-1])), len(thread)).tolist()
    return {
        int(thread[first]): _Waits(begin[first:last], end[first:last], number[first:last])
        for first, last in itertools.pairwise(bounds)
    }


class _Waits:
    """When a thread waited at meetings, by when it came; the arguments are its waits' begins, ends and meetings."""

    def __init__(self, begin: NDArray[np.int64], end: NDArray[np.int64], number: NDArray[np.int64]) -> None:
        self._begin, self._end, self._number = begin.tolist(), end.tolist(), number.tolist()
        self._over = np.maximum.accumulate(end).tolist()
        """When each wait and all before it are over."""

    def between(self, since: int, until: int) -> Iterable[tuple[int, int, int]]:
        """Return begin, end and meeting of all waits that do not end by `since` or begin at `until` or later, and of
        those between these.
        """
        some = slice(bisect_right(self._over, since), bisect_left(self._begin, until))
        return zip(self._begin[some], self._end[some], self._number[some], strict=True)


class _Stretch:
    """What the last one to come to a meeting did since its meeting before: when it was busy, and how long it waited at
    which other meetings.
    """

    def __init__(self, meeting: int, meetings: Meetings, entry: int, own: dict[int, _Waits]) -> None:
        self.meeting = meeting
        self.busy: list[tuple[int, int]] = []
        self.waits: list[tuple[int, int]] = []
        now, until = int(meetings.since[entry]), int(meetings.came[entry])
        waits = own.get(int(meetings.thread[entry]))
        for begin, end, other in [] if waits is None else waits.between(now, until):
            if other == meeting or end <= now:
                continue
            self.busy.append((now, max(begin, now)))
            self.waits.append((other, min(end, until) - max(begin, now)))
            now = min(end, until)
        self.busy.append((now, until))
        self.busy = [(begin, end) for begin, end in self.busy if end > begin]


def _waiting_for_gpu(timeline: Timeline, work: DeviceWork, graph: Graph, pieces: Path) -> NDArray[np.int64]:
    """Return how long each piece is a wait for GPU work."""
    row = pieces.row
    own_first = np.isin(work.action[row], (Action.ENQUEUE_AND_WAIT, Action.SET_AND_WAIT))
    begin = timeline.start[row] + np.where(own_first, own_before_wait(timeline, work, row), 0)
    waits = (pieces.part == Part.REST) & (graph.cause[row] >= 0)
    inside = np.minimum(pieces.end, begin + graph.waited[row]) - np.maximum(pieces.begin, begin)
    return np.where(waits, inside.clip(0), 0)
