"""For what share of a run's time several of its critical paths are at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.waiting import path_kernels
from ffm.model.waiting.path import Path, Stretches

COMPARED_AT_ONCE = 1_000_000
"""Paths are compared for this many stretches at a time, since all together take much memory."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a path is: only the moments at which it moves."""

    begin: NDArray[np.int64]
    lane: NDArray[np.int32]
    """As in `Path`."""
    end: int
    """When it is over."""

    @property
    def length(self) -> int:
        """As in `Path`."""
        return self.end - int(self.begin[0]) if len(self.begin) else 0


def places_of(path: Path | Stretches) -> Places:
    """Return where a path is at each time."""
    count = run(path_kernels.count_moves, len(path.lane), path.lane)
    begin, lane = np.empty(count, np.int64), np.empty(count, np.int32)
    run(path_kernels.moves, len(path.lane), path.begin, path.lane, begin, lane)
    return Places(begin, lane, int(path.end[-1]) if len(path.end) else 0)


def agreement(paths: Sequence[Places]) -> float:
    """Return on which share of the time all paths are at the same place, 0 to 1; they are of the same run."""
    if not paths or paths[0].length == 0:
        return 1.0
    last = min(path.end for path in paths)
    bounds = [moment for moment in paths[0].begin[::COMPARED_AT_ONCE].tolist() if moment < last]
    same = sum(_same_between(paths, since, until) for since, until in pairwise([*bounds, last]))
    return same / max(path.length for path in paths)


def _same_between(paths: Sequence[Places], since: int, until: int) -> int:
    """Return for how many nanoseconds between two moments all paths are at the same place."""
    begins, lanes = [], []
    for path in paths:
        first = max(int(np.searchsorted(path.begin, since, side="right")) - 1, 0)
        behind = max(int(np.searchsorted(path.begin, until)), first + 1)
        begins.append(path.begin[first:behind].clip(since))
        lanes.append(path.lane[first:behind])
    offsets = np.cumsum([0, *(len(begin) for begin in begins)])
    same = run(path_kernels.shared, int(offsets[-1]), np.concatenate(begins), np.concatenate(lanes), offsets, until)
    return int(same)
