"""The latest end of work that several threads waited for, in the subset of Python that Numba compiles.

A stream does its work in order. So when a wait is over, whatever other threads waited for earlier on that stream is
done, too. Their waits may still end later, because these threads woke late.
"""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined, inner
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.gpu_times.simulated_gpu import Columns, Trace
from ffm.model.numbers import (
    ENQUEUE_AND_WAIT,
    SET_AND_WAIT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_STREAM,
)
from ffm.model.visits import is_legacy, process_of, row_at

FAR = 1 << 62
"""Nanoseconds."""


def waits_shown(trace: Trace) -> Columns:
    """Return when each row's wait is over or an earlier end of one that began later and covers the same; for rows that
    do not wait, or wait for an event, `FAR`. O(n).
    """
    rows, streams, processes = len(trace.thread), len(trace.gpu_of_stream), len(trace.legacy)
    shown = np.full(rows, FAR, np.int64)
    of_stream, of_process = no_end(streams), no_end(processes)
    of_gpu, ordered = no_end(int(trace.first_gpu[processes])), no_end(processes)
    for place in range(rows - 1, -1, -1):
        row = row_at(trace.order, place)
        does, lane = trace.action[row], trace.stream[row]
        process = process_of(trace, row)
        if does not in (ENQUEUE_AND_WAIT, SET_AND_WAIT, WAIT_AND_ENQUEUE, WAIT_CONTEXT, WAIT_STREAM):
            continue
        end = min(wait_end(trace, row), of_process[process])
        if lane >= 0:
            end = min(end, of_gpu[trace.gpu_of_stream[lane]])
        if does == WAIT_CONTEXT:
            column, number = (of_gpu, trace.gpu_of_stream[lane]) if lane >= 0 else (of_process, process)
        elif is_legacy(trace, row):
            column, number = ordered, process
        else:
            column, number = of_stream, lane
            if lane >= 0 and not trace.apart[lane]:
                end = min(end, ordered[process])
        shown[row] = min(end, column[number])
        column[number] = shown[row]
    return shown


@inlined
def no_end(count: int) -> Columns:
    """Return ends of which none is known."""
    return np.full(count, FAR, np.int64)


@inner
def wait_end(trace: Trace, row: int) -> int:
    """Return when a row's wait is over."""
    works_first = trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT)
    return int((enqueued_at(trace, row) if works_first else trace.start[row]) + trace.wait[row])
