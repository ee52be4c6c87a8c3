"""At which rows of other threads the critical path continues where a thread waited for them (Dietrich 2019, 5.4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import WORTH_FOLLOWING_NS, Threads
from ffm.model.waiting.meetings import Meetings


def leads_of_rows(
    timeline: Timeline,
    work: DeviceWork,
    threads: Threads,
    meetings: Meetings | None,
    begins: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows before which their threads waited for other threads, ascending; for each, the row of another
    thread that it waited for, and when that was over, in ns.

    `begins` says where each thread's rows begin, shape (threads + 1,).
    """
    known = (threads.joined >= 0).any() or (threads.follows >= 0).any()
    if not known and work.awaits is None and (meetings is None or not len(meetings.number)):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    leads, led = _leads(timeline, threads, begins, timeline.start + timeline.duration)
    if meetings is not None:
        _lead_from_meetings(timeline, meetings, begins, leads, led)
    if work.awaits is not None:
        _lead_from_starts(timeline, work.awaits, leads, led)
    leading = np.flatnonzero(leads >= 0)
    return leading, leads[leading], led[leading]


def _leads(
    timeline: Timeline, threads: Threads, begins: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each row, the row of another thread for whose end its thread waited before it, and that end; -1 if
    there is none.

    That is the last wait of the thread that it follows, if it ended within the gap before the row, or else the last row
    of the thread that ended last of those that are joined there, if it ended in that gap.
    """
    leads = np.full(len(timeline), -1, np.int64)
    known = np.flatnonzero((threads.joined >= 0) & (begins[1:] > begins[:-1]))
    ended, joined = begins[known + 1] - 1, threads.joined[known]
    order = np.argsort(end[ended], kind="stable")
    follows_row = joined > begins[timeline.thread[joined]]  # else it is the first of its thread
    order = order[(~follows_row | (end[ended] > end[joined - 1]))[order]]  # others had ended before they were joined
    leads[joined[order]] = ended[order]  # the last assignment stays
    for thread in np.flatnonzero(threads.follows >= 0).tolist():
        rows = np.arange(begins[thread] + 1, begins[thread + 1])
        leader = np.arange(*begins[threads.follows[thread] :][:2])
        waits = leader[timeline.wait[leader] > WORTH_FOLLOWING_NS]
        if not len(rows) or not len(waits):
            continue
        last = waits[(np.searchsorted(end[waits], timeline.start[rows], side="right") - 1).clip(0)]
        within = (end[last] <= timeline.start[rows]) & (end[last] >= end[rows - 1])
        within &= timeline.start[rows] - end[rows - 1] > WORTH_FOLLOWING_NS
        leads[rows[within]] = last[within]
    led = np.full(len(timeline), -1, np.int64)
    led[leads >= 0] = end[leads[leads >= 0]]
    return leads, led


def _lead_from_meetings(
    timeline: Timeline,
    meetings: Meetings,
    begins: NDArray[np.int64],
    leads: NDArray[np.int64],
    led: NDArray[np.int64],
) -> None:
    """Let the rows after meetings, for which their threads waited, be led by the last one that came, in place."""
    last = meetings.last[meetings.number]
    waiting = np.flatnonzero(meetings.waited > 0)
    came = meetings.came[last[waiting]]
    thread, leader = meetings.thread[waiting], meetings.thread[last[waiting]]
    following, later = (_first_from(timeline, begins, of, came) for of in (thread, leader))
    goes_on = following < begins[thread + 1]
    has_led = goes_on & (later > begins[leader])
    rows = following[has_led]  # of several entries of a row, the last one counts
    leads[rows], led[rows] = later[has_led] - 1, came[has_led]
    others = np.flatnonzero(goes_on & ~has_led & (begins[leader] < begins[leader + 1]))
    columns = (following[others], begins[leader[others]], came[others])
    by_first = {row: (first, end) for row, first, end in zip(*(column.tolist() for column in columns), strict=True)}
    # The first row of a thread can lead if nothing leads it: there the path ends.
    for row, (first, end) in by_first.items():
        if leads[first] < 0 and first not in by_first:
            leads[row], led[row] = first, end


def _first_from(
    timeline: Timeline, begins: NDArray[np.int64], thread: NDArray[np.int64], moment: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each moment, the first row of a thread that begins then or later; where its rows end if none does."""
    row = np.empty(len(thread), np.int64)
    order = np.argsort(thread, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1):
        if len(own):
            begin, end = begins[thread[own[0]] : thread[own[0]] + 2]
            row[own] = begin + np.searchsorted(timeline.start[begin:end], moment[own])
    return row


def _lead_from_starts(
    timeline: Timeline, awaits: NDArray[np.int32], leads: NDArray[np.int64], led: NDArray[np.int64]
) -> None:
    """Let the rows that another thread's row started be led by its start, in place."""
    started = np.flatnonzero((awaits >= 0) & (timeline.wait == 0))
    started = started[timeline.start[awaits[started]] < timeline.start[started]]
    started = started[timeline.thread[awaits[started]] != timeline.thread[started]]
    leads[started] = awaits[started]
    led[started] = timeline.start[leads[started]]
