"""Patterns of calls that follow each other, after CASITA (Dietrich 2019, 4.1): polling, synchronous offload, and
consecutive transfers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import is_one_of
from ffm.model.compiled import run
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.fitting import visiting_order
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting import call_pattern_kernels
from ffm.model.waiting.graph import Graph

_WAITS = (
    Action.ENQUEUE_AND_WAIT,
    Action.WAIT_AND_ENQUEUE,
    Action.WAIT_CONTEXT,
    Action.WAIT_STREAM,
    Action.WAIT_EVENT,
    Action.SET_AND_WAIT,
)


def polling(timeline: Timeline, work: DeviceWork) -> tuple[int, int]:
    """Count the runs of queries by one thread that found one stream or event unfinished, with no other wait of the
    thread between them; return that, and the nanoseconds of these queries: CASITA's early non-blocking synchronization.
    """
    if work.asked is None:
        return 0, 0
    rows = np.flatnonzero(work.asked >= 0)
    if not len(rows):
        return 0, 0
    waits = np.cumsum(is_one_of(work.action, _WAITS))
    rows = rows[np.lexsort((rows, work.asked[rows] >> 1, timeline.thread[rows]))]
    unfinished = (work.asked[rows] & 1).astype(bool)
    goes_on = np.zeros(len(rows), bool)
    before, after = rows[:-1], rows[1:]
    goes_on[1:] = unfinished[:-1] & (work.asked[before] >> 1 == work.asked[after] >> 1)
    goes_on[1:] &= (timeline.thread[before] == timeline.thread[after]) & (waits[before] == waits[after])
    return int((unfinished & ~goes_on).sum()), int(timeline.duration[rows[unfinished]].sum())


def offloads(timeline: Timeline, work: DeviceWork, graph: Graph) -> tuple[int, int]:
    """Count the waits for nothing but work that the call itself or the one before it put on the GPU, so that the CPU
    did nothing beside it; return that, and the nanoseconds of that work. O(n log n).
    """
    if not len(timeline):
        return 0, 0
    order = visiting_order(timeline, work)
    rows = call_pattern_kernels.Rows(
        timeline.thread,
        work.action,
        work.stream,
        work.event,
        graph.gpu_begin,
        graph.gpu_end,
        graph.cause,
        work.process_of_thread,
        work.legacy,
        work.apart,
    )
    count, lasting = run(call_pattern_kernels.offloads, len(timeline), order, rows, work.streams, work.events)
    return int(count), int(lasting)


def consecutive_transfers(timeline: Timeline, work: DeviceWork, graph: Graph) -> tuple[int, int]:
    """Count the transfers that directly follow another one with the same direction on their GPU; return that, and what
    they and the rest of their calls took, in nanoseconds: what joining them would save at most. O(n log n).

    No other work of the GPU may run beside or between the two. If a profiler recorded messages (`DeviceWork.awaits`),
    their thread must not have called something else between their calls than what works on the GPU.
    """
    if work.direction is None:
        return 0, 0
    recorded = np.zeros(0, np.int64)
    if work.awaits is not None:
        recorded = np.cumsum(
            (timeline.kind == Kind.OTHER) & is_one_of(work.action, (Action.NONE, Action.WAIT_THREAD, Action.LOAD))
        )
    works = call_pattern_kernels.Works(
        timeline.thread,
        timeline.duration,
        timeline.wait,
        timeline.kind,
        work.direction,
        graph.gpu_begin,
        graph.gpu_end,
        recorded,
    )
    count, lasting = 0, 0
    for _, rows in work.rows_by_gpu(np.flatnonzero(graph.works), timeline.thread):
        found, took, ordered = run(call_pattern_kernels.consecutive_transfers, len(rows), rows, works)
        if not ordered:
            rows = rows[np.lexsort((graph.gpu_end[rows], graph.gpu_begin[rows]))]
            found, took, _ = run(call_pattern_kernels.consecutive_transfers, len(rows), rows, works)
        count += int(found)
        lasting += int(took)
    return count, lasting


def unfinished_queries(objects: NDArray[np.int64], unfinished: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return `DeviceWork.asked` for queries of numbered objects (-1: no query) that were found unfinished or not."""
    return np.where(objects >= 0, objects * 2 + unfinished, -1).astype(np.int32)
