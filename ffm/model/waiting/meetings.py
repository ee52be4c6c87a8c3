"""Where threads wait for each other until all have come: barriers, collective operations, the end of a parallel region.

Those that arrive early wait for the last (Dietrich 2019, 3.3.2). A thread that requests a lock that another one holds
meets that thread when it releases the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import LockWaits
from ffm.model.grouping import begins_of
from ffm.model.lock_order import lock_moments
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import Threads


@dataclass(frozen=True, slots=True)
class Meetings:
    """One entry for each thread that came to a meeting; times in nanoseconds on the timeline's clock."""

    number: NDArray[np.int64]
    """Which meeting, from 0, ascending. Of those that end at the same time, later ones wait for earlier ones."""
    thread: NDArray[np.int64]
    since: NDArray[np.int64]
    """From when on what the thread did counts: it left its meeting before."""
    came: NDArray[np.int64]

    @classmethod
    def none(cls) -> Meetings:
        """Return no meeting."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, nothing)

    @classmethod
    def joined(cls, parts: Sequence[Meetings]) -> Meetings:
        """Return all meetings of several, one after the other."""
        number, count = [np.zeros(0, np.int64)], 0
        for part in parts:
            number.append(part.number + count)
            count += int(part.number.max(initial=-1)) + 1
        thread, since, came = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])
            for name in ("thread", "since", "came")
        )
        return cls(np.concatenate(number), thread, since, came)

    @property
    def last(self) -> NDArray[np.int64]:
        """The entry of the last one to come, for each meeting; of several, the one that is listed last."""
        order = np.lexsort((self.came, self.number))
        return order[np.append(self.number[order][1:] != self.number[order][:-1], True)] if len(order) else order

    @property
    def waited(self) -> NDArray[np.int64]:
        """How long each entry's thread waited for the last."""
        return np.asarray(self.came[self.last][self.number] - self.came, np.int64)


def recorded_meetings(timeline: Timeline, awaits: NDArray[np.int32], process_of_thread: NDArray[np.int32]) -> Meetings:
    """Return where rows waited for the begin of rows of other threads (`DeviceWork.awaits`). O(n log n).

    All that wait for one row meet there, if it begins while they last. What a thread does counts from the end of its
    row of the meeting before, or of the start of its team. Where processes meet, it counts from their meeting before:
    those of a process's own threads in between are part of what it did (there, 5.2). What the holder of a lock does
    counts from when it had the lock; if it waited for that when the other thread did already, from when both waited.
    """
    waiting = np.flatnonzero(waits_for_begin(timeline, awaits))
    late = np.unique(awaits[waiting]).astype(np.int64)
    by_time = late[np.lexsort((late, timeline.start[late]))]
    place = np.empty(len(timeline), np.int64)
    place[by_time] = np.arange(len(by_time))
    row = np.concatenate((waiting, by_time))
    number = np.concatenate((place[awaits[waiting]], np.arange(len(by_time))))
    process = process_of_thread[timeline.thread]
    outside = np.zeros(len(by_time), np.bool_)
    outside[place[awaits[waiting]]] |= process[waiting] != process[awaits[waiting]]
    order = np.lexsort((row, number))
    row, number = row[order], number[order]
    held = releases(timeline, awaits)
    begun = np.flatnonzero((awaits >= 0) & (timeline.wait == 0) & ~held)
    since = _last_met(timeline, row, np.unique(np.concatenate((row, begun, awaits[begun]))))
    across = outside[number]
    since[across] = _last_met(timeline, row[across], np.unique(row[across]))
    _since_acquired(timeline, awaits, row, number, np.flatnonzero(held[row]), since)
    return Meetings(number, timeline.thread[row].astype(np.int64), since, timeline.start[row])


def lock_meetings(timeline: Timeline, locks: LockWaits) -> Meetings:
    """Return where threads met the ones that released what they waited for. O(n log n).

    What that one did counts from when the other one began to wait. A wait that was over before it began, as it may be
    after a change, is none.
    """
    since, released = lock_moments(timeline, locks)
    waits = np.flatnonzero(released > since)
    waits = waits[np.argsort(released[waits], kind="stable")]
    threads = np.column_stack((timeline.thread[locks.row[waits]], timeline.thread[locks.by[waits]]))
    return Meetings(
        number=np.repeat(np.arange(len(waits)), 2),
        thread=threads.reshape(-1).astype(np.int64),
        since=np.repeat(since[waits], 2),
        came=np.column_stack((since[waits], released[waits])).reshape(-1),
    )


def releases(timeline: Timeline, awaits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which rows release a lock that their threads acquired; shape (n,)."""
    return np.asarray((awaits >= 0) & (timeline.thread[awaits.clip(0)] == timeline.thread))


def lock_waits(timeline: Timeline, awaits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which rows waited for a lock that another thread held; shape (n,)."""
    return np.asarray(waits_for_begin(timeline, awaits) & releases(timeline, awaits)[awaits.clip(0)])


def waits_for_begin(timeline: Timeline, awaits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which rows waited for the begin of the row that they await; shape (n,)."""
    comes = timeline.start[awaits.clip(0)] if len(awaits) else timeline.start
    within = (timeline.start < comes) & (comes <= timeline.start + timeline.duration)
    return np.asarray((awaits >= 0) & (timeline.wait > 0) & within)


def _since_acquired(
    timeline: Timeline,
    awaits: NDArray[np.int32],
    row: NDArray[np.int64],
    number: NDArray[np.int64],
    holders: NDArray[np.int64],
    since: NDArray[np.int64],
) -> None:
    """Let what holders of locks did count from when they had them, in place; `holders` are their entries."""
    others = np.ones(len(row), np.bool_)
    others[holders] = False
    requested = np.full(int(number.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(requested, number[others], timeline.start[row[others]])
    acquired = awaits[row[holders]]
    waited = np.maximum(timeline.start[acquired], requested[number[holders]])
    had = np.minimum(timeline.over(acquired), waited)
    since[holders] = np.minimum(had, timeline.start[row[holders]])


def _last_met(timeline: Timeline, row: NDArray[np.int64], meets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the threads of rows left the last of the rows before, ascending, at which they met others; the begin
    of the thread if there is none.
    """
    before = np.searchsorted(meets, row) - 1
    own = (before >= 0) & (timeline.thread[meets[before.clip(0)]] == timeline.thread[row])
    first = timeline.start[np.searchsorted(timeline.thread, timeline.thread[row])]
    left = timeline.over(meets[before.clip(0)]) if len(meets) else first
    return np.asarray(np.minimum(np.where(own, left, first), timeline.start[row]), np.int64)


def joined_teams(timeline: Timeline, threads: Threads) -> Meetings:
    """Return where threads that were started and joined together met: at the end of the last of them."""
    begins = begins_of(timeline.thread, len(threads.parent))
    known = np.flatnonzero((threads.joined >= 0) & (begins[1:] > begins[:-1]))
    _, team, size = np.unique(threads.joined[known], return_inverse=True, return_counts=True)
    together = size[team.reshape(-1)] > 1
    members = known[together]
    _, number = np.unique(team.reshape(-1)[together], return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    members = members[order].astype(np.int64)
    born = threads.born[members]
    return Meetings(
        number=number.reshape(-1)[order].astype(np.int64),
        thread=members,
        since=np.where(born >= 0, born, timeline.over(threads.joined[members] - 1)),
        came=timeline.over(begins[members + 1] - 1),
    )
