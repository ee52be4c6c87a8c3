"""Whether streams of a run share parts of a device (`ffm.model.estimators.replay`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork, Direction
from ffm.model.grouping import parts
from ffm.model.timeline import Kind, Timeline


def needed_engines(timeline: Timeline, work: DeviceWork) -> NDArray[np.uint8]:
    """Return the directions of transfers, shape (n,), or (0,) if no two streams of a device need the same engine: all
    kernels, or transfers in one direction. Without them, all work of different streams may overlap.
    """
    nothing = np.zeros(0, np.uint8)
    if work.streams < 2:
        return nothing
    known = np.zeros(len(timeline), np.uint8) if work.direction is None else work.direction
    copies = (Direction.TO_DEVICE, Direction.FROM_DEVICE)
    uses = np.zeros((work.streams, 1 + len(copies)), np.bool_)
    for part in parts(len(timeline)):
        stream = work.stream[part]
        uses[stream[(stream >= 0) & (timeline.kind[part] == Kind.LAUNCH)], 0] = True
        for number, direction in enumerate(copies, 1):
            uses[stream[(stream >= 0) & (known[part] == direction)], number] = True
    device = work.gpus.of_stream[: work.streams]
    users = np.zeros((int(device.max()) + 1, uses.shape[1]), np.int64)
    np.add.at(users, device, uses)
    return known if (users > 1).any() else nothing
