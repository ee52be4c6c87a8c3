"""The run with all of its problems fixed, as the replay simulates it, to find out what it then waits for.

A misplaced synchronization, which comes later then, waits within the CPU work after it, and counts as that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import has_any
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.timeline import Kind, Problem, Timeline

SET_BYTES_A_NANOSECOND = 10
"""Approximate speed at which a CPU sets memory: one core of a server from 2017 or later."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A run after its fixes. What disappeared takes no time and does nothing."""

    timeline: Timeline
    work: DeviceWork
    inference: Inference
    times: GpuTimes


def fixed_run(
    timeline: Timeline, work: DeviceWork, inference: Inference, start: NDArray[np.int64], wait: NDArray[np.int64]
) -> Fixed:
    """Return the run in which each row starts and waits as given, shape (n,), and the problems' calls are gone."""
    gone = _Gone.of(timeline, work)
    own = np.where(gone.call, 0, timeline.duration - timeline.wait)
    sets = gone.wait & (work.action == Action.SET_AND_WAIT)
    own[sets] = work.copied[sets] // SET_BYTES_A_NANOSECOND
    after_wait = work.after_wait
    if after_wait is not None:
        # A download without its wait goes to pinned memory, and copies nothing behind it.
        pinned = gone.wait | gone.moved
        own -= np.where(pinned, np.minimum(after_wait, own), 0)
        after_wait = np.where(pinned, np.int32(0), after_wait)
    duration = own + wait
    gap = timeline.gap.copy()
    following = timeline.thread[1:] == timeline.thread[:-1]
    gap[:-1] = np.where(following, (start[1:] - (start + duration)[:-1]).clip(0), gap[:-1])
    action = work.action.copy()
    enqueues = np.isin(action, (Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE))
    action[gone.wait] = np.where(enqueues, Action.ENQUEUE, Action.NONE)[gone.wait]
    action[gone.work] = np.where(gone.wait | ~enqueues, Action.NONE, Action.WAIT_STREAM)[gone.work]
    process = work.process_of_thread[timeline.thread]
    likely = inference.likely
    return Fixed(
        timeline=replace(timeline, start=start, wait=wait, duration=duration, gap=gap),
        work=replace(work, action=action, after_wait=after_wait),
        inference=replace(inference, order=np.lexsort((start, process))),
        times=replace(likely, gpu=np.where(gone.work, 0, likely.gpu)),
    )


@dataclass(frozen=True, slots=True)
class _Gone:
    """What fixing its problem takes from each row: its wait, its GPU work, its call (`ffm.model.estimators.replay`)."""

    wait: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    """Or whether its wait comes later."""
    work: NDArray[np.bool_]
    call: NDArray[np.bool_]

    @classmethod
    def of(cls, timeline: Timeline, work: DeviceWork) -> _Gone:
        kind, problem, partner = timeline.kind, timeline.problem, work.partner
        wait = has_any(problem, Problem.UNNECESSARY_SYNCHRONIZATION)
        kept = wait & (kind == Kind.FREE) & (partner >= 0)
        served = (kind == Kind.ALLOCATION) & (partner >= 0) & kept[partner]
        transfer = has_any(problem, Problem.UNNECESSARY_TRANSFER)
        call = transfer | (wait & (kind == Kind.SYNCHRONIZATION)) | kept | served
        moved = has_any(problem, Problem.MISPLACED_SYNCHRONIZATION)
        return cls(wait, moved, transfer | (wait & (work.action == Action.SET_AND_WAIT)), call)
