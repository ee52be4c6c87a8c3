"""Fits expected times of the GPU's work to the waits of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import kernels, lone_fit, overtaken_waits
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.gpu_times.simulated_gpu import Trace
from ffm.model.gpu_times.timelines import ENDLESS_NS, GpuTimes, fits, shortened
from ffm.model.grouping import parts
from ffm.model.timeline import Timeline

WAITED_NS = 2_000
"""A longer wait really waited for the GPU; a shorter one only queried it. (Entering the driver's wait function for an
idle GPU takes 0.1 to 1 microseconds.)
"""


def visiting_order(timeline: Timeline, work: DeviceWork) -> NDArray[np.int64]:
    """Return the rows by process, then by when each acts on the GPU, as in `ffm.model.visits`. Rows are sorted by
    thread, and threads by process.

    A call enqueues before it waits, or at its end: what another thread begins to wait for meanwhile is not this work. A
    wait is for what was enqueued before it began.
    """
    if work.processes == len(work.process_of_thread):
        return np.empty(0, np.int64)
    acts = timeline.start.copy()
    for part in parts(len(acts)):
        waits = (work.action[part] >= Action.WAIT_AND_ENQUEUE) & (work.action[part] <= Action.WAIT_EVENT)
        acts[part] += np.where(waits, 0, own_before_wait(timeline, work, part))
    return np.lexsort((acts, work.process_of_thread[timeline.thread]))


def fit_times(
    timeline: Timeline,
    work: DeviceWork,
    order: NDArray[np.int64],
    gpu: NDArray[np.int64],
    tolerance: int,
    allowed: NDArray[np.int32],
    excused: NDArray[np.int64] | None = None,
    *,
    pause: int = 0,
) -> GpuTimes:
    """Fit the GPU's times to the waits. Arguments as for the kernel; `gpu` and `allowed` have shape (n,),
    `excused` (sites,), in nanoseconds; without the latter, no wait is doubted. `gpu` is used up.
    """
    if excused is None:
        excused = np.full(int(timeline.site.max(initial=-1)) + 1, ENDLESS_NS)
    rows = len(timeline)
    short, long = _two(rows, np.int32), _two(0, np.int64)
    too_long = np.zeros(1, np.bool_)
    trace = trace_of(timeline, work, order)
    shown = np.empty(0, np.int64)
    if work.processes < len(work.process_of_thread):
        shown = run(overtaken_waits.waits_shown, rows, trace)
    rules = kernels.Rules(WAITED_NS, tolerance, allowed, excused, pause, shown)
    fit = lone_fit.fit_lone if lone_fit.is_of_one_device(trace) else kernels.fit
    passes = 2  # waits shorten earlier work: the second pass sees from the beginning when it is done
    while passes:
        explained, waited = run(fit, rows, trace, rules, kernels.Fitted(gpu, *short, *long, too_long))
        passes -= 1
        if too_long[0] and not len(long[0]):
            short, long = _two(0, np.int32), _two(rows, np.int64)
            passes = 1
    left, latency = long if too_long[0] else short
    found = GpuTimes(gpu, left, latency, int(explained), int(waited), pause)
    if all(map(fits, (gpu, left, latency))):
        return replace(found, gpu=shortened(gpu), left=shortened(left), latency=shortened(latency))
    return found.of_type(np.int64)


def _two(rows: int, kind: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two columns of their own, one for what is `left` and one for the latency."""
    return np.empty(rows, kind), np.empty(rows, kind)


def trace_of(timeline: Timeline, work: DeviceWork, order: NDArray[np.int64]) -> Trace:
    """Return the run as the kernels read it."""
    gpus = work.gpus
    return Trace(
        order=order,
        thread=timeline.thread,
        start=timeline.start,
        duration=timeline.duration,
        wait=timeline.wait,
        site=timeline.site,
        action=work.action,
        stream=work.stream,
        event=work.event,
        copied=work.copied,
        after_wait=work.behind,
        process_of_thread=work.process_of_thread,
        legacy=work.legacy,
        apart=work.apart,
        gpu_of_stream=gpus.of_stream,
        first_gpu=gpus.first,
        events=work.events,
    )
