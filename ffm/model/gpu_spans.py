"""When the GPU does the work that each row of a timeline enqueued, for display; based on `ffm.model.gpu_times`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import Inference
from ffm.model.timeline import Timeline


@dataclass(frozen=True, slots=True)
class GpuSpans:
    """One span for each row that put work on a stream, in call order."""

    row: NDArray[np.int64]
    begin: NDArray[np.int64]
    """Nanoseconds on the timeline's clock."""
    end: NDArray[np.int64]


def gpu_spans(timeline: Timeline, work: DeviceWork, inference: Inference) -> GpuSpans:
    """Place the likely work on its streams: in order, not before it was enqueued, and not before what it depends on.

    A call enqueues its work when its own work is done: before it waits, or after that if it waits for earlier work.
    Work depends on the events that its stream was made to wait for. It also depends on the legacy default stream: all
    later work of a process comes after that stream's work, which in turn comes after all earlier work.
    """
    lasting = inference.likely.gpu
    waits_first = work.action == Action.WAIT_AND_ENQUEUE
    enqueued = timeline.start + timeline.duration - np.where(waits_first, 0, timeline.wait)
    free = np.zeros(work.streams, np.int64)  # when each stream has finished all its work so far
    reached = np.zeros(work.events, np.int64)  # when each event happens
    ordered = {process: stream for process, stream in enumerate(work.legacy.tolist()) if stream >= 0}
    rows: list[int] = []
    begins: list[int] = []
    for row in inference.order[work.stream[inference.order] >= 0].tolist():
        action, stream, event = int(work.action[row]), int(work.stream[row]), int(work.event[row])
        legacy = ordered.get(int(work.stream_process[stream]), -1)
        if stream == legacy:
            free[stream] = free[work.stream_process == work.stream_process[stream]].max()
        elif legacy >= 0:
            free[stream] = max(free[stream], free[legacy])
        if action == Action.RECORD_EVENT and event >= 0:
            reached[event] = free[stream]
        elif action == Action.STREAM_WAIT_EVENT and event >= 0:
            free[stream] = max(free[stream], reached[event])
        elif lasting[row] > 0:
            begin = max(int(free[stream]), int(enqueued[row]))
            free[stream] = begin + int(lasting[row])
            rows.append(row)
            begins.append(begin)
    row_of = np.array(rows, np.int64)
    begin_of = np.array(begins, np.int64)
    return GpuSpans(row_of, begin_of, begin_of + lasting[row_of])
