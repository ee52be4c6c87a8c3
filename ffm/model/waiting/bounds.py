"""What making one region faster would save at most, while everything else stays as it is (Dietrich 2019, 5.3.2).

Both bounds are sums over the waits that the region is to blame for. They look at one wait at a time, so a replay
(`ffm.model.estimators.replay.Replay.changed`) knows more; it cannot say, though, what sharing work among threads would
give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.timeline import Timeline
from ffm.model.waiting import blame_kernels
from ffm.model.waiting.graph import Graph
from ffm.model.waiting.meeting_blame import Shared
from ffm.model.waiting.meetings import Meetings


@dataclass(frozen=True, slots=True)
class Bounds:
    """Nanoseconds for each region."""

    faster: NDArray[np.int64]
    """Equation 5.3: until the thread that waits least for the region no longer waits, or the region is gone."""
    even: NDArray[np.int64]
    """Equation 5.2: if what the region does were shared evenly among the threads that wait for it."""


def find_bounds(
    timeline: Timeline,
    graph: Graph,
    of_gpu: NDArray[np.int32],
    meetings: Meetings,
    shared: Shared,
    of_piece: NDArray[np.int64],
    regions: int,
) -> Bounds:
    """Return the bounds of each region.

    Args:
        timeline: the operations.
        graph: what they waited for.
        of_gpu: the region of each row's GPU work, shape (n,); -1 if there is none.
        meetings: where threads waited for each other.
        shared: what the last ones did before.
        of_piece: the region of each of its pieces.
        regions: how many there are.
    """
    faster = np.zeros(regions, np.int64)
    run(
        blame_kernels.bound_work,
        len(timeline),
        timeline.thread,
        graph.gpu_begin,
        graph.gpu_end,
        graph.gpu_after,
        graph.cause,
        graph.waited,
        of_gpu,
        np.zeros(regions, np.int64),
        faster,
    )
    even = np.zeros(regions, np.int64)
    count = len(meetings.last)
    if count and len(of_piece):
        waited = meetings.waited
        least = np.full(count, np.iinfo(np.int64).max)
        waiting = waited > 0
        np.minimum.at(least, meetings.number[waiting], waited[waiting])
        threads = np.bincount(meetings.number, minlength=count)
        mean = np.bincount(meetings.number, weights=waited, minlength=count) / threads
        pair, place = np.unique(shared.meeting * regions + of_piece, return_inverse=True)
        lasting = np.bincount(place.reshape(-1), weights=shared.pieces.end - shared.pieces.begin)
        meeting, region = pair // regions, pair % regions
        delays = mean[meeting] > 0
        np.add.at(faster, region[delays], np.minimum(least[meeting], lasting).astype(np.int64)[delays])
        np.add.at(even, region, np.minimum(mean[meeting], lasting).astype(np.int64))
    return Bounds(faster, even)
