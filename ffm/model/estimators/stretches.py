"""Replays of nearly the same fix have most of their work in common.

The fixes of a call stack, its fold, a sequence and the whole run often differ in a few rows only. So a replay of a long
run saves its state at the start of each *stretch* of rows. A later replay may reach that point in the same state, only
earlier or later. If its fix changes the same rows of the next stretches, it need not visit them: it takes over the
state after them, earlier or later by as much. Times are whole nanoseconds, so the numbers are those of a replay of all
rows.

This holds for runs of one thread. A simulation of such a run compares only times of the simulated run with each other,
and times of the measured run with each other. Other threads would not be earlier by the same amount.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from ffm.model.estimators.simulation.state import Fix, State

STRETCHES = 64
"""A run is divided into about this many."""

LEAST_ROWS = 1 << 16
"""A stretch has at least this many rows: beginning one takes some tens of microseconds."""

LARGEST_STATE = 512
"""Larger states, of more numbers, are not kept: those of runs with very many events."""

MOST_KEPT = 16
"""States are kept for this many fixes."""


class Shift(NamedTuple):
    """By how many nanoseconds everything after some time is sooner in one simulation than in another."""

    sooner: int
    after: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a simulation between two stretches."""

    now: int
    """When the next call begins if nothing delays it."""
    early: int
    times: NDArray[np.int64]
    """Times in the simulated run; 0 for what has not happened yet."""
    rest: NDArray[np.int64]

    @classmethod
    def of(cls, state: State, start: int) -> Moment:
        """Return the moment of a state whose next call began at `start` in the run as measured."""
        now = start - int(state.early[0])
        forgotten = state.removed.over <= now  # no later wait takes up what these had to wait for
        for column in state.removed:
            column[forgotten] = 0
        return cls(now, int(state.early[0]), np.concatenate(_times(state)), np.concatenate(_rest(state)))

    def follows(self, other: Moment, reach: int) -> Shift | None:
        """Return how this differs from the other one if all that follows is the same, but earlier; None if it may not
        be so.

        Nothing that was over more than `reach` nanoseconds ago delays anything. It may also be equally early in both if
        everything that is earlier by the same came later: comparing the two then gives the same in both.
        """
        sooner = self.early - other.early
        alike = self.times == other.times
        if sooner == 0:
            return Shift(0, 0) if alike.all() and np.array_equal(self.rest, other.rest) else None
        moved = self.times == other.times - sooner
        before = int(self.times[alike].max(initial=0)) + reach
        later = min(self.now, other.now, *(one.times[moved].min(initial=one.now) for one in (self, other)))
        same = before < later and (alike | moved).all() and np.array_equal(self.rest, other.rest)
        return Shift(sooner, before) if same else None

    def shifted(self, shift: Shift) -> Moment:
        """Return the same, but earlier."""
        times = np.where(self.times > shift.after, self.times - shift.sooner, self.times)
        return Moment(self.now - shift.sooner, self.early + shift.sooner, times, self.rest)

    def put_into(self, state: State) -> None:
        """Give a simulation this state."""
        state.early[0] = self.early
        for columns, values in ((_times(state), self.times), (_rest(state), self.rest)):
            begin = 0
            for column in columns:
                column[:] = values[begin : begin + len(column)]
                begin += len(column)


def _times(state: State) -> list[NDArray[Any]]:
    removed = state.removed
    return [
        state.over,
        state.latest,
        state.latest_on,
        state.legacy_latest,
        state.engines,
        state.recorded,
        state.ordered,
        state.moved_for,
        removed.target,
        removed.over,
    ]


def _rest(state: State) -> list[NDArray[Any]]:
    removed = state.removed
    return [
        state.newest,
        state.recorded_on,
        state.moved_until,
        state.reached,
        removed.waking,
        removed.scope,
        removed.latency,
        removed.ended,
    ]


@dataclass(frozen=True, slots=True)
class Course:
    """How a fix is replayed, stretch by stretch."""

    ends: list[int]
    """The place after each stretch, in the order of rows."""
    starts: list[int]
    """When the first call of each stretch began, and the last call of all."""
    fix: Fix
    parts: list[NDArray[np.int64]]
    """The members of the fix in each stretch and all later ones."""
    digests: list[bytes]
    """Of the members in each stretch."""
    nearest: Course | None
    """An earlier one that has most stretches in common with this one."""
    moments: dict[int, list[Moment]] = field(default_factory=dict)
    """For each way in which it was replayed, the state before each stretch, and after the last one."""

    @classmethod
    def whole(cls, fix: Fix, rows: int) -> Course:
        """Return how a fix is replayed in one go, over all rows."""
        return cls([rows], [], fix, [fix.members], [], None)

    def alike_from(self, stretch: int) -> int:
        """Return the first stretch, from this one on, in which the nearest fix changes other rows."""
        if self.nearest is None:
            return stretch
        while stretch < len(self.ends) and self.digests[stretch] == self.nearest.digests[stretch]:
            stretch += 1
        return stretch

    def follow(self, way: int, state: State, visit: Callable[[Fix, int], None], reach: int) -> None:
        """Simulate the whole run, in one of the ways in which each fix is replayed.

        `visit` simulates the rows up to a place, with a fix; `state` is that of the simulation. `reach` as for
        `Moment.follows`.
        """
        if not self.digests:
            visit(self.fix, self.ends[0])
            return
        earlier = [] if self.nearest is None else self.nearest.moments[way]
        moments = [Moment.of(state, self.starts[0])]
        while len(moments) <= len(self.ends):
            stretch = len(moments) - 1
            alike = self.alike_from(stretch)
            shift = moments[-1].follows(earlier[stretch], reach) if alike > stretch else None
            if shift is None:
                visit(self.fix._replace(members=self.parts[stretch]), self.ends[stretch])
                moments.append(Moment.of(state, self.starts[stretch + 1]))
            else:
                moments += [moment.shifted(shift) for moment in earlier[stretch + 1 : alike + 1]]
                moments[-1].put_into(state)
        self.moments[way] = moments


class Stretches:
    """The stretches of a run, and how fixes were replayed.

    Args:
        starts: when each call began; in the order of rows, if they are comparable.
        comparable: whether the run has one thread, and nothing recorded which others it meets.
        size: about how many numbers a state has.
    """

    def __init__(self, starts: NDArray[np.int64], *, comparable: bool, size: int) -> None:
        count = min(STRETCHES, len(starts) // LEAST_ROWS) if comparable and size <= LARGEST_STATE else 1
        self._begins = np.linspace(0, len(starts), max(count, 1) + 1).astype(np.int64)
        self._starts = starts[self._begins.clip(max=len(starts) - 1)].tolist() if count > 1 else []
        self._known: list[Course] = []

    def emptied(self) -> Stretches:
        """Return the same without what is known of any fix."""
        empty = copy(self)
        empty._known = []
        return empty

    def course_of(self, fix: Fix) -> Course:
        """Return how a fix is to be replayed."""
        ends = self._begins[1:].tolist()
        if len(ends) == 1:
            return Course.whole(fix, ends[0])
        places = np.searchsorted(fix.members, self._begins).tolist()
        digests = [xxhash.xxh3_128_digest(fix.members[begin:end].data) for begin, end in itertools.pairwise(places)]
        known = [course for course in self._known if course.fix.needed == fix.needed]
        nearest = max(known, key=lambda course: _alike(course.digests, digests), default=None)
        return Course(ends, self._starts, fix, [fix.members[place:] for place in places[:-1]], digests, nearest)

    def keep(self, course: Course) -> None:
        """Keep the states of a replay for later ones."""
        if course.digests and len(self._known) < MOST_KEPT:
            nothing = np.zeros(0, np.int64)
            self._known.append(replace(course, fix=course.fix._replace(members=nothing), parts=[], nearest=None))


def _alike(some: list[bytes], others: list[bytes]) -> int:
    return sum(one == other for one, other in zip(some, others, strict=True))
