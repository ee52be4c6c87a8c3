"""The passes that infer the GPU's times (`ffm.model.gpu_times`), in the part of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
from ffm.model.numbers import (
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_STREAM,
)

Columns = NDArray[Any]


def find_segments(
    order: Columns,
    thread: Columns,
    start: Columns,
    duration: Columns,
    wait: Columns,
    site: Columns,
    action: Columns,
    stream: Columns,
    copied: Columns,
    process_of_thread: Columns,
    threshold: int,
    latency: int,
    segment: Columns,
    room: Columns,
) -> tuple[Columns, Columns, Columns]:
    """Find the stretches of GPU work whose length is shown by a wait, and fill in each enqueuing row's `segment`.

    A segment is the work of one stream from when the stream was known to be idle to the end of a wait for all of it,
    while no other stream of the process had work. Returns for each segment the nanoseconds from the arrival of its
    first work to the end of the wait, a hash of its operations, and their number. If operations came one by one, so
    that the GPU may have been idle between them, only those after the last such pause count. A wait must last
    `threshold` nanoseconds to show that it waited for something, and lasts at least `latency` beyond the work. Rows in
    no segment get -1. `room` receives, for work of a stream that was waited for, the nanoseconds until the stream's
    next work arrived or the stream was seen to be idle; -1 if neither is known.
    """
    rows = len(order)
    length = np.empty(rows, np.int64)  # what is not written to takes no memory
    key = np.empty(rows, np.int64)
    size = np.empty(rows, np.int64)
    found = 0
    members = np.empty(rows, np.int32)
    arrivals = np.empty(rows, np.int64)
    count = 0  # pending operations
    pending_stream = -1  # -2: of several streams
    idle_since = 0
    process = -1
    for place in range(rows):
        row = order[place]
        owner = process_of_thread[thread[row]]
        if owner != process:
            process = owner
            count = 0
            pending_stream = -1
            idle_since = 0
        segment[row] = -1
        room[row] = -1
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        waits_first = does in (WAIT_AND_ENQUEUE, WAIT_CONTEXT, WAIT_STREAM)
        if does in (ENQUEUE, ENQUEUE_AND_WAIT):
            arrival = start[row] + duration[row] - wait[row]
            if count == 0:
                pending_stream = stream[row]
            elif pending_stream != stream[row]:
                pending_stream = -2
            members[count] = row
            arrivals[count] = arrival
            count += 1
        if does == ENQUEUE_AND_WAIT or waits_first:
            end = start[row] + wait[row] if waits_first else start[row] + duration[row]
            everything = does == WAIT_CONTEXT or (pending_stream >= 0 and stream[row] == pending_stream)
            if count > 0 and everything:
                if pending_stream >= 0:
                    done = start[row] if waits_first and wait[row] <= threshold else -1
                    make_room(members, arrivals, count, done, room)
                if wait[row] > threshold and pending_stream >= 0:
                    begin = busy_since(arrivals, count, end, latency)
                    key[found] = number_segment(members, begin, count, found, site, copied, segment)
                    length[found] = max(end - max(arrivals[begin], idle_since), 0)
                    size[found] = count - begin
                    found += 1
                count = 0
                pending_stream = -1
                idle_since = end
            elif count == 0:
                idle_since = max(idle_since, end)
        if does == WAIT_AND_ENQUEUE:
            arrival = start[row] + duration[row]
            if count == 0:
                pending_stream = stream[row]
            elif pending_stream != stream[row]:
                pending_stream = -2
            members[count] = row
            arrivals[count] = arrival
            count += 1
    return length[:found], key[:found], size[:found]


@inner
def busy_since(arrivals: Columns, count: int, end: int, latency: int) -> int:
    """Return the first of `count` operations from which on the GPU worked without a pause until shortly before `end`.

    As far as can be told, they take equally long. Then they last until when the last is done, shared by all of them;
    were it longer, the GPU would still have been busy. An operation after a long pause begins anew.
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


@inner
def can_begin(called: int, lane: int, is_legacy: bool, legacy: int, apart: Columns, over: Columns, ordered: int) -> int:
    """Return when work can begin that a stream gets at `called`, if what the legacy stream orders is over at
    `ordered`.
    """
    first: int = max(called, over[lane])
    if is_legacy:
        first = max(first, ordered)
    elif legacy >= 0 and not apart[lane]:
        first = max(first, over[legacy])
    return first


@inner
def work_until(
    end: int, lane: int, process: int, apart: Columns, over: Columns, latest: Columns, ordered: Columns
) -> None:
    """Let the work of a stream be over at `end`: its own, with all of its process, and with all that the legacy stream
    orders.
    """
    over[lane] = end
    latest[process] = max(latest[process], end)
    if not apart[lane]:
        ordered[process] = max(ordered[process], end)


@inner
def last_of_all(newest: int, last: Columns, over: Columns, stream_process: Columns, process: int) -> int:
    """Return the stream of a process whose work a wait for everything waited for: `newest`, which got work last, unless
    something has waited for that before; then the one whose work is over last, or -1.
    """
    if newest < 0 or last[newest] >= 0:
        return newest
    found = -1
    for number in range(len(stream_process)):
        if stream_process[number] == process and last[number] >= 0 and (found < 0 or over[number] > over[found]):
            found = number
    return found


def fit(
    order: Columns,
    thread: Columns,
    start: Columns,
    duration: Columns,
    wait: Columns,
    action: Columns,
    stream: Columns,
    event: Columns,
    process_of_thread: Columns,
    legacy: Columns,
    apart: Columns,
    stream_process: Columns,
    events: int,
    threshold: int,
    tolerance: int,
    allowed: Columns,
    site: Columns,
    excused: Columns,
    gpu: Columns,
    ready: Columns,
    latency: Columns,
) -> tuple[int, int]:
    """Simulate the run as it was, and make the GPU's times agree with the waits.

    `gpu` contains the expected nanoseconds of each enqueuing row's work, and is corrected in place. No work lasts
    beyond the end of a wait for it. A wait that ends later than expected by more than `allowed` for the last work, or
    by more than `excused` for the wait's site, shows that this work took longer, by all of that time but `tolerance`.
    The rest of a wait goes into `latency`: the time
    from the end of the work until the CPU continues or, as a negative number (-1 - wait), a wait for nothing known.
    `ready` receives, for each row, when all earlier work of its process was done.

    Returns the nanoseconds of waiting that the GPU's work explains, and those of all waiting.
    """
    streams = len(stream_process)
    processes = len(legacy)
    over = np.zeros(streams + 1, np.int64)  # when each stream's work is done
    latest = np.zeros(processes, np.int64)  # when all work of a process is done,
    ordered = np.zeros(processes, np.int64)  # and all that the legacy stream orders
    last = np.full(streams + 1, -1, np.int64)  # each stream's last work that nothing has waited for
    last_anywhere = np.full(processes, -1, np.int64)  # the stream of a process's last work,
    last_ordered = np.full(processes, -1, np.int64)  # and of the last that the legacy stream orders
    before = np.empty(len(thread), np.int32)  # the previous work on the same stream
    begun = np.empty(len(thread), np.int64)
    recorded = np.zeros(events + 1, np.int64)
    explained = 0
    waited = 0
    for place in range(len(order)):
        row = order[place]
        process = process_of_thread[thread[row]]
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        lane = stream[row]
        is_legacy = legacy[process] >= 0 and legacy[process] == lane
        own = duration[row] - wait[row]
        begin = start[row]
        ready[row] = latest[process]
        latency[row] = -1 - wait[row]
        waited += wait[row]
        for part in range(2):
            if does == WAIT_AND_ENQUEUE if part == 1 else does in (ENQUEUE, ENQUEUE_AND_WAIT):
                arrival = begin + own if part == 0 else begin + duration[row]
                first = can_begin(arrival, lane, is_legacy, legacy[process], apart, over, ordered[process])
                work_until(first + gpu[row], lane, process, apart, over, latest, ordered)
                begun[row] = first
                before[row] = last[lane]
                last[lane] = row
                last_anywhere[process] = lane
                if not apart[lane]:
                    last_ordered[process] = lane
            if part == 1:
                break
            if does == RECORD_EVENT:
                recorded[event[row]] = ordered[process] if is_legacy else over[lane]
            elif does == STREAM_WAIT_EVENT:
                work_until(max(over[lane], recorded[event[row]]), lane, process, apart, over, latest, ordered)
            elif ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
                after = begin + own if does == ENQUEUE_AND_WAIT else begin
                end = after + wait[row]
                blocks = wait[row] > threshold
                if does == WAIT_EVENT:
                    target = recorded[event[row]]
                elif does == WAIT_CONTEXT:
                    target = latest[process]
                else:
                    target = ordered[process] if is_legacy else over[lane]
                limit = end if blocks else after
                if target > limit:  # done by then, whatever was expected
                    if does == WAIT_EVENT:
                        recorded[event[row]] = limit
                    else:
                        latest[process] = 0
                        ordered[process] = 0
                        for number in range(streams):
                            if stream_process[number] != process:
                                continue
                            covered = does == WAIT_CONTEXT or number == lane or (is_legacy and not apart[number])
                            if over[number] > limit and covered:
                                work = last[number]
                                while work >= 0:
                                    gpu[work] = max(min(gpu[work], limit - begun[work]), 0)
                                    if begun[work] <= limit:
                                        break
                                    begun[work] = limit
                                    work = before[work]
                                over[number] = limit
                            work_until(over[number], number, process, apart, over, latest, ordered)
                    target = limit
                elif blocks and does != WAIT_EVENT and end - tolerance > target:
                    number = last_ordered[process] if is_legacy else lane
                    if does == WAIT_CONTEXT:
                        number = last_of_all(last_anywhere[process], last, over, stream_process, process)
                    work = last[number] if number >= 0 else -1
                    if work >= 0 and end - min(allowed[work], excused[site[row]]) <= target:
                        work = -1
                    if work >= 0 and end - tolerance > begun[work]:
                        target = end - tolerance
                        gpu[work] = target - begun[work]
                        work_until(target, number, process, apart, over, latest, ordered)
                if does != ENQUEUE_AND_WAIT:
                    ready[row] = latest[process]  # as the wait has shown
                if target > after:
                    latency[row] = end - target
                    explained += wait[row]
                elif not blocks:
                    explained += wait[row]
                if does != WAIT_EVENT:
                    for number in range(streams):
                        covered = does == WAIT_CONTEXT or number == lane or (is_legacy and not apart[number])
                        if stream_process[number] == process and covered:
                            last[number] = -1
    return explained, waited
