"""How much longer waits last than the work of their streams, where events measured all of that work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import ENQUEUES, Action, DeviceWork
from ffm.model.gpu_times.fitting import fit_times
from ffm.model.gpu_times.timelines import ENDLESS_NS
from ffm.model.grouping import parts
from ffm.model.timeline import Timeline

MEASURED_SHARE = 0.95
"""Events must have measured this share of a stream's work."""


def latencies_of_streams(
    timeline: Timeline, work: DeviceWork, order: NDArray[np.int64], pause: int
) -> NDArray[np.int64]:
    """Return the latencies in nanoseconds of the waits for single streams whose work was measured, shape (waits,), if
    there are several such streams.

    A device whose streams have work at once is seldom seen to be idle, so that few segments show what waits last beyond
    its work. Each stream does its own in order, though: what a wait lasts beyond the measured times of that is latency,
    or the time for which other streams kept the device from it. `order` and `pause` are as for `fit_times`.
    """
    nothing = np.empty(0, np.int64)
    if np.count_nonzero(work.apart[: work.streams]) < 2:
        return nothing
    enqueued, measured = np.zeros((2, work.streams), np.int64)
    for part in parts(len(timeline), work.streams):
        does, stream = work.action[part], work.stream[part]
        own = (stream >= 0) & ENQUEUES[does]
        enqueued += np.bincount(stream[own], minlength=work.streams)
        measured += np.bincount(stream[own & (work.measured[part] >= 0)], minlength=work.streams)
    known = work.apart[: work.streams] & (measured > 0) & (measured >= MEASURED_SHARE * enqueued)
    if np.count_nonzero(known) < 2:
        return nothing
    never_late = np.full(len(timeline), ENDLESS_NS)
    gpu = work.measured.clip(0).astype(np.int64)
    latency = fit_times(timeline, work, order, gpu, 0, never_late, pause=pause).latency.astype(np.int64, copy=False)
    waits = np.flatnonzero((latency >= 0) & (work.action == Action.WAIT_STREAM) & (work.stream >= 0))
    return latency[waits[known[work.stream[waits]]]]
