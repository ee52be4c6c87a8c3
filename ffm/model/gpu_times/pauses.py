"""How long the GPU pauses between two pieces of work of a stream when the second is queued behind the first.

The pause is a property of the device. A wait for several pieces of work includes it, although it belongs to none of
them; and work that queues only because a wait before it was removed adds one more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.timeline import Timeline

PAUSE_NS = 800
"""The pause, if the run does not show it. Medians in traces of Nsight Systems: 700 on an RTX 3060, 800 on an RTX 3090,
1,500 on a T4.
"""

ENOUGH = 3
"""This many pauses must be seen before their median counts."""

ERROR_OF_MEDIAN = 1.858
"""The standard error of a median, times the square root of the sample's size, by the median deviation from it, of
normally distributed values (1.4826 times that deviation is their standard deviation, of which the median's error is
1.2533 times that of the mean).
"""

USUAL = 0.95
"""The share of latencies that differ from their median no more than usual."""

LOOKED_AT = 1_000_000
"""The rows in which segments are looked at: more would take memory, and tell no more of a property of the device."""


def usual_pause(
    timeline: Timeline, work: DeviceWork, segment: NDArray[np.int32], length: NDArray[np.int64], latency_ns: int
) -> int:
    """Return the usual nanoseconds between two pieces of work of which the second was there before the first was over.

    What waits show of it also contains how late the GPU began and each thread woke up. Where that scatters so much that
    the pause may be anything up to twice `PAUSE_NS`, the run does not show it.

    Args:
        timeline: the run.
        work: what its rows do; what is known of the GPU's times shows the pauses.
        segment: each row's segment (`ffm.model.gpu_times.segments.find_segments`), shape (n,); -1 for none.
        length: each segment's nanoseconds.
        latency_ns: the least latency of a wait for an idle GPU.
    """
    if work.began is not None:
        seen = _between_recorded(timeline, work)
    else:
        seen = _within_segments(timeline, work, segment, length, latency_ns)
    if len(seen) < ENOUGH:
        return PAUSE_NS
    middle = np.median(seen)
    error = ERROR_OF_MEDIAN * np.median(np.abs(seen - middle)) / np.sqrt(len(seen))
    return max(int(middle), 0) if error < PAUSE_NS else PAUSE_NS


def _between_recorded(timeline: Timeline, work: DeviceWork) -> NDArray[np.float64]:
    """Return the pauses between kernels of which a profiler recorded when the GPU ran them. Around copies, which other
    parts of the GPU do, they are longer.
    """
    assert work.began is not None
    rows = np.flatnonzero((work.began >= 0) & (work.stream >= 0) & (work.measured > 0))
    rows = rows[np.lexsort((work.began[rows], work.stream[rows]))]
    first, second = rows[:-1], rows[1:]
    over = work.began[first] + work.measured[first]
    queued = (work.stream[first] == work.stream[second]) & (_arrivals(timeline, work, second) < over)
    queued &= (work.copied[first] == 0) & (work.copied[second] == 0)
    pauses: NDArray[np.float64] = (work.began[second] - over)[queued].clip(0).astype(np.float64)
    return pauses


def _within_segments(
    timeline: Timeline, work: DeviceWork, segment: NDArray[np.int32], length: NDArray[np.int64], latency_ns: int
) -> NDArray[np.float64]:
    """Return, for each segment whose work was measured and queued, what it and the wait's latency leave over for each
    pause.

    Segments of one piece of work show the latency. Those of several may all have another one: they come where the
    program has done something else, after which the GPU and the thread have slept longer. So a segment shows its pauses
    only if there are so many that no usual difference between latencies would pass for them.
    """
    rows = np.flatnonzero(segment[:LOOKED_AT] >= 0)
    rows = rows[np.argsort(segment[rows], kind="stable")]
    number, measured = segment[rows], work.measured[rows].clip(0)
    length = length[: int(number.max(initial=-1)) + 1]
    size = np.bincount(number, minlength=len(length))
    total = np.bincount(number, weights=measured, minlength=len(length))
    complete = np.bincount(number, weights=work.measured[rows] >= 0, minlength=len(length)) == size
    left = length - total
    alone = complete & (size == 1)
    latency, differs = float(latency_ns), float(latency_ns)
    if np.count_nonzero(alone) >= ENOUGH:
        latency = float(np.median(left[alone].clip(0)))
        differs = float(np.quantile(np.abs(left[alone].clip(0) - latency), USUAL))
    begin = np.cumsum(size) - size
    done = np.cumsum(measured) - measured
    done = done - done[begin[number]]  # by the segment's operations before the row
    arrival = _arrivals(timeline, work, rows)
    late = arrival - arrival[begin[number]] > done
    queued = np.bincount(number, weights=late, minlength=len(length)) == 0
    shows = complete & queued & (size > 1) & ((size - 1) * PAUSE_NS > differs)
    pauses: NDArray[np.float64] = (left[shows] - latency) / (size[shows] - 1)
    return pauses


def _arrivals(timeline: Timeline, work: DeviceWork, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the work of some rows reached its stream."""
    waits_first = work.action[rows] == Action.WAIT_AND_ENQUEUE
    before = np.where(waits_first, timeline.duration[rows], own_before_wait(timeline, work, rows))
    arrivals: NDArray[np.int64] = timeline.start[rows] + before
    return arrivals
