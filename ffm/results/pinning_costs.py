"""What it costs to pin host memory, without which a fixed transfer would still wait."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.estimators.bound import bound_of_sequence, totals
from ffm.model.grouping import numbered, parts
from ffm.model.timeline import Timeline
from ffm.results.documents.analysis import PinnedMemory
from ffm.results.documents.benefit import Benefit

PINNED_ALONE = 3
"""Sites that need pinned memory and are tried one by one in a group: each doubles the replays of groups with it."""

Estimate = Callable[[NDArray[np.integer], NDArray[np.integer], int, NDArray[np.float64]], list[Benefit]]
"""Returns what fixing each group alone would save if pinning cost nothing; arguments as `Estimates.of_groups`."""


class PinningCosts:
    """What pinning the memory of some sites of a run costs.

    Args:
        timeline: the operations.
        sites: how many sites there are.
        pinning: the memory.
        estimate: a method that estimates what fixing groups of sites saves. Its object may have this one, which does
            not keep it: columns of a long run end with the last who has them, not when Python looks for circles.
    """

    def __init__(self, timeline: Timeline, sites: int, pinning: Sequence[PinnedMemory], estimate: Estimate) -> None:
        self._timeline, self._sites, self._pinning = timeline, sites, pinning
        self._method = weakref.WeakMethod(estimate)

    @property
    def _estimate(self) -> Estimate:
        estimate = self._method()
        assert estimate is not None, "whoever asks for costs has the estimates"
        return estimate

    def subtracted(
        self,
        label: NDArray[np.integer],
        group_of: NDArray[np.integer],
        benefits: list[Benefit],
        bound_s: NDArray[np.float64],
    ) -> list[Benefit]:
        """Subtract what pinning costs from the benefits of groups: of the sites of a group that need pinned memory,
        those are fixed that save most.
        """
        pinned, used = self._rows_in(label, group_of)
        best: dict[int, Benefit] = {}
        for count in range(len(self._together) + 1):
            for chosen in itertools.combinations(self._together, count):
                fixed = frozenset().union(*chosen)
                numbers = [number for number, sites in used.items() if all(unit & sites for unit in chosen)]
                renumbered = np.full(len(benefits), -1, np.int32)
                renumbered[numbers] = np.arange(len(numbers))
                regrouped = np.where(group_of >= 0, renumbered[np.maximum(group_of, 0)], -1)
                left = pinned[~self._is_one_of(fixed)[self._timeline.site[pinned]]] if fixed else pinned
                if not len(left):
                    found = [benefits[number] for number in numbers]
                elif numbers:
                    with self._unlabelled(label, left) as without:
                        del left
                        found = self._estimate(without, regrouped, len(numbers), bound_s[numbers])
                else:
                    found = []
                for number, gross in zip(numbers, found, strict=True):
                    net = self._less(gross, used[number] & fixed)
                    if number not in best or net.expected_s > best[number].expected_s:
                        best[number] = net
        return [
            msgspec.structs.replace(best[number], bound_s=gross.bound_s, high_s=gross.high_s)
            if number in best
            else gross
            for number, gross in enumerate(benefits)
        ]

    def _rows_in(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], dict[int, set[int]]]:
        """Return the rows of groups that need pinned memory, and the sites of these rows by group."""
        pinned = self._rows
        inside = np.zeros(len(pinned), np.bool_)
        used: dict[int, set[int]] = {}
        for part in parts(len(pinned) if len(group_of) else 0):  # columns of all take much memory
            of = label[pinned[part]]
            group = np.where(of >= 0, group_of[np.maximum(of, 0)], -1)
            inside[part] = group >= 0
            group, site = group[inside[part]], self._timeline.site[pinned[part]][inside[part]]
            _, first = numbered(group, site)
            for number, one in zip(group[first].tolist(), site[first].tolist(), strict=True):
                used.setdefault(number, set()).add(one)
        pinned = pinned if inside.all() else pinned[inside]
        return pinned, dict(sorted(used.items()))

    @contextlib.contextmanager
    def _unlabelled(self, label: NDArray[np.integer], rows: NDArray[np.int64]) -> Iterator[NDArray[np.integer]]:
        """Return the labels without those of some rows: the same array, which gets them back, or a copy of sites."""
        if np.may_share_memory(label, self._timeline.site) or not label.flags.writeable:
            without = label.copy()
            without[rows] = -1
            yield without
            return
        before = label[rows]
        label[rows] = -1
        try:
            yield label
        finally:
            label[rows] = before

    @functools.cached_property
    def _together(self) -> list[frozenset[int]]:
        """The sites that need pinned memory, in sets that are fixed together or not at all: some that save most each
        for itself, and the others that pay alone.
        """
        order = sorted(self.saved_if_free, key=lambda one: -self.saved_if_free[one].expected_s)
        rest = [one for one in order[PINNED_ALONE:] if self._less(self.saved_if_free[one], {one}).expected_s > 0]
        return [frozenset({one}) for one in order[:PINNED_ALONE]] + ([frozenset(rest)] if rest else [])

    @functools.cached_property
    def saved_if_free(self) -> dict[int, Benefit]:
        """For each site with memory to pin, what fixing it alone would save if pinning were free."""
        sites = sorted({site for memory in self._pinning for site in memory.sites})
        if not sites:
            return {}
        group_of = np.full(self._sites, -1, np.int32)
        group_of[sites] = np.arange(len(sites))
        bound_s = bound_of_sequence(totals(self._timeline, self._timeline.site, group_of, len(sites)))
        return dict(zip(sites, self._estimate(self._timeline.site, group_of, len(sites), bound_s), strict=True))

    @functools.cached_property
    def _rows(self) -> NDArray[np.int64]:
        """The rows with a problem that need pinned memory."""
        problem = np.flatnonzero(self._timeline.problem)
        return problem[self._is_one_of(self.saved_if_free)[self._timeline.site[problem]]]

    def _is_one_of(self, sites: Collection[int]) -> NDArray[np.bool_]:
        table = np.zeros(self._sites, bool)
        table[list(sites)] = True
        return table

    def _less(self, benefit: Benefit, sites: Collection[int]) -> Benefit:
        """Subtract from a benefit what pinning the memory of some sites costs.

        At most, it costs nothing: the program may allocate pinned memory in the first place, which then takes the place
        of the first touch of pages that it pays for now.
        """
        memory = [one for one in self._pinning if not set(sites).isdisjoint(one.sites)]
        if not memory or benefit.basis is None:
            return benefit
        cost_s, size = sum(one.cost_s for one in memory), sum(one.bytes for one in memory)
        return msgspec.structs.replace(
            benefit,
            carry_s=max(benefit.carry_s - cost_s, 0.0),
            replay_s=None if benefit.replay_s is None else max(benefit.replay_s - cost_s, 0.0),
            low_s=None if benefit.low_s is None else max(benefit.low_s - cost_s, 0.0),
            basis=msgspec.structs.replace(benefit.basis, pinned_bytes=size, pinning_s=cost_s),
        )
