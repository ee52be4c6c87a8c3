"""Patterns of threads and processes that wait for each other: messages, collective operations, barriers, joins, locks.

Of a wait that a profiler recorded, the roles in the encounter tell what it was (Dietrich 2019, 3.3.2): a receiver that
waits for its sender, a sender that was seen to wait for its receiver, or a meeting of all, of processes or of the
threads of one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork, Role
from ffm.model.timeline import Timeline
from ffm.model.waiting.meetings import Meetings, lock_meetings, lock_waits, waits_for_begin

Times = NDArray[np.int64]


class Reason(IntEnum):
    """Why a thread waited for another one."""

    COLLECTIVE = 0
    BARRIER = 1
    SENDER = 2
    RECEIVER = 3
    JOIN = 4
    LOCK = 5


@dataclass(frozen=True, slots=True)
class ThreadWaits:
    """Waits of threads for each other, one entry for each; nanoseconds."""

    reason: NDArray[np.uint8]
    """Of `Reason`."""
    waited: Times

    def of(self, reason: Reason) -> tuple[int, int]:
        """Return how many waits were of a kind, and the nanoseconds that they took together."""
        mine = self.waited[self.reason == reason]
        return len(mine), int(mine.sum())


def find_thread_waits(timeline: Timeline, work: DeviceWork, meetings: Meetings) -> ThreadWaits:
    """Return all waits of threads for each other. O(n log n).

    `meetings` are those of the run; the last of them are `lock_meetings`, where it has any.
    """
    if work.awaits is not None:
        rows = np.flatnonzero(waits_for_begin(timeline, work.awaits))
        reason = _reasons(work, timeline.thread, rows, work.awaits[rows].astype(np.int64))
        reason[lock_waits(timeline, work.awaits)[rows]] = Reason.LOCK
        return ThreadWaits(reason, timeline.start[work.awaits[rows]] - timeline.start[rows])
    waited = meetings.waited
    reason = np.full(len(waited), Reason.JOIN, np.uint8)
    if work.locks is not None:
        reason[len(waited) - len(lock_meetings(timeline, work.locks).number) :] = Reason.LOCK
    return ThreadWaits(reason[waited > 0], waited[waited > 0])


def _reasons(
    work: DeviceWork, thread: NDArray[np.integer], rows: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return why rows waited for other rows: by their roles in the encounter in which both are."""
    process = work.process_of_thread[thread]
    reason = np.where(process[rows] == process[other], Reason.BARRIER, Reason.COLLECTIVE).astype(np.uint8)
    met = work.encounters
    if met is None or not len(met.row):
        return reason
    place = np.full(len(thread), -1, np.int64)
    place[rows] = np.arange(len(rows))
    entry = np.flatnonzero(place[met.row] >= 0)
    wait = place[met.row[entry]]
    # An entry is known by its encounter and its row, which are one number here.
    key = met.number * len(thread) + met.row
    order = np.argsort(key, kind="stable")
    wanted = met.number[entry] * len(thread) + other[wait]
    partner = order[np.searchsorted(key, wanted, sorter=order).clip(0, len(key) - 1)]
    both = key[partner] == wanted
    mine, theirs = met.role[entry], met.role[partner]
    reason[wait[both & (theirs == Role.WAITS)]] = Reason.RECEIVER
    reason[wait[both & (mine == Role.WAITS)]] = Reason.SENDER
    return reason
