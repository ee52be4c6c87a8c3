"""Whether streams of a run share parts of a device (`ffm.model.estimators.replay`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork, Direction, Fills
from ffm.model.estimators.simulation.state import COPIES_FROM, COPIES_TO, KERNELS, PERHAPS_KERNELS
from ffm.model.grouping import parts
from ffm.model.timeline import Kind, Timeline


def needed_engines(timeline: Timeline, work: DeviceWork) -> NDArray[np.uint8]:
    """Return which engine of its device each row's work needs alone, shape (n,): `COPIES_TO` and so on, or 0 for none.

    Empty if no two streams of a device need the same one: then all work of different streams may overlap. Kernels need
    none if all of their device fill little of it.
    """
    nothing = np.zeros(0, np.uint8)
    if work.streams < 2:
        return nothing
    uses = np.zeros((work.streams, 4), np.bool_)
    for part in parts(len(timeline)):
        stream = work.stream[part]
        for number, rows in enumerate(_users(timeline, work, part)):
            uses[stream[rows & (stream >= 0)], number] = True
    device = work.gpus.of_stream
    users = np.zeros((int(device.max()) + 1, uses.shape[1]), np.int64)
    np.add.at(users, device[: work.streams], uses)
    _, _, launch, launch_much = users.T
    alone = (launch > 1) & (launch_much > 0)
    if not alone.any() and not (users[:, :2] > 1).any():
        return nothing
    engine = np.zeros(len(timeline), np.uint8)
    for part in parts(len(timeline)):
        to, back, launches, _ = _users(timeline, work, part)
        launches &= alone[device[work.stream[part]]]
        engine[part][to], engine[part][back], engine[part][launches] = COPIES_TO, COPIES_FROM, PERHAPS_KERNELS
        if work.fills is not None:
            engine[part][launches & (work.fills[part] == Fills.ALL)] = KERNELS
    return engine


def _users(timeline: Timeline, work: DeviceWork, part: slice) -> list[NDArray[np.bool_]]:
    """Return which of some rows copy to a device, which copy from it, which have kernels, and which of these may fill
    so much of it that others cannot run beside them.
    """
    none = np.zeros(len(timeline.kind[part]), np.uint8)
    direction = none if work.direction is None else work.direction[part]
    fills = none if work.fills is None else work.fills[part]
    launches = timeline.kind[part] == Kind.LAUNCH
    return [
        direction == Direction.TO_DEVICE,
        direction == Direction.FROM_DEVICE,
        launches,
        launches & (fills != Fills.LITTLE),
    ]
