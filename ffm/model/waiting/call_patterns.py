"""Patterns of calls that follow each other, after CASITA (Dietrich 2019, 4.1): polling, synchronous offload, and
consecutive transfers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import Action, DeviceWork, Direction
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
    waits = np.cumsum(np.isin(work.action, _WAITS))
    rows = np.flatnonzero(work.asked >= 0)
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
    process = work.process_of_thread[timeline.thread]
    order = np.lexsort((timeline.start, process)).astype(np.int64)
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
    )
    count, lasting = run(call_pattern_kernels.offloads, len(order), order, rows, work.streams, work.events)
    return int(count), int(lasting)


def consecutive_transfers(timeline: Timeline, work: DeviceWork, graph: Graph) -> tuple[int, int]:
    """Count the transfers that directly follow another one with the same direction on their GPU; return that, and what
    they and the rest of their calls took, in nanoseconds: what joining them would save at most. O(n log n).

    No other work of the GPU may run beside or between the two. If a profiler told of messages (`DeviceWork.awaits`),
    their thread must not have called something else between their calls than what works on the GPU.
    """
    if work.direction is None:
        return 0, 0
    elsewhere = (timeline.kind == Kind.OTHER) & np.isin(work.action, (Action.NONE, Action.WAIT_THREAD))
    told = np.cumsum(elsewhere & (work.awaits is not None))
    rows = np.flatnonzero(graph.works)
    gpu = work.gpu_of(rows, timeline.thread)
    order = np.lexsort((graph.gpu_end[rows], graph.gpu_begin[rows], gpu))
    rows, gpu = rows[order], gpu[order]
    begin, end = graph.gpu_begin[rows], graph.gpu_end[rows]
    between = np.isin(work.direction[rows], (Direction.TO_DEVICE, Direction.FROM_DEVICE))
    between &= timeline.kind[rows] == Kind.TRANSFER
    count, lasting = 0, 0
    for one in np.unique(gpu).tolist():
        first, behind = np.searchsorted(gpu, (one, one + 1))
        mine = slice(first, behind)
        until = np.maximum.accumulate(end[mine])
        after = np.append(True, begin[mine][1:] >= until[:-1])  # nothing that began before runs beside it
        alone = between[mine] & after & np.append(after[1:], True)
        row = rows[mine]
        follows = alone[1:] & alone[:-1] & (work.direction[row[1:]] == work.direction[row[:-1]])
        follows &= (timeline.thread[row[1:]] != timeline.thread[row[:-1]]) | (told[row[1:]] == told[row[:-1]])
        excess = row[1:][follows]
        count += len(excess)
        lasting += int((graph.gpu_end[excess] - graph.gpu_begin[excess]).sum())
        lasting += int((timeline.duration[excess] - timeline.wait[excess]).sum())
    return count, lasting


def unfinished_queries(objects: NDArray[np.int64], unfinished: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return `DeviceWork.asked` for queries of numbered objects (-1: no query) that were found unfinished or not."""
    return np.where(objects >= 0, objects * 2 + unfinished, -1).astype(np.int32)
