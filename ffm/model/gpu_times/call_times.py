"""When a call that puts work on a stream does so: after its own time, but before its wait and what it does behind that.

A download to pageable memory waits for the GPU, and then the CPU copies (`DeviceWork.after_wait`). The kernels are in
the part of Python that Numba compiles; `calls` has the columns of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline


@inner
def behind_wait(calls: Any, row: int) -> int:
    """Return how much of a call's own time comes after its wait, if it waits for what it puts on a stream."""
    if len(calls.after_wait) == 0:
        return 0
    return int(min(calls.after_wait[row], calls.duration[row] - calls.wait[row]))


@inner
def enqueued_at(calls: Any, row: int) -> int:
    """Return when a call puts its work on a stream, if it does not wait before."""
    return int(calls.start[row] + calls.duration[row] - calls.wait[row] - behind_wait(calls, row))


def own_before_wait(timeline: Timeline, work: DeviceWork, rows: slice | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nanoseconds of some calls' own time before they put work on a stream, if they do not wait before."""
    own: NDArray[np.int64] = timeline.duration[rows] - timeline.wait[rows]
    return own if work.after_wait is None else own - np.minimum(own, work.after_wait[rows])
