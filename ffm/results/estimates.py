"""What fixing groups of sites, or parts of sequences, saves: by every estimator, with an interval.

Stage 5 and the viewing commands both use this module, so that they agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.estimators.bound import Totals, bound_of_sequence, totals
from ffm.model.estimators.carry import carry_by_group
from ffm.model.estimators.faster import Faster
from ffm.model.estimators.hoisting import without_keeping
from ffm.model.estimators.replay import Elsewhere, Replay, Replayed
from ffm.model.gpu_times.timelines import Inference
from ffm.model.timeline import Timeline
from ffm.results.documents.analysis import ChosenByChance, PinnedMemory
from ffm.results.documents.benefit import Basis, Benefit
from ffm.results.pinning_costs import PinningCosts
from ffm.results.variation import NOTHING_KNOWN, VARIES, Variation
from ffm.steps import Tell, silently

REPLAYED_ROWS = 400_000_000
"""Most rows visited while replaying groups, the most promising first: takes some tens of seconds."""

REPLAYED_GROUPS = 40
"""At least this many groups are replayed, whatever their size."""

ON_CPU = Basis(measured=None)


class Estimates:
    """The estimators applied to one run.

    Args:
        timeline: the operations.
        work: what they do on the GPU; None if there is no trace (imported results).
        copy_time: as for `ffm.model.estimators.carry.carry_by_group`.
        wall_s: the run's wall time, which no benefit exceeds.
        inference: returns the GPU's times; asked once, and only where something is replayed. None if `work` is.
        variation: how certain the run's times are, which widens intervals.
        pinning: memory that must be pinned before transfers can do without their waits.
        by_chance: sites where chance decides which operations are problems, which widens intervals.
        keeps_memory: whether freed memory that no allocation takes over is left to the process's end; otherwise it is
            freed in the end.
        fences: as for `ffm.model.estimators.replay.Replay`, and so is `copies`.
        elsewhere: as for `ffm.model.estimators.replay.Replay`.
        tell: called with each step that takes long.
    """

    def __init__(
        self,
        timeline: Timeline,
        work: DeviceWork | None,
        copy_time: NDArray[np.int64],
        wall_s: float,
        inference: Callable[[], Inference] | None,
        variation: Variation = NOTHING_KNOWN,
        pinning: Sequence[PinnedMemory] = (),
        *,
        by_chance: Sequence[ChosenByChance] = (),
        keeps_memory: bool = False,
        fences: bool = False,
        copies: bool = False,
        elsewhere: Elsewhere | None = None,
        tell: Tell = silently,
    ) -> None:
        if work is not None and not keeps_memory:
            work = replace(work, partner=without_keeping(work.partner))
        self._timeline, self._work, self._copy_time, self._wall_s = timeline, work, copy_time, wall_s
        self._inference, self._variation, self._pinning = inference, variation, pinning
        self._elsewhere, self._tell, self._by_chance = elsewhere, tell, by_chance
        self._fences, self._copies = fences, copies
        self._visited = 0  # rows, by passes of `carry`

    @functools.cached_property
    def replay(self) -> Replay | None:
        """The replay of the run; None if nothing is known about the GPU."""
        if self._work is None or self._inference is None:
            return None
        return Replay(
            self._timeline,
            self._work,
            self._inference(),
            self._elsewhere,
            self._tell,
            fences=self._fences,
            copies=self._copies,
        )

    def for_likely_changes(self) -> Estimates:
        """Return the same for `likely_change` alone, which takes less than half of the memory."""
        replay = None if self.replay is None else self.replay.for_likely_changes()
        alone = Estimates(
            self._timeline, self._work, self._copy_time, self._wall_s, None, self._variation, keeps_memory=True
        )
        alone.replay = replay
        return alone

    @functools.cached_property
    def _basis(self) -> Basis:
        assert self.replay is not None and self._work is not None
        gpu = self.replay.inference.likely.gpu
        share = float(gpu[self._work.measured >= 0].sum() / max(gpu.sum(), 1))
        return Basis(measured=share, differs=self._variation.of_saving, differs_s=self._always_s)

    def sums(self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int) -> Totals:
        """Return totals of each group over all processes (arguments: `ffm.model.estimators.carry.carry_by_group`)."""
        return totals(self._timeline, label, group_of, groups)

    def of_groups(
        self,
        label: NDArray[np.integer],
        group_of: NDArray[np.integer],
        groups: int,
        bound_s: NDArray[np.float64] | None = None,
        *,
        pinned: bool = False,
    ) -> list[Benefit]:
        """Return what fixing each group alone saves; groups have no common rows.

        `bound_s` is the seconds by `bound`, over all processes; without it, each group counts as one sequence. If
        `pinned`, all host memory is pinned already.
        """
        if groups == 0:
            return []
        if bound_s is None:
            bound_s = bound_of_sequence(self.sums(label, group_of, groups))
        benefits = self._before_pinning(label, group_of, groups, bound_s)
        if pinned or not self._pinning:
            return benefits
        return self.pinning_costs.subtracted(label, group_of, benefits, bound_s)

    @functools.cached_property
    def pinning_costs(self) -> PinningCosts:
        """What pinning the memory of transfers costs."""
        return PinningCosts(self._timeline, len(self._copy_time), self._pinning, self._before_pinning)

    def _before_pinning(
        self,
        label: NDArray[np.integer],
        group_of: NDArray[np.integer],
        groups: int,
        bound_s: NDArray[np.float64],
    ) -> list[Benefit]:
        ranks = self._ranks(label, group_of, groups)
        by_bound = bound_s / np.maximum(ranks, 1)
        by_carry = self._carry(label, group_of, groups)
        replayed = self._replayed(label, group_of, groups, np.maximum(by_carry, by_bound))
        benefits = [
            self._benefit(float(carry_s), float(limit_s), replayed.get(group))
            for group, (carry_s, limit_s) in enumerate(zip(by_carry, by_bound, strict=True))
        ]
        return self._widened(label, group_of, benefits) if self._by_chance else benefits

    def _widened(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], benefits: list[Benefit]
    ) -> list[Benefit]:
        """Return benefits with intervals that hold whichever operations of sites are the problems: the time of each
        group's problems could be as much less, or more, as if they were the shortest, or the longest ones.
        """
        least, most = np.ones(len(self._copy_time)), np.ones(len(self._copy_time))
        for one in self._by_chance:
            least[one.site], most[one.site] = one.least, one.most
        rows = np.flatnonzero((self._timeline.problem != 0) & (label >= 0))
        group = group_of[label[rows]]
        rows, group = rows[group >= 0], group[group >= 0]
        duration, site = self._timeline.duration[rows], self._timeline.site[rows]
        time, shorter, longer = (
            np.bincount(group, weights=duration * share, minlength=len(benefits)).tolist()
            for share in (1.0, least[site], most[site])
        )
        return [
            benefit
            if benefit.low_s is None or benefit.high_s is None or low == high
            else msgspec.structs.replace(
                benefit, low_s=benefit.low_s * low / some, high_s=min(benefit.high_s * high / some, self._wall_s)
            )
            for benefit, some, low, high in zip(benefits, time, shorter, longer, strict=True)
        ]

    def of_sites(
        self, groups: list[list[int]], bound_s: NDArray[np.float64] | None = None, *, pinned: bool = False
    ) -> list[Benefit]:
        """Return what fixing each group of sites together saves; no site is in two groups. Further arguments as for
        `of_groups`.
        """
        group_of = np.full(len(self._copy_time), -1, np.int32)
        for number, members in enumerate(groups):
            group_of[members] = number
        return self.of_groups(self._timeline.site, group_of, len(groups), bound_s, pinned=pinned)

    def of_rows(self, selected: NDArray[np.bool_], bound_s: float | None = None) -> Benefit:
        """Return what fixing the problems of the selected rows together saves; `bound_s` as for `of_groups`."""
        # Of the type of sites: for others, the passes are compiled once more.
        label = selected.astype(np.int32)
        label -= 1
        return self.of_groups(label, np.zeros(1, np.int32), 1, None if bound_s is None else np.array([bound_s]))[0]

    def without(self, selected: NDArray[np.bool_]) -> Replayed | None:
        """Return what removing the selected rows' waits would save although the program needs them as it is written: if
        it read what they protect later, or ordered streams by events. An explicit synchronization is left out as a
        whole.

        Only a replay can answer this, because `carry` and `bound` only know problems. None if there is no replay.
        """
        found = self.without_each([np.flatnonzero(selected)])
        return found[0] if found else None

    def without_each(self, groups: Sequence[NDArray[np.int64]]) -> list[Replayed]:
        """Return the same for each of some groups of rows alone; nothing if there is no replay."""
        if self.replay is None:
            return []
        return [
            Replayed(self._likely(replayed.likely_s), self._at_least(replayed), self._at_most(replayed))
            for replayed in self.replay.without_each(groups)
        ]

    def changed(self, faster: Faster) -> Replayed | None:
        """Return what the run saves if parts of it take less time. None if there is no replay."""
        if self.replay is None:
            return None
        found = self.replay.changed(faster)
        return Replayed(self._likely(found.likely_s), self._at_least(found), self._at_most(found))

    def likely_change(self, faster: Faster) -> float | None:
        """Return the likely seconds of `changed` alone, which takes a third of the time."""
        if self.replay is None:
            return None
        return self._likely(self.replay.likely_change(faster))

    @property
    def _always_s(self) -> float:
        """How much two runs differ even on an undisturbed machine; 0 if that is unknown."""
        return min(self._variation.run_s, VARIES * self._wall_s)

    def _likely(self, replayed_s: float) -> float:
        """Return what the bare run saves of seconds that the traced one does: the same share, if that was slower."""
        return min(replayed_s / self._variation.slower, self._wall_s)

    def _at_least(self, replayed: Replayed) -> float:
        certain_s = replayed.low_s * (1 - self._variation.of_saving) - self._always_s - self._variation.delayed_s
        return min(max(certain_s, 0.0), self._wall_s)

    def _at_most(self, replayed: Replayed) -> float:
        if replayed.high_s <= 0:
            return 0.0
        most = min(replayed.high_s, replayed.touched_s) * (1 + self._variation.of_saving) + self._always_s
        return min(max(most, replayed.likely_s), self._wall_s)

    def of_everything(self, bound_s: float | None = None) -> Benefit:
        """Return what fixing all problems of the run saves; by `replay`, no group, and no sum of groups, saves more.

        `bound_s` as for `of_groups`.
        """
        return self.of_rows(self._timeline.problem != 0, bound_s)

    def _ranks(self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int) -> NDArray[np.int64]:
        """Return how many processes have rows of each group."""
        if self._work is None or self._work.processes < 2:
            return np.ones(groups, np.int64)
        group = np.where(label >= 0, group_of[np.maximum(label, 0)], -1).astype(np.int64)
        process = self._work.process_of_thread[self._timeline.thread]
        inside = group >= 0
        pairs = np.unique(group[inside] * self._work.processes + process[inside])
        return np.bincount(pairs // self._work.processes, minlength=groups)

    def _carry(self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int) -> NDArray[np.float64]:
        """Return the seconds by `carry`. With several processes the smallest saving counts: they end together."""
        self._visited += len(self._timeline)
        if self._work is None or self._work.processes < 2:
            return carry_by_group(self._timeline, label, group_of, groups, self._copy_time, self._visited)
        processes, labels = self._work.processes, len(group_of)
        process = self._work.process_of_thread[self._timeline.thread].astype(np.int64)
        own_label = np.where(label >= 0, label + process * labels, -1)
        own_group = np.concatenate([np.where(group_of >= 0, group_of + p * groups, -1) for p in range(processes)])
        saved = carry_by_group(self._timeline, own_label, own_group, groups * processes, self._copy_time, self._visited)
        each = saved.reshape(processes, groups)
        least: NDArray[np.float64] = np.where(each > 0, each, np.inf).min(axis=0)
        return np.where(np.isfinite(least), least, 0.0)

    def _replayed(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int, promise: NDArray[np.float64]
    ) -> dict[int, Replayed]:
        """Return the groups' replays; if a long run has very many groups, only the most promising ones'."""
        if self.replay is None:
            return {}
        affordable = max(REPLAYED_GROUPS, REPLAYED_ROWS // max(len(self._timeline), 1))
        wanted = sorted(np.argsort(-promise, kind="stable")[:affordable].tolist())
        return dict(zip(wanted, self.replay.by_group(label, group_of, groups, wanted), strict=True))

    def _benefit(self, carry_s: float, bound_s: float, replayed: Replayed | None) -> Benefit:
        if self._work is not None:
            carry_s, bound_s = min(carry_s, self._wall_s), min(bound_s, self._wall_s)
        if replayed is None:
            low, high = sorted((min(carry_s, self._wall_s), min(bound_s, self._wall_s)))
            return Benefit(carry_s=carry_s, bound_s=bound_s, low_s=low, high_s=high, basis=ON_CPU)
        return Benefit(
            carry_s=carry_s,
            bound_s=bound_s,
            replay_s=self._likely(replayed.likely_s),
            low_s=self._at_least(replayed),
            high_s=self._at_most(replayed),
            basis=self._basis,
        )
