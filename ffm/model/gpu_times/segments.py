"""The pass that finds how long the GPU worked until waits (`ffm.model.gpu_times.inference`), in the part of Python that
Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.gpu_times.simulated_gpu import Trace, gpu_of, waited_gpus
from ffm.model.numbers import (
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    LOAD_AND_ENQUEUE,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_STREAM,
)
from ffm.model.visits import is_legacy, process_of, row_at

Columns = NDArray[Any]

NONE = -1

LONGEST = (1 << 31) - 1
"""Nanoseconds for which work is known to last, at most."""

BESIDE = 0.05
"""At most this share of a segment's operations may overlap others. What all of them took is then about that share
longer than the segment.
"""


class Tails(NamedTuple):
    """The last operation before something: a number among those of its device that nothing has waited for."""

    last: Columns
    round: Columns
    """It is one of these only as long as the device's `Pending.round` is this."""
    gpu: Columns


class Pending(NamedTuple):
    """The operations of each device that nothing has waited for. Columns with one entry for each device, if not said
    otherwise.
    """

    number: Columns
    round: Columns
    """How often its operations were waited for."""
    unnamed: Columns
    """Whether some of them are of no known stream."""
    deepest: Columns
    """The last of the longest chain of operations that come after each other; -1 if there is none."""
    deepest_ordered: Columns
    """The same of those that the legacy stream orders."""
    idle_since: Columns
    """When the device was last seen to be idle."""
    first: Columns
    """Where its operations begin in the next four columns. One entry more."""
    row: Columns
    arrival: Columns
    depth: Columns
    """How long the longest chain is that ends with the operation."""
    before: Columns
    """The operation before it in that chain; -1 for the first."""
    lasts: Columns
    """For how long after its arrival the device works on it at least, as events measured it and those before it in that
    chain.
    """
    of_stream: Tails
    """After which operation the next one of each stream comes."""
    of_event: Tails
    """After which operation each event comes."""


class Segments(NamedTuple):
    """What is found out of segments: columns with one entry for each, then by row."""

    length: Columns
    key: Columns
    size: Columns
    segment: Columns
    room: Columns


def find_segments(
    trace: Trace, measured: Columns, threshold: int, latency: int, segment: Columns, room: Columns
) -> tuple[Columns, Columns, Columns]:
    """Find the stretches of GPU work whose length is shown by a wait, and fill in each enqueuing row's `segment`.

    A segment is work of a device from when that was known to be idle to the end of a wait for all of it, if each piece
    of it comes after the one before: because they are on one stream, or because events or the legacy stream order their
    streams. Returns for each segment the nanoseconds from the arrival of its first work to the end of the wait, a hash
    of its operations, and their number. If operations came one by one, so that the GPU may have been idle between them,
    only those after the last such pause count; there is none while work lasts that events `measured` (shape (n,), -1
    for other work). A wait must last `threshold` nanoseconds to show that it waited for something, and lasts at least
    `latency` beyond the work. Rows in no segment get -1. `room` receives, for work in such an order that was waited
    for, the nanoseconds until the next work arrived or the device was seen to be idle; -1 if neither is known.
    """
    pending = nothing_pending(trace)
    # What is not written to takes no memory.
    rows = len(trace.thread)
    found = Segments(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), segment, room)
    start, duration, wait, order, action = trace.start, trace.duration, trace.wait, trace.order, trace.action
    waiting, idle_since = pending.number, pending.idle_since
    number = 0
    for place in range(rows):
        row = row_at(order, place)
        segment[row] = -1
        room[row] = -1
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        waits_first = does in (WAIT_AND_ENQUEUE, WAIT_CONTEXT, WAIT_STREAM, WAIT_EVENT)
        if does in (ENQUEUE, ENQUEUE_AND_WAIT, LOAD_AND_ENQUEUE):
            add_pending(trace, pending, measured, row, enqueued_at(trace, row))
        elif does in (RECORD_EVENT, STREAM_WAIT_EVENT):
            order_by_event(trace, pending, row)
        if does == ENQUEUE_AND_WAIT or waits_first:
            end = (start[row] if waits_first else enqueued_at(trace, row)) + wait[row]
            done = start[row] if waits_first and wait[row] <= threshold else -1
            gpus = shown_gpus(trace, pending, row)
            busy = 0
            for gpu in gpus:
                busy += waiting[gpu] > 0
            for gpu in gpus:
                if waiting[gpu] > 0 and waits_for_all(trace, pending, gpu, row):
                    # Of several devices that had work, the wait shows when the last was done: which, is not known.
                    shows = wait[row] > threshold and busy == 1
                    number += waited_for(trace, pending, found, gpu, number, end, done, latency if shows else -1)
                elif waiting[gpu] == 0:
                    idle_since[gpu] = max(idle_since[gpu], end)
        if does == WAIT_AND_ENQUEUE:
            add_pending(trace, pending, measured, row, start[row] + duration[row])
    return found.length[:number], found.key[:number], found.size[:number]


@inlined
def nothing_pending(trace: Trace) -> Pending:
    """Return the state before the first call."""
    gpus, rows = int(trace.first_gpu[len(trace.legacy)]), len(trace.thread)
    first = np.zeros(gpus + 1, np.int64)
    for row in range(rows):
        if trace.action[row] in (ENQUEUE, ENQUEUE_AND_WAIT, SET_AND_WAIT, WAIT_AND_ENQUEUE, LOAD_AND_ENQUEUE):
            first[1 + gpu_of(trace, process_of(trace, row), trace.stream[row])] += 1
    for gpu in range(gpus):
        first[gpu + 1] += first[gpu]
    streams, events = len(trace.gpu_of_stream), trace.events + 1
    return Pending(
        number=np.zeros(gpus, np.int64),
        round=np.zeros(gpus, np.int64),
        unnamed=np.zeros(gpus, np.bool_),
        deepest=np.full(gpus, NONE, np.int64),
        deepest_ordered=np.full(gpus, NONE, np.int64),
        idle_since=np.zeros(gpus, np.int64),
        first=first,
        row=np.empty(rows, np.int32),
        arrival=np.empty(rows, np.int64),
        depth=np.empty(rows, np.int32),
        before=np.empty(rows, np.int32),
        lasts=np.empty(rows, np.int32),
        of_stream=Tails(np.full(streams, NONE, np.int64), np.zeros(streams, np.int64), np.zeros(streams, np.int32)),
        of_event=Tails(np.full(events, NONE, np.int64), np.zeros(events, np.int64), np.zeros(events, np.int32)),
    )


@inner
def add_pending(trace: Trace, pending: Pending, measured: Columns, row: int, arrival: int) -> None:
    """Add a row's work, which arrives then, to what nothing has waited for."""
    lane = trace.stream[row]
    gpu = gpu_of(trace, process_of(trace, row), lane)
    count, first = pending.number[gpu], pending.first[gpu]
    before = NONE
    if lane < 0:
        pending.unnamed[gpu] = True
    else:
        before = last_before(trace, pending, gpu, row)
        set_tail(pending, pending.of_stream, lane, gpu, count)
    pending.row[first + count] = row
    pending.arrival[first + count] = arrival
    pending.before[first + count] = before
    pending.depth[first + count] = 1 + depth_of(pending, gpu, before)
    waits = max(still_lasts(pending, gpu, before, arrival), 0)
    pending.lasts[first + count] = min(waits + max(int(measured[row]), 0), LONGEST)
    pending.deepest[gpu] = deeper(pending, gpu, pending.deepest[gpu], count)
    if lane >= 0 and not trace.apart[lane]:
        pending.deepest_ordered[gpu] = deeper(pending, gpu, pending.deepest_ordered[gpu], count)
    pending.number[gpu] = count + 1


@inner
def still_lasts(pending: Pending, gpu: int, operation: int, arrival: int) -> int:
    """Return for how long at least a device still works on an operation when another one arrives; 0 or less if it may
    be over, or for none.
    """
    if operation < 0:
        return 0
    place = pending.first[gpu] + operation
    return int(pending.arrival[place] + pending.lasts[place] - arrival)


@inner
def order_by_event(trace: Trace, pending: Pending, row: int) -> None:
    """Record an event, or let the later work of a stream come after it."""
    lane, event = trace.stream[row], trace.event[row]
    if lane < 0 or event < 0:
        return
    gpu = trace.gpu_of_stream[lane]
    last = tail(pending, pending.of_stream, lane, gpu)
    if trace.action[row] == STREAM_WAIT_EVENT:
        after = deeper(pending, gpu, last, tail(pending, pending.of_event, event, gpu))
        set_tail(pending, pending.of_stream, lane, gpu, after)
    else:
        if is_legacy(trace, row):
            last = pending.deepest_ordered[gpu]
        set_tail(pending, pending.of_event, event, gpu, last)


@inner
def tail(pending: Pending, tails: Tails, number: int, gpu: int) -> int:
    """Return the last operation of a device before something, that nothing has waited for; -1 if there is none."""
    if tails.gpu[number] != gpu or tails.round[number] != pending.round[gpu]:
        return NONE
    return int(tails.last[number])


@inner
def set_tail(pending: Pending, tails: Tails, number: int, gpu: int, last: int) -> None:
    """Remember the last operation of a device before something."""
    tails.last[number] = last
    tails.round[number] = pending.round[gpu]
    tails.gpu[number] = gpu


@inner
def depth_of(pending: Pending, gpu: int, operation: int) -> int:
    """Return how many operations come after each other up to this one; 0 for none."""
    return int(pending.depth[pending.first[gpu] + operation]) if operation >= 0 else 0


@inner
def deeper(pending: Pending, gpu: int, one: int, other: int) -> int:
    """Return which of two operations ends the longer chain, the first one if both are as long."""
    return other if depth_of(pending, gpu, other) > depth_of(pending, gpu, one) else one


@inner
def last_before(trace: Trace, pending: Pending, gpu: int, row: int) -> int:
    """Return the operation that the work of a row comes after; -1 if there is none."""
    lane, legacy = trace.stream[row], trace.legacy[process_of(trace, row)]
    last = tail(pending, pending.of_stream, lane, gpu)
    if legacy == lane:
        last = deeper(pending, gpu, last, pending.deepest_ordered[gpu])
    elif legacy >= 0 and not trace.apart[lane]:
        last = deeper(pending, gpu, last, tail(pending, pending.of_stream, legacy, gpu))
    return last


@inner
def shown_gpus(trace: Trace, pending: Pending, row: int) -> range:
    """Return the devices whose work a row's wait may show."""
    event = trace.event[row]
    if trace.action[row] != WAIT_EVENT:
        return waited_gpus(trace, process_of(trace, row), trace.stream[row])
    if event < 0:
        return range(0, 0)
    return range(pending.of_event.gpu[event], pending.of_event.gpu[event] + 1)


@inner
def waits_for_all(trace: Trace, pending: Pending, gpu: int, row: int) -> bool:
    """Return whether a row waits for all work of a device that has some."""
    if trace.action[row] == WAIT_CONTEXT:
        return True
    if trace.action[row] == WAIT_EVENT:
        last = tail(pending, pending.of_event, trace.event[row], gpu)
    elif is_legacy(trace, row):
        last = pending.deepest_ordered[gpu]
    else:
        last = tail(pending, pending.of_stream, trace.stream[row], gpu) if trace.stream[row] >= 0 else NONE
    return bool(depth_of(pending, gpu, last) == pending.number[gpu])


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
    if not pending.unnamed[gpu]:
        if depth_of(pending, gpu, pending.deepest[gpu]) == count:
            make_room(members, arrivals, count, done, found.room)
        begin = busy_since(pending, gpu, arrivals, end, latency) if latency >= 0 else count
        if begin < count and in_sequence(pending, gpu, begin, end):
            found.key[number] = number_segment(members, begin, count, number, trace.site, trace.copied, found.segment)
            found.length[number] = max(end - max(arrivals[begin], pending.idle_since[gpu]), 0)
            found.size[number] = count - begin
            shown = 1
    pending.number[gpu], pending.deepest[gpu], pending.deepest_ordered[gpu] = 0, NONE, NONE
    pending.round[gpu] += 1
    pending.unnamed[gpu] = False
    pending.idle_since[gpu] = end
    return shown


@inner
def in_sequence(pending: Pending, gpu: int, begin: int, end: int) -> bool:
    """Return whether a device did its work from an operation on, until `end`, one after the other, and nothing else.

    Earlier work came before that in the same sequence, or the pause after it was as long as all the rest: what takes
    about as long as that was over.
    """
    first, count = pending.first[gpu], pending.number[gpu]
    whole = depth_of(pending, gpu, pending.deepest[gpu])
    if whole == count:
        return True
    last = begin
    for operation in range(begin + 1, count):
        last = deeper(pending, gpu, last, operation)
    length = 0
    while last >= begin:
        length += 1
        last = pending.before[first + last]
    if count - begin - length > BESIDE * (count - begin):
        return False
    arrivals = pending.arrival[first : first + count]
    paused = begin == 0 or arrivals[begin] - arrivals[begin - 1] >= end - arrivals[begin]
    return bool(paused or count - whole <= BESIDE * count)


@inner
def busy_since(pending: Pending, gpu: int, arrivals: Columns, end: int, latency: int) -> int:
    """Return the first of a device's operations from which on it worked without a pause until shortly before `end`.

    As far as is known, they take equally long. Then they share the time until the last is done;
    were it longer, the GPU would still have been busy. An operation after a long pause starts over, and one that comes
    while measured work before it lasts does not.
    """
    count = len(arrivals)
    begin = count - 1
    least = float(end - latency - arrivals[begin])
    for index in range(count - 2, -1, -1):
        each = (end - latency - arrivals[index]) / (count - index)
        if each <= least or (begin == index + 1 and is_queued(pending, gpu, begin)):
            begin = index
            least = each
    for index in range(begin + 1, count):
        paused = arrivals[index] - arrivals[index - 1] > 0.2 * (end - arrivals[begin])
        if paused and not is_queued(pending, gpu, index):
            begin = index
    return begin


@inner
def is_queued(pending: Pending, gpu: int, operation: int) -> bool:
    """Return whether an operation arrived while the device worked on the one before it, as events show."""
    place = pending.first[gpu] + operation
    return still_lasts(pending, gpu, pending.before[place], pending.arrival[place]) > 0


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
