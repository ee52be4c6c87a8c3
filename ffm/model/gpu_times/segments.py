"""The pass that finds how long the GPU worked until waits (`ffm.model.gpu_times.inference`), in the part of Python that
Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner, zero
from ffm.model.gpu_times.kernels import Trace, gpu_of, waited_gpus
from ffm.model.numbers import (
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    SET_AND_WAIT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_STREAM,
)

Columns = NDArray[Any]

NONE, SEVERAL = -1, -2
"""Instead of a stream: of no stream, of several ones."""


class Pending(NamedTuple):
    """The operations of each device that nothing has waited for. Columns with one entry for each device."""

    number: Columns
    stream: Columns
    """The stream of all of them, `NONE` or `SEVERAL`."""
    idle_since: Columns
    """When the device was last seen to be idle."""
    first: Columns
    """Where its operations begin in `row` and `arrival`. One entry more."""
    row: Columns
    arrival: Columns


class Segments(NamedTuple):
    """What is found out of segments: columns with one entry for each, then by row."""

    length: Columns
    key: Columns
    size: Columns
    segment: Columns
    room: Columns


def find_segments(
    trace: Trace, threshold: int, latency: int, segment: Columns, room: Columns
) -> tuple[Columns, Columns, Columns]:
    """Find the stretches of GPU work whose length is shown by a wait, and fill in each enqueuing row's `segment`.

    A segment is the work of one stream from when the stream was known to be idle to the end of a wait for all of it,
    while no other stream of the device had work. Returns for each segment the nanoseconds from the arrival of its
    first work to the end of the wait, a hash of its operations, and their number. If operations came one by one, so
    that the GPU may have been idle between them, only those after the last such pause count. A wait must last
    `threshold` nanoseconds to show that it waited for something, and lasts at least `latency` beyond the work. Rows in
    no segment get -1. `room` receives, for work of a stream that was waited for, the nanoseconds until the stream's
    next work arrived or the stream was seen to be idle; -1 if neither is known.
    """
    start, duration, wait, stream = trace.start, trace.duration, trace.wait, trace.stream
    pending = nothing_pending(trace)
    # What is not written to takes no memory.
    rows = len(trace.order)
    found = Segments(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), segment, room)
    number = zero()
    for place in range(rows):
        row = trace.order[place]
        process = trace.process_of_thread[trace.thread[row]]
        segment[row] = -1
        room[row] = -1
        does = trace.action[row] if trace.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        waits_first = does in (WAIT_AND_ENQUEUE, WAIT_CONTEXT, WAIT_STREAM)
        if does in (ENQUEUE, ENQUEUE_AND_WAIT):
            add_pending(trace, pending, row, start[row] + duration[row] - wait[row])
        if does == ENQUEUE_AND_WAIT or waits_first:
            end = start[row] + wait[row] if waits_first else start[row] + duration[row]
            done = start[row] if waits_first and wait[row] <= threshold else -1
            gpus = waited_gpus(trace, process, stream[row])
            busy = 0
            for gpu in gpus:
                busy += pending.number[gpu] > 0
            for gpu in gpus:
                everything = does == WAIT_CONTEXT or (pending.stream[gpu] >= 0 and stream[row] == pending.stream[gpu])
                if pending.number[gpu] > 0 and everything:
                    # Of several devices that had work, the wait shows when the last was done: which, is not known.
                    shows = wait[row] > threshold and busy == 1
                    number += waited_for(trace, pending, found, gpu, number, end, done, latency if shows else -1)
                elif pending.number[gpu] == 0:
                    pending.idle_since[gpu] = max(pending.idle_since[gpu], end)
        if does == WAIT_AND_ENQUEUE:
            add_pending(trace, pending, row, start[row] + duration[row])
    return found.length[:number], found.key[:number], found.size[:number]


@inlined
def nothing_pending(trace: Trace) -> Pending:
    """Return the state before the first call."""
    gpus, rows = int(trace.first_gpu[len(trace.legacy)]), len(trace.order)
    first = np.zeros(gpus + 1, np.int64)
    for row in range(rows):
        if trace.action[row] in (ENQUEUE, ENQUEUE_AND_WAIT, SET_AND_WAIT, WAIT_AND_ENQUEUE):
            first[1 + gpu_of(trace, trace.process_of_thread[trace.thread[row]], trace.stream[row])] += 1
    for gpu in range(gpus):
        first[gpu + 1] += first[gpu]
    return Pending(
        number=np.zeros(gpus, np.int64),
        stream=np.full(gpus, NONE, np.int64),
        idle_since=np.zeros(gpus, np.int64),
        first=first,
        row=np.empty(rows, np.int32),
        arrival=np.empty(rows, np.int64),
    )


@inner
def add_pending(trace: Trace, pending: Pending, row: int, arrival: int) -> None:
    """Add a row's work, which arrives then, to what nothing has waited for."""
    gpu = gpu_of(trace, trace.process_of_thread[trace.thread[row]], trace.stream[row])
    count = pending.number[gpu]
    pending.stream[gpu] = common_stream(count, pending.stream[gpu], trace.stream[row])
    pending.row[pending.first[gpu] + count] = row
    pending.arrival[pending.first[gpu] + count] = arrival
    pending.number[gpu] = count + 1


@inner
def waited_for(
    trace: Trace, pending: Pending, found: Segments, gpu: int, number: int, end: int, done: int, latency: int
) -> int:
    """Note that all pending work of a device was waited for until `end`; return how many segments that shows.

    The work was over at `done`, if that is not negative. If `latency` is negative, the wait shows no segment.
    """
    first, count = pending.first[gpu], pending.number[gpu]
    members, arrivals = pending.row[first : first + count], pending.arrival[first : first + count]
    shown = 0
    if pending.stream[gpu] >= 0:
        make_room(members, arrivals, count, done, found.room)
    if latency >= 0 and pending.stream[gpu] >= 0:
        begin = busy_since(arrivals, count, end, latency)
        found.key[number] = number_segment(members, begin, count, number, trace.site, trace.copied, found.segment)
        found.length[number] = max(end - max(arrivals[begin], pending.idle_since[gpu]), 0)
        found.size[number] = count - begin
        shown = 1
    pending.number[gpu], pending.stream[gpu], pending.idle_since[gpu] = 0, NONE, end
    return shown


@inner
def common_stream(count: int, pending: int, stream: int) -> int:
    """Return the stream of `count` operations, all of the stream `pending`, and one of `stream`."""
    if count == 0 or pending == stream:
        return stream
    return SEVERAL


@inner
def busy_since(arrivals: Columns, count: int, end: int, latency: int) -> int:
    """Return the first of `count` operations from which on the GPU worked without a pause until shortly before `end`.

    As far as can be told, they take equally long. Then they last until when the last is done, shared by all of them;
    were it longer, the GPU would still have been busy. An operation after a long pause starts over.
    """
    begin = count - 1
    least = float(end - latency - arrivals[begin])
    for index in range(count - 2, -1, -1):
        each = (end - latency - arrivals[index]) / (count - index)
        if each <= least:
            begin = index
            least = each
    for index in range(begin + 1, count):
        if arrivals[index] - arrivals[index - 1] > 0.2 * (end - arrivals[begin]):
            begin = index
    return begin


@inner
def number_segment(
    members: Columns, begin: int, count: int, number: int, site: Columns, copied: Columns, segment: Columns
) -> int:
    """Give the operations from `begin` on their segment's `number`, and return a hash of what they are."""
    modulus = (1 << 40) - 87
    hashed = 0
    for index in range(begin, count):
        member = members[index]
        segment[member] = number
        hashed = (hashed * 1000003 + int(site[member]) * 31 + int(copied[member]) % 1000003 + 1) % modulus
    return hashed


@inner
def make_room(members: Columns, arrivals: Columns, count: int, done: int, room: Columns) -> None:
    """Fill in how long each of `count` operations could take without keeping the next one waiting. The last was over
    at `done`, if that is not negative.
    """
    for index in range(count - 1):
        room[members[index]] = arrivals[index + 1] - arrivals[index]
    if done >= 0:
        room[members[count - 1]] = max(done - arrivals[count - 1], 0)
