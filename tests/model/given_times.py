"""GPU times that a test gives instead of having them inferred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.gpu_times.fitting import fit_times, visiting_order
from ffm.model.gpu_times.timelines import ENDLESS_NS, Inference
from ffm.model.timeline import Timeline


def given_gpu_times(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64]) -> Inference:
    """Return an inference with these times: shape (n,), nanoseconds, 0 for rows that enqueue nothing."""
    order = visiting_order(timeline, work)
    times = fit_times(timeline, work, order, gpu.astype(np.int64), 0, np.full(len(timeline), ENDLESS_NS))
    return Inference(order, times, times, times, 0, 0)
