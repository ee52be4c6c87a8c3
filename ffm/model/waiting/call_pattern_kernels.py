"""The passes that find work which a thread puts on the GPU and waits for at once, and transfers that follow each other
(`ffm.model.waiting.call_patterns`), in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
from ffm.model.numbers import (
    ENQUEUE_AND_WAIT,
    FROM_DEVICE,
    RECORD_EVENT,
    SET_AND_WAIT,
    TO_DEVICE,
    TRANSFER,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
    WAIT_STREAM,
)
from ffm.model.visits import row_at

Columns = NDArray[Any]


class Rows(NamedTuple):
    """Columns of `Timeline`, `DeviceWork` and `Graph`."""

    thread: Columns
    action: Columns
    stream: Columns
    event: Columns
    gpu_begin: Columns
    gpu_end: Columns
    cause: Columns
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    """`DeviceWork.apart`"""


def offloads(order: Columns, rows: Rows, streams: int, events: int) -> tuple[int, int]:
    """Count the waits for nothing but work that the call itself, or the one before it, put on the GPU; return that, and
    the nanoseconds of that work. Rows are visited in `order`, each process's by time.

    Records of events between the two are passed over.
    """
    threads, processes = len(rows.process_of_thread), len(rows.legacy)
    before = np.full(threads, -1, np.int64)
    waiting = np.zeros(streams + 1, np.int64)  # pieces of work of each stream that nobody has waited for
    since = np.zeros(streams + 1, np.int64)  # how often all of its kind had been waited for then
    # Of streams that the legacy stream orders, and of the others:
    of_process = np.zeros((2, processes), np.int64)
    waits = np.zeros((2, processes), np.int64)
    recorded = np.full(events + 1, streams, np.int64)  # the stream on which each event was recorded last
    free = np.zeros(len(rows.thread), np.bool_)  # whether nobody has waited for the row's work
    count, lasting = 0, 0
    for place in range(len(rows.thread)):
        row = row_at(order, place)
        thread = rows.thread[row]
        process = rows.process_of_thread[thread]
        action = rows.action[row] if rows.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        stream = rows.stream[row] if rows.stream[row] >= 0 else streams
        if action == RECORD_EVENT:
            recorded[rows.event[row]] = stream
            continue
        works = rows.gpu_end[row] > rows.gpu_begin[row]
        if action == WAIT_EVENT:
            stream = recorded[rows.event[row]]
        kind = int(rows.apart[stream])
        if since[stream] != waits[kind, process]:
            waiting[stream], since[stream] = 0, waits[kind, process]
        own = works and action == ENQUEUE_AND_WAIT
        if action in (ENQUEUE_AND_WAIT, WAIT_AND_ENQUEUE, WAIT_CONTEXT, WAIT_STREAM, WAIT_EVENT):
            all_of = 2 if action == WAIT_CONTEXT else int(stream == rows.legacy[process])  # so many kinds
            last = before[thread]
            mine = last >= 0 and free[last] and (rows.apart[rows.stream[last]] < all_of or rows.stream[last] == stream)
            pending = int(own) + (waiting[stream] if all_of == 0 else 0)
            for one in range(all_of):
                pending += of_process[one, process]
            if rows.cause[row] >= 0 and 0 < pending == int(own) + int(mine):
                first = last if mine else row
                count += 1
                lasting += rows.gpu_end[row if own else last] - rows.gpu_begin[first]
            for one in range(all_of):
                waits[one, process] += 1
                of_process[one, process] = 0
            if all_of == 0:
                of_process[kind, process] -= waiting[stream]
                waiting[stream] = 0
            if mine:
                free[last] = False
        if works and not own:
            if since[stream] != waits[kind, process]:
                waiting[stream], since[stream] = 0, waits[kind, process]
            waiting[stream] += 1
            of_process[kind, process] += 1
            free[row] = True
        before[thread] = row
    return count, lasting


class Works(NamedTuple):
    """Columns of `Timeline`, `DeviceWork` and `Graph`."""

    thread: Columns
    duration: Columns
    wait: Columns
    kind: Columns
    direction: Columns
    gpu_begin: Columns
    gpu_end: Columns
    recorded: Columns
    """How many calls that do not work on the GPU were recorded up to each row; empty if none are."""


def consecutive_transfers(rows: Columns, works: Works) -> tuple[int, int, bool]:
    """Count the transfers among some rows of one GPU that directly follow another one with the same direction, and add
    up what they and the rest of their calls took, in nanoseconds; also return whether the rows come by when the GPU
    began them, then by when it ended. If they do not, the two numbers mean nothing.
    """
    begins, ends, kind, direction = works.gpu_begin, works.gpu_end, works.kind, works.direction
    duration, wait = works.duration, works.wait
    count, lasting = 0, 0
    over = last_begin = last_end = np.int64(-1)
    former = -1  # the row before the last, if it is a transfer that nothing overlaps
    after = True  # whether nothing that began before the last row overlaps it
    for place in range(len(rows) + 1):
        ends_here = place == len(rows)
        begin = over if ends_here else begins[rows[place]]
        if place > 0:
            last = rows[place - 1]
            alone = after and begin >= over and kind[last] == TRANSFER and direction[last] in (TO_DEVICE, FROM_DEVICE)
            if alone and former >= 0 and can_be_joined(works, former, last):
                count += 1
                lasting += ends[last] - begins[last] + duration[last] - wait[last]
            former = last if alone else -1
            after = bool(begin >= over)
        if not ends_here:
            end = ends[rows[place]]
            if place > 0 and (begin < last_begin or (begin == last_begin and end < last_end)):
                return 0, 0, False
            last_begin, last_end, over = begin, end, max(over, end) if place > 0 else end
    return count, lasting, True


@inner
def can_be_joined(works: Works, former: int, latter: int) -> bool:
    """Return whether two transfers have the same direction, and their thread called nothing between them but what works
    on the GPU, if that was recorded.
    """
    recorded = works.recorded
    own = len(recorded) == 0 or works.thread[latter] != works.thread[former] or recorded[latter] == recorded[former]
    return bool(own and works.direction[former] == works.direction[latter])
