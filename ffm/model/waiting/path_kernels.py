"""The passes that walk a graph backwards, and compare paths (`ffm.model.waiting.path`), in the subset of Python that
Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Columns are those of `Timeline`, `DeviceWork` and `Graph`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ffm.model.compiled import index, inner
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.numbers import WAIT_AND_ENQUEUE
from ffm.model.searching import place_of

Columns = NDArray[Any]

ON_HOST = 0
ON_GPU = 1
BETWEEN = 2
"""What a stretch is: of a thread, of GPU work, or the time from a cause until the GPU began the work."""

GPU_WORK = -1
NOWHERE = -2
"""Where a path continues if not on a thread: with GPU work; it is over."""


class Rows(NamedTuple):
    """The rows of a run, and where each thread's begin."""

    start: Columns
    duration: Columns
    wait: Columns
    action: Columns
    after_wait: Columns
    """`DeviceWork.behind`."""
    cause: Columns
    begins: Columns
    """Shape (threads + 1,)."""


class Track(NamedTuple):
    """Room for a path's stretches; they join."""

    kind: Columns
    where: Columns
    begin: Columns


class Ways(NamedTuple):
    """Where the path leads from a row or a thread."""

    thread: Columns
    gpu_begin: Columns
    gpu_end: Columns
    gpu_after: Columns
    jumps: Columns
    """Where the path leaves a thread, ascending: 2 * row for each row before which its thread waited for another
    thread, and 2 * row + 1 for each row whose wait has a cause.
    """
    leading: Columns
    """The former's rows alone, ascending;"""
    leads: Columns
    """for each, the row of the other thread, or of the work after which that waited,"""
    led: Columns
    """and until when the thread waited. If the row begins no earlier than that, the path goes on before it."""
    parent: Columns
    """The thread that started each one, -1 if that is unknown,"""
    started: Columns
    """before which of its rows,"""
    born: Columns
    """and when."""


@inner
def put(track: Track, found: int, kind: int, where: int, begin: int, end: int) -> int:
    """Put a stretch after those that were found, if there is room, unless it is empty; return how many there are."""
    if begin >= end:
        return found
    if found < len(track.kind):
        place = index(found)
        track.kind[place] = kind
        track.where[place] = where
        track.begin[place] = begin
    return found + 1


@inner
def leave_thread(
    rows: Rows, ways: Ways, on: int, limit: int, now: int, first: int, near: int
) -> tuple[int, int, int, int, int]:
    """Go back on a thread, from `now` and the last of the jumps below `limit`, to where it waited.

    Returns when that was, the thread on which the path continues (or `GPU_WORK` or `NOWHERE`) and the limit there, the
    row of the GPU work, and the place of the jump; `near` is that of an earlier one.
    """
    jump = place_of(ways.jumps, limit, near) - 1
    if jump < 0 or ways.jumps[index(jump)] < 2 * rows.begins[index(on)]:
        parent = ways.parent[index(on)]
        if parent < 0:
            return first, NOWHERE, 0, -1, 0
        return min(ways.born[index(on)], now), parent, 2 * ways.started[index(on)], -1, max(jump, 0)
    row = index(ways.jumps[index(jump)] // 2)
    if ways.jumps[index(jump)] % 2 == 1:
        cause = index(rows.cause[row])
        return min(ways.gpu_end[cause], rows.start[row] + rows.duration[row], now), GPU_WORK, 0, cause, jump
    lead = index(place_of(ways.leading, row, 0))
    ended, until = index(ways.leads[lead]), ways.led[lead]
    return min(until, now), ways.thread[ended], 2 * ended + (2 if rows.start[ended] < until else 1), -1, jump


def walk(rows: Rows, ways: Ways, first: int, last: int, last_thread: int, last_row: int, track: Track) -> int:
    """Walk from the end of the run, `last`, to its start, `first`.

    It starts on the thread `last_thread` or, if that is -1, with the GPU work of `last_row`.

    Returns how many stretches there are, and fills in what each is, its thread (`ON_HOST`) or row, and its start, the
    latest first, as far as there is room. They join, and every step leads to a row that was visited earlier, or to an
    earlier time. Only in damaged records can threads wait for each other in a circle, or have started each other: then
    the rest is one stretch of the thread that is reached.
    """
    found = near = still = 0
    most = len(rows.start) + len(ways.jumps) + len(ways.parent)  # steps that can lead to the same time
    now = last
    on = last_thread
    limit = 2 * rows.begins[on + 1] if on >= 0 else 0
    row = index(last_row)
    reached = last + 1
    while on != NOWHERE:
        still = still + 1 if now == reached else 0
        reached = now
        if still > most:
            return int(put(track, found, ON_HOST, on if on >= 0 else ways.thread[row], first, now))
        if on >= 0:
            before = on
            then, on, limit, row, near = leave_thread(rows, ways, before, limit, now, first, near)
            row = index(row)
            found = put(track, found, ON_HOST, before, then, now)
            now = then
            continue
        then = min(ways.gpu_begin[row], now)
        found = put(track, found, ON_GPU, row, then, now)
        now = then
        after = ways.gpu_after[row]
        waits_first = rows.action[row] == WAIT_AND_ENQUEUE
        if after >= 0:
            then = min(ways.gpu_end[index(after)], now)
        else:
            called = rows.start[row] + rows.duration[row] if waits_first else enqueued_at(rows, row)
            then = min(called, now)
        found = put(track, found, BETWEEN, row, then, now)
        now = then
        if after < 0:
            on = ways.thread[row]
            limit = 2 * row + (2 if waits_first else 1)
        else:
            row = index(after)
    return int(found)


def turn_round(kind: Columns, where: Columns, begin: Columns) -> None:
    """Put the stretches of a path into the order of time, in place."""
    for number in range(len(kind) // 2):
        other = index(len(kind) - 1 - number)
        kind[number], kind[other] = kind[other], kind[number]
        where[number], where[other] = where[other], where[number]
        begin[number], begin[other] = begin[other], begin[number]


def jumps_to_causes(cause: Columns, jumps: Columns) -> None:
    """Fill in 2 * row + 1 for each row whose wait has a cause, ascending; there is room for all."""
    place = 0
    for row in range(len(cause)):
        if cause[row] >= 0:
            jumps[index(place)] = 2 * row + 1
            place += 1


def last_rows(start: Columns, duration: Columns, gap: Columns, gpu_end: Columns) -> tuple[int, int, int]:
    """Return the first of the rows whose gaps end last, the first of those whose GPU work does, and when the first row
    of all begins.
    """
    call = work = 0
    first, call_end, work_end = start[0], start[0] + duration[0] + gap[0], gpu_end[0]
    for row in range(len(start)):
        first = min(first, start[row])
        end = start[row] + duration[row] + gap[row]
        if end > call_end:
            call, call_end = row, end
        if gpu_end[row] > work_end:
            work, work_end = row, gpu_end[row]
    return call, work, first


@inner
def lane_at(kind: Columns, where: Columns, thread: Columns, stream: Columns, threads: int, number: int) -> int:
    """Return the lane of a stretch: its thread or, from the number of `threads` on, its stream."""
    place = index(where[number])
    if kind[number] == ON_GPU:
        return int(threads + stream[place])
    return int(thread[place]) if kind[number] == BETWEEN else place


def lanes(kind: Columns, where: Columns, thread: Columns, stream: Columns, threads: int, lane: Columns) -> None:
    """Fill in the lane of each stretch."""
    for number in range(len(kind)):
        lane[number] = lane_at(kind, where, thread, stream, threads, number)


def moves(
    kind: Columns,
    where: Columns,
    begin: Columns,
    thread: Columns,
    stream: Columns,
    threads: int,
    begins: Columns,
    lanes: Columns,
) -> int:
    """Fill in when a path moves to another lane, and to which, from its first stretch on; there is room for as many as
    stretches. Return how many there are.
    """
    found = 0
    on = -1
    for number in range(len(kind)):
        lane = lane_at(kind, where, thread, stream, threads, number)
        if lane != on:
            begins[index(found)] = begin[number]
            lanes[index(found)] = lane
            found += 1
            on = lane
    return found


def shared(begin: Columns, lane: Columns, offsets: Columns, last: int) -> int:
    """Return for how many nanoseconds before `last` several paths are in the same lane.

    The paths' pieces lie one path after the other; `offsets`, shape (paths + 1,), is where each path begins.
    """
    paths = len(offsets) - 1
    at = offsets[:-1].copy()
    now = begin[at[0]]
    same = 0
    while now < last:
        until = last
        alike = True
        for number in range(paths):
            if lane[at[number]] != lane[at[0]]:
                alike = False
            if at[number] + 1 < offsets[number + 1]:
                until = min(until, begin[at[number] + 1])
        if alike:
            same += until - now
        now = until
        for number in range(paths):
            if at[number] + 1 < offsets[number + 1] and begin[at[number] + 1] <= now:
                at[number] += 1
    return same
