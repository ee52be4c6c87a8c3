"""The pass that finds what each wait and each piece of GPU work waited for (`ffm.model.waiting.graph`), in the part of
Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inner
from ffm.model.gpu_times.call_times import enqueued_at
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
)
from ffm.model.visits import process_of, row_at

Columns = NDArray[Any]

BY_LAUNCH = 0
BY_STREAM = 1
BY_EVENT = 2
BY_LEGACY = 3
"""Values of `ffm.model.waiting.graph.Reason`."""


class Calls(NamedTuple):
    """What the rows do, and on which streams."""

    thread: Columns
    start: Columns
    duration: Columns
    wait: Columns
    action: Columns
    stream: Columns
    event: Columns
    after_wait: Columns
    """`DeviceWork.behind`."""
    gpu: Columns
    """Nanoseconds of each row's GPU work."""
    pause: int
    """Between a stream's work and the next if that is queued."""
    began: Columns
    """When that began, or -1 if that follows from the order of streams; empty if it does of all rows."""
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    gpu_of_stream: Columns
    """The columns of `ffm.model.device.Gpus`."""
    first_gpu: Columns


class Links(NamedTuple):
    """The columns of `ffm.model.waiting.graph.Graph`."""

    gpu_begin: Columns
    gpu_end: Columns
    gpu_after: Columns
    gpu_reason: Columns
    cause: Columns
    waited: Columns


class Places(NamedTuple):
    """What later work or a wait can come after: the work of each stream, of each process, of each device, ..."""

    over: Columns
    """When the work of each place is done."""
    row: Columns
    """The last row of it; -1 if there is none."""
    reason: Columns
    """Why later work of the place comes after that row."""
    processes: int
    """The place of all work of process 0; the other processes' follow, as in the other ranges of places."""
    gpus: int
    """The place of all work of device 0."""
    ordered: int
    """The place of all that the legacy stream of process 0 orders."""
    events: int
    """The place of the work before event 0. The last place is that of no event, as the one before `processes` is that
    of no stream."""


@inner
def done_later(places: Places, place: int, end: int, row: int) -> bool:
    """Return whether work of a row, over at `end`, ends what a place stands for, which then has both."""
    if end < places.over[place]:
        return False
    places.over[place] = end
    places.row[place] = row
    return True


@inner
def put_work(calls: Calls, places: Places, links: Links, row: int, called: int) -> None:
    """Place the GPU work of a row, which its call, over at `called`, puts on a stream."""
    process = process_of(calls, row)
    lane, legacy = index(calls.stream[row]), calls.legacy[process]
    began = calls.began[row] if len(calls.began) > 0 else -1
    given = began >= 0
    ready = min(called, began) if given else called  # if the work began while the call lasted, then
    other = -1
    if legacy >= 0 and legacy == lane:
        other = places.ordered + process
    elif legacy >= 0 and not calls.apart[lane]:
        other = legacy
    after = -1
    reason = BY_LAUNCH
    for kind in range(2):
        before = lane if kind == 0 else other
        # A dependency that was over only later was none: the profiler knows when the work began.
        if before < 0:
            continue
        before = index(before)
        if places.row[before] < 0 or (given and places.over[before] > began):
            continue
        begin = places.over[before] + (calls.pause if kind == 0 and not given else 0)
        if begin > ready:
            ready = begin
            after = places.row[before]
            reason = int(places.reason[lane]) if kind == 0 else BY_LEGACY
    first = began if given else ready
    end = first + int(calls.gpu[row])
    links.gpu_begin[row] = first
    links.gpu_end[row] = end
    links.gpu_after[row] = after
    links.gpu_reason[row] = reason
    if done_later(places, lane, end, row):
        places.reason[lane] = BY_STREAM
    done_later(places, index(places.processes + process), end, row)
    done_later(places, index(places.gpus + calls.gpu_of_stream[lane]), end, row)
    if not calls.apart[lane]:
        done_later(places, index(places.ordered + process), end, row)


@inner
def place_before(calls: Calls, places: Places, row: int, does: int) -> int:
    """Return the place of the work that a row waits for, or records an event after."""
    process = process_of(calls, row)
    lane = calls.stream[row]
    if does == WAIT_EVENT:
        return index(places.events + calls.event[row]) if calls.event[row] >= 0 else index(len(places.over) - 1)
    if lane < 0:
        return index(places.processes + process)
    if does == WAIT_CONTEXT:
        return index(places.gpus + calls.gpu_of_stream[index(lane)])
    return index(places.ordered + process if calls.legacy[process] == lane else lane)


@inner
def wait_for(calls: Calls, places: Places, links: Links, row: int, does: int, target: int) -> None:
    """Note the work of a place as the cause of a row's wait, unless it was over before."""
    since = enqueued_at(calls, row) if does == ENQUEUE_AND_WAIT else calls.start[row]
    if places.row[target] >= 0 and places.over[target] > since:
        links.cause[row] = places.row[target]
        links.waited[row] = min(places.over[target], since + calls.wait[row]) - since


def link(order: Columns, calls: Calls, links: Links, streams: int, events: int, threshold: int) -> None:
    """Place the GPU's work, and fill in the links, which contain zeros, or -1 for `gpu_after` and `cause`.

    A wait must last more than `threshold` nanoseconds to have waited for something.
    """
    processes = len(calls.legacy)
    gpus = streams + 1 + processes
    ordered = gpus + calls.first_gpu[processes]
    size = ordered + processes + events + 1
    places = Places(
        np.zeros(size, np.int64), np.full(size, -1, np.int64), np.zeros(streams + 1, np.uint8),
        streams + 1, gpus, ordered, ordered + processes,
    )  # fmt: skip
    for place in range(len(calls.thread)):
        row = row_at(order, place)
        does = calls.action[row] if calls.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        lane, event = calls.stream[row], calls.event[row]
        enqueues = lane >= 0 and calls.gpu[row] > 0
        if enqueues and does in (ENQUEUE, ENQUEUE_AND_WAIT, LOAD_AND_ENQUEUE):
            put_work(calls, places, links, row, enqueued_at(calls, row))
        if does == RECORD_EVENT and event >= 0:
            target = place_before(calls, places, row, does)
            recorded = index(places.events + event)
            places.over[recorded] = places.over[target]
            places.row[recorded] = places.row[target]
        elif does == STREAM_WAIT_EVENT and event >= 0 and lane >= 0:
            recorded, behind = index(places.events + event), index(lane)
            if places.over[recorded] > places.over[behind]:
                done_later(places, behind, places.over[recorded], places.row[recorded])
                places.reason[behind] = BY_EVENT
        elif ENQUEUE_AND_WAIT <= does <= WAIT_EVENT and calls.wait[row] > threshold:
            wait_for(calls, places, links, row, does, place_before(calls, places, row, does))
        if enqueues and does == WAIT_AND_ENQUEUE:
            put_work(calls, places, links, row, calls.start[row] + calls.duration[row])
