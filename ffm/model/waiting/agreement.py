"""For what share of a run's time several of its critical paths are at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.model.waiting import path_kernels
from ffm.model.waiting.path import Stretches

COMPARED_AT_ONCE = 1_000_000
"""Paths are compared for this many stretches at a time, since all together take much memory."""


class Places(Protocol):
    """Where a path is."""

    @property
    def begin(self) -> NDArray[np.int64]:
        """The moments at which it may move, ascending."""

    @property
    def end(self) -> int:
        """When it is over."""

    def lanes(self, rows: slice) -> NDArray[np.int32]:
        """Return the lanes, as in `ffm.model.waiting.path.Path`, in which it is from some of these moments on."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Where a path is: only the moments at which it moves, so that it can be forgotten."""

    begin: NDArray[np.int64]
    lane: NDArray[np.int32]
    """As in `ffm.model.waiting.path.Path`."""
    end: int

    def lanes(self, rows: slice) -> NDArray[np.int32]:
        """As in `Places`."""
        return self.lane[rows]


@dataclass(frozen=True, slots=True)
class OnPath:
    """Where a path is that lies in memory."""

    timeline: Timeline
    work: DeviceWork
    stretches: Stretches

    @property
    def begin(self) -> NDArray[np.int64]:
        """As in `Places`."""
        return self.stretches.begin

    @property
    def end(self) -> int:
        """As in `Places`."""
        return int(self.stretches.end[-1]) if len(self.stretches.end) else 0

    def lanes(self, rows: slice) -> NDArray[np.int32]:
        """As in `Places`."""
        some = self.stretches.some(rows)
        lane = np.empty(len(some.where), np.int32)
        run(path_kernels.lanes, len(lane), some.kind, some.where, *_columns(self.timeline, self.work), lane)
        return lane


def moves_of(timeline: Timeline, work: DeviceWork, stretches: Stretches) -> Moves:
    """Return where a path is at each time."""
    begin, lane = np.empty(len(stretches.begin), np.int64), np.empty(len(stretches.begin), np.int32)
    columns = stretches.kind, stretches.where, stretches.begin, *_columns(timeline, work)
    count = run(path_kernels.moves, len(begin), *columns, begin, lane)
    for column in (begin, lane):
        column.resize(count, refcheck=False)
    return Moves(begin, lane, int(stretches.end[-1]) if count else 0)


def _columns(timeline: Timeline, work: DeviceWork) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Return what tells the lane of a stretch: the threads and the streams of rows, and how many threads there are."""
    return timeline.thread, work.stream, len(work.process_of_thread)


def agreement(paths: Sequence[Places]) -> float:
    """Return on which share of the time all paths are at the same place, 0 to 1; they are of the same run."""
    lengths = [path.end - int(path.begin[0]) if len(path.begin) else 0 for path in paths]
    if not paths or lengths[0] == 0:
        return 1.0
    last = min(path.end for path in paths)
    bounds = [moment for moment in paths[0].begin[::COMPARED_AT_ONCE].tolist() if moment < last]
    same = sum(_same_between(paths, since, until) for since, until in pairwise([*bounds, last]))
    return same / max(lengths)


def _same_between(paths: Sequence[Places], since: int, until: int) -> int:
    """Return for how many nanoseconds between two moments all paths are at the same place."""
    begins, lanes = [], []
    for path in paths:
        first = max(int(np.searchsorted(path.begin, since, side="right")) - 1, 0)
        behind = max(int(np.searchsorted(path.begin, until)), first + 1)
        begins.append(path.begin[first:behind].clip(since))
        lanes.append(path.lanes(slice(first, behind)))
    offsets = np.cumsum([0, *(len(begin) for begin in begins)])
    same = run(path_kernels.shared, int(offsets[-1]), np.concatenate(begins), np.concatenate(lanes), offsets, until)
    return int(same)
