"""The rows that fixes change (`ffm.model.estimators.replay`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.estimators.member_kernels import members_by_group
from ffm.model.timeline import Kind, Problem, Timeline


@dataclass(frozen=True, slots=True)
class Changing:
    """The rows that some fix changes, by their place in the order of rows: those with problems, and the allocations
    that take over freed memory.
    """

    place: NDArray[np.integer]
    labelled: NDArray[np.integer]
    """The row whose label counts: that of the free for an allocation."""

    @classmethod
    def of(cls, timeline: Timeline, work: DeviceWork, place: NDArray[np.integer]) -> Changing:
        """Return those of a run; `place` is that of each row, shape (n,)."""
        takes_over = (timeline.kind == Kind.ALLOCATION) & (work.partner >= 0)
        served = np.flatnonzero(takes_over)
        served = served[(timeline.problem[work.partner[served]] & Problem.UNNECESSARY_SYNCHRONIZATION) != 0]
        fixed = np.flatnonzero((timeline.problem != 0) & ~takes_over)
        places = np.concatenate([place[fixed], place[served]])
        labelled = np.concatenate([fixed, work.partner[served]])
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places)
            places, labelled = places[order], labelled[order]
        kind = np.uint32 if len(timeline) < 1 << 32 else np.int64
        return cls(places.astype(kind), labelled.astype(kind))

    def by_group(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int
    ) -> list[NDArray[np.int64]]:
        """Return the places that each group changes, ascending; arguments as for
        `ffm.model.estimators.carry.carry_by_group`.
        """
        if not groups:
            return []
        members, ends = run(
            members_by_group,
            len(self.place),
            self.place,
            self.labelled,
            label.astype(np.int32, copy=False),  # of one type: for others, the pass is compiled once more
            group_of.astype(np.int32, copy=False),
            groups,
        )
        return np.split(members, ends[:-1])
