"""The pass that finds what each wait and each piece of GPU work waited for (`ffm.model.waiting.graph`), in the part of
Python that Numba compiles.

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
)

Columns = NDArray[Any]

BY_LAUNCH = 0
BY_STREAM = 1
BY_EVENT = 2
BY_LEGACY = 3
"""Values of `ffm.model.waiting.graph.Reason`."""


@inner
def over_after(place: int, end: int, row: int, over: Columns, over_row: Columns) -> bool:
    """Return whether work that is over at `end` ends what `place` stands for, which then has it and its row."""
    if end < over[place]:
        return False
    over[place] = end
    over_row[place] = row
    return True


def link(
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
    streams: int,
    events: int,
    threshold: int,
    gpu: Columns,
    began: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    gpu_after: Columns,
    gpu_reason: Columns,
    cause: Columns,
    waited: Columns,
) -> None:
    """Place the GPU's work, and fill in the columns of `ffm.model.waiting.graph.Graph`, which contain zeros, or -1 for
    `gpu_after` and `cause`.

    `gpu` contains the nanoseconds of each row's work, `began` when it began, or -1 if that follows from the order of
    streams. A wait must last more than `threshold` nanoseconds to have waited for something.
    """
    processes = len(legacy)
    over = np.zeros(streams + 1, np.int64)  # when each stream's work is done,
    over_row = np.full(streams + 1, -1, np.int64)  # the last row of it,
    over_reason = np.zeros(streams + 1, np.uint8)  # and why later work of the stream comes after that row
    latest = np.zeros(processes, np.int64)  # likewise for all work of a process
    latest_row = np.full(processes, -1, np.int64)
    ordered = np.zeros(processes, np.int64)  # and for all that the legacy stream orders
    ordered_row = np.full(processes, -1, np.int64)
    recorded = np.zeros(events + 1, np.int64)  # and for the work before each event
    recorded_row = np.full(events + 1, -1, np.int64)
    for place in range(len(order)):
        row = order[place]
        process = process_of_thread[thread[row]]
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        lane = stream[row]
        is_legacy = legacy[process] >= 0 and legacy[process] == lane
        own = duration[row] - wait[row]
        for part in range(2):
            enqueues = does == WAIT_AND_ENQUEUE if part == 1 else does in (ENQUEUE, ENQUEUE_AND_WAIT)
            if enqueues and lane >= 0 and gpu[row] > 0:
                given = began[row] >= 0
                # The work comes when the call is over; if it began while the call lasted, then.
                called = start[row] + (own if part == 0 else duration[row])
                ready = min(called, began[row]) if given else called
                after = np.int64(-1)
                reason = BY_LAUNCH
                for kind in range(2):
                    if kind == 0:
                        done, row_before, because = over[lane], over_row[lane], int(over_reason[lane])
                    elif is_legacy:
                        done, row_before, because = ordered[process], ordered_row[process], BY_LEGACY
                    elif legacy[process] >= 0 and not apart[lane]:
                        done, row_before, because = over[legacy[process]], over_row[legacy[process]], BY_LEGACY
                    else:
                        continue
                    # A dependency that was over only later was none: the profiler knows when the work began.
                    if row_before >= 0 and done > ready and not (given and done > began[row]):
                        ready = done
                        after = row_before
                        reason = because
                first = began[row] if given else ready
                gpu_begin[row] = first
                gpu_end[row] = first + gpu[row]
                gpu_after[row] = after
                gpu_reason[row] = reason
                if over_after(lane, gpu_end[row], row, over, over_row):
                    over_reason[lane] = BY_STREAM
                over_after(process, gpu_end[row], row, latest, latest_row)
                if not apart[lane]:
                    over_after(process, gpu_end[row], row, ordered, ordered_row)
            if part == 1:
                break
            target, target_row = over[lane], over_row[lane]
            if does == WAIT_CONTEXT or lane < 0:
                target, target_row = latest[process], latest_row[process]
            elif is_legacy:
                target, target_row = ordered[process], ordered_row[process]
            if does == RECORD_EVENT and event[row] >= 0:
                recorded[event[row]], recorded_row[event[row]] = target, target_row
            elif does == STREAM_WAIT_EVENT and event[row] >= 0 and lane >= 0:
                if recorded[event[row]] > over[lane]:
                    over_after(lane, recorded[event[row]], recorded_row[event[row]], over, over_row)
                    over_reason[lane] = BY_EVENT
            elif ENQUEUE_AND_WAIT <= does <= WAIT_EVENT and wait[row] > threshold:
                after_own = start[row] + own if does == ENQUEUE_AND_WAIT else start[row]
                if does == WAIT_EVENT:
                    number = event[row] if event[row] >= 0 else events
                    target, target_row = recorded[number], recorded_row[number]
                if target_row >= 0 and target > after_own:
                    cause[row] = target_row
                    waited[row] = min(target, after_own + wait[row]) - after_own
