"""Unproved problems: every wait and every transfer, presumed unnecessary.

One traced run does not show what a program needs. It does show how much removing a site would save if that proves
possible: no proof can find more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.timelines import Inference
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents.benefit import Benefit
from ffm.results.estimates import Estimates
from ffm.results.variation import Variation

SLOWEST_COPY = 1
"""Bytes a nanosecond: hardly a GPU copies more slowly, even from pageable memory."""

COPY_NS = 50_000
"""What a copy takes besides, at most: its way to the GPU, and the events that time it."""

_WAITING = (
    Action.ENQUEUE_AND_WAIT,
    Action.WAIT_AND_ENQUEUE,
    Action.WAIT_CONTEXT,
    Action.WAIT_STREAM,
    Action.WAIT_EVENT,
    Action.SET_AND_WAIT,
)


def waiting(timeline: Timeline, work: DeviceWork | None) -> NDArray[np.bool_]:
    """Return which rows wait for the GPU, or would if it were busy; shape (n,)."""
    waits: NDArray[np.bool_] = (timeline.wait > 0) | (timeline.kind == Kind.SYNCHRONIZATION)
    if work is None:
        return waits
    return np.asarray((waits | np.isin(work.action, _WAITING)) & (work.action != Action.WAIT_THREAD))


def waiting_calls(timeline: Timeline, work: DeviceWork | None, staged: Sequence[int]) -> NDArray[np.bool_]:
    """Return which rows a program that must not wait should not have: those that wait, and staged copies, which may.

    `staged` are the sites of copies that are asynchronous but for their pageable memory.
    """
    return waiting(timeline, work) | np.isin(timeline.site, list(staged))


def presumed(timeline: Timeline, work: DeviceWork | None) -> Timeline:
    """Return the timeline with each wait and each transfer as a problem."""
    problem = np.where(waiting(timeline, work), np.uint8(Problem.UNNECESSARY_SYNCHRONIZATION), np.uint8(0))
    problem[timeline.kind == Kind.TRANSFER] |= np.uint8(Problem.UNNECESSARY_TRANSFER)
    return replace(timeline, problem=problem)


class Presumed(Estimates):
    """What doing without waits and transfers would save, if they prove unnecessary; `high_s` is what it saves at most.

    Nothing has timed the GPU. So any wait may have ended late, and any copy may have kept the GPU busy for long.
    `inference` returns times that allow for that (`Inference.if_anything_is_late`).
    """

    def __init__(
        self,
        timeline: Timeline,
        work: DeviceWork | None,
        copy_time: NDArray[np.int64],
        wall_s: float,
        inference: Callable[[], Inference] | None,
        variation: Variation,
    ) -> None:
        super().__init__(presumed(timeline, work), work, copy_time, wall_s, inference, variation, keeps_memory=True)
        self._limit_s = wall_s
        self._waited_s = float(timeline.wait.sum()) / 1e9
        copied = np.zeros(len(timeline), np.int64) if work is None else work.copied
        self._copying = np.where(timeline.kind == Kind.TRANSFER, copied // SLOWEST_COPY + COPY_NS, 0)

    def of_groups(
        self,
        label: NDArray[np.integer],
        group_of: NDArray[np.integer],
        groups: int,
        bound_s: NDArray[np.float64] | None = None,
        *,
        pinned: bool = False,
    ) -> list[Benefit]:
        """As in `Estimates`."""
        found = super().of_groups(label, group_of, groups, bound_s, pinned=pinned)
        group = np.where(label >= 0, group_of[np.maximum(label, 0)], -1) if len(group_of) else label
        inside = group >= 0
        copying = np.bincount(group[inside], weights=self._copying[inside], minlength=groups) / 1e9
        return [
            msgspec.structs.replace(
                benefit,
                low_s=0.0,
                high_s=min(max(benefit.expected_s, benefit.high_s or 0.0) + min(busy_s, self._waited_s), self._limit_s),
            )
            for benefit, busy_s in zip(found, copying.tolist(), strict=True)
        ]
