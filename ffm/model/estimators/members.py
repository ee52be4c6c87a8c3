"""The rows that fixes change (`ffm.model.estimators.replay`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import has_any
from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.estimators.member_kernels import members_by_group
from ffm.model.grouping import parts
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.visits import at


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
        """Return those of a run; `place` is that of each row, as in `ffm.model.visits`."""
        kind: type[np.integer[Any]] = np.uint32 if len(timeline) < 1 << 32 else np.int64
        rows = len(timeline)

        def takes_over(part: slice) -> NDArray[np.bool_]:
            taking: NDArray[np.bool_] = timeline.kind[part] == Kind.ALLOCATION
            return taking & (work.partner[part] >= 0)

        served = _rows_where(takes_over, rows, kind)
        served = served[has_any(timeline.problem[work.partner[served]], Problem.UNNECESSARY_SYNCHRONIZATION)]
        fixed = _rows_where(lambda part: (timeline.problem[part] != 0) & ~takes_over(part), rows, kind)
        if not len(place) and not len(served):
            return cls(fixed, fixed)
        places = np.empty(len(fixed) + len(served), kind)
        of_fixed = places[: len(fixed)]
        for part in parts(len(fixed)):
            of_fixed[part] = at(place, fixed[part])
        places[len(fixed) :] = at(place, served)
        labelled = np.concatenate([fixed, work.partner[served].astype(kind)]) if len(served) else fixed
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places)
            places, labelled = places[order], labelled[order]
        return cls(places, labelled)

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


def _rows_where(
    holds: Callable[[slice], NDArray[np.bool_]], rows: int, kind: type[np.integer[Any]]
) -> NDArray[np.integer]:
    """Return the rows for which something holds, given which of a part they are. A long run has many of them."""
    found = np.empty(sum(int(np.count_nonzero(holds(part))) for part in parts(rows)), kind)
    end = 0
    for part in parts(rows):
        begin, some = end, np.flatnonzero(holds(part))
        end += len(some)
        np.add(some, part.start, out=found[begin:end], casting="unsafe")
    return found
