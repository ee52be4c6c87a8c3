"""How long work is expected to take: as measured, as its segment shows, or as equal work took elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import kernels
from ffm.model.gpu_times.segment_lengths import OFTEN, SEEN_SHARE, Shown
from ffm.model.gpu_times.unseen_work import by_segment
from ffm.model.grouping import numbered, sorted_within
from ffm.model.timeline import Timeline

SMALL_TRANSFER_NS = 4_000
"""What the GPU needs to copy or set a few bytes next to longer work: mostly the fixed cost of any such operation."""

_ENQUEUES = np.zeros(max(Action) + 1, np.bool_)
_ENQUEUES[[Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.SET_AND_WAIT]] = True
"""Whether each `Action` puts work on the GPU."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How long each enqueuing row's work takes; -1 if unknown. `firm` if it was measured or many segments agree on it,
    `sure` if all but a few do.
    """

    gpu: NDArray[np.int64]
    firm: NDArray[np.bool_]
    sure: NDArray[np.bool_]
    seldom: NDArray[np.bool_]
    """Whether equal work was seen less than `OFTEN` times, and this not at all; transfers are known by their bytes."""
    unseen: NDArray[np.bool_]
    """The same, with transfers."""


def enqueues(work: DeviceWork) -> NDArray[np.bool_]:
    """Return which rows put work on the GPU."""
    return _ENQUEUES[work.action]


@dataclass(frozen=True, slots=True)
class EqualWork:
    """The rows that put work on the GPU, and which of them do the same: the same call stack moves as many bytes."""

    rows: NDArray[np.int64]
    equal: NDArray[np.int64]
    """A number for what each does."""
    total: NDArray[np.int64]
    """How many rows have each number."""
    copied: NDArray[np.int64]
    """The bytes that rows with each number move."""


def find_equal_work(timeline: Timeline, work: DeviceWork) -> EqualWork:
    """Number what the rows that put work on the GPU do."""
    rows = np.flatnonzero(enqueues(work))
    equal, first = numbered(timeline.site[rows], work.copied[rows])
    return EqualWork(rows, equal, np.bincount(equal), work.copied[rows[first]])


def expect_times(
    timeline: Timeline, work: DeviceWork, works: EqualWork, shown: Shown, length: NDArray[np.int64]
) -> Expected:
    """Divide the segments' time, `length`, among their operations, and expect the same of equal ones elsewhere."""
    rows, equal, same = works.rows, works.equal, shown.same
    firm, sure, seldom, unseen = np.zeros((4, len(timeline)), bool)
    if not len(rows):
        return Expected(np.full(len(timeline), -1, np.int64), firm, sure, seldom, unseen)
    number = shown.segment[rows]
    timed = work.measured[rows] >= 0
    value = _expected_values(work, works, shown, length, number, timed)
    inside = number >= 0
    seen = np.bincount(equal[inside | timed], minlength=len(works.total))
    unseen[rows] = ~inside & ~timed & (seen < OFTEN)[equal]
    seldom[rows] = unseen[rows] & (work.copied[rows] == 0)
    firm[rows] = timed | by_segment(same.alike)[number]
    sure[rows] = timed | by_segment(same.sure)[number]
    gpu = np.full(len(timeline), -1, np.int64)  # not before: computing the values takes most memory
    gpu[rows] = np.maximum(value, -1, out=value)
    return Expected(gpu, firm, sure, seldom, unseen)


def _expected_values(
    work: DeviceWork,
    works: EqualWork,
    shown: Shown,
    length: NDArray[np.int64],
    number: NDArray[np.int32],
    timed: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return how long the work of each of the works' rows takes; below 0 if unknown.

    Args:
        work, works, shown, length: as for `expect_times`.
        number: the segment of each of those rows; -1 for none.
        timed: whether events timed it.
    """
    equal = works.equal
    single = timed | by_segment(shown.size == 1)[number]
    value = np.where(timed, _usual(work, works), by_segment(length)[number])
    if not single.all():
        others = np.flatnonzero(~single)
        asked = works.copied >= WORTH_TIMING_BYTES  # these show how fast transfers are
        asked[equal[others]] = True
        known = _medians_of(asked, equal, value, single, works.total)
        value[others] = _by_size(known, works.copied)[equal[others]]
    several = by_segment(shown.size > 1)[number]
    if several.any():
        value = _share_out(value, several, number, length)
        left = value < 0
        resolved = ~left & (number >= 0)
        if left.any() and resolved.any():
            asked = np.zeros(len(works.total), bool)
            asked[equal[left]] = True
            elsewhere = _medians_of(asked, equal, value, resolved, works.total)
            value = np.where(left, elsewhere[equal], value)
    return value


def _usual(work: DeviceWork, works: EqualWork) -> NDArray[np.float64]:
    """Return the measured times of rows that put work on the GPU: what equal work takes, as far as events allow.

    The call that brought the work to an idle GPU may have lasted on when that was there: then events leave open when
    the work began, and other occurrences tell.
    """
    least = work.measured[works.rows].astype(np.float64)
    if work.arriving is None:
        return least
    arriving = work.arriving[works.rows]
    timed = least >= 0
    open_to = np.flatnonzero(timed & (arriving != 0))
    asked = np.zeros(len(works.total), bool)
    asked[works.equal[open_to]] = True
    medians = _medians_of(asked, works.equal, least, timed, np.zeros(len(works.total), np.int64))
    median = medians[works.equal[open_to]]
    least[open_to] = median.clip(least[open_to], least[open_to] + arriving[open_to])
    return least


def _by_size(value: NDArray[np.float64], copied: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give transfers of unknown time what their bytes take at the speed of the others, in place; return the times."""
    timed = (copied >= WORTH_TIMING_BYTES) & (value > 0)
    if timed.any():
        speed = float((copied[timed] / value[timed]).max())
        moved = np.flatnonzero((value < 0) & (copied > 0))
        value[moved] = copied[moved] / speed
    value[(value < 0) & (copied > 0) & (copied < WORTH_TIMING_BYTES)] = SMALL_TRANSFER_NS
    return value


def _share_out(
    value: NDArray[np.float64],
    several: NDArray[np.bool_],
    number: NDArray[np.int32],
    length: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Give the operations of longer segments equal parts of what those with a known time leave over, in place.

    Operations with a known time keep it: the fit to the waits corrects what does not add up.
    """
    taken, missing = np.zeros(len(length)), np.zeros(len(length), np.int64)
    run(kernels.share_out, len(value), value, several, number, length, taken, missing)
    return value


def _medians_of(
    asked: NDArray[np.bool_],
    group: NDArray[np.int64],
    value: NDArray[np.float64],
    counted: NDArray[np.bool_],
    total: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the medians of the groups that are asked for, of those rows that count; -1 for other groups."""
    rows = np.flatnonzero(counted & asked[group])
    return _medians(group[rows], value[rows], total)


def _medians(group: NDArray[np.int64], value: NDArray[np.number], total: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the median of each group's values; -1 if a group has few of its `total` rows (shape (groups,))."""
    groups = len(total)
    counts = np.bincount(group, minlength=groups)
    half = counts // 2
    ordered = sorted_within(group, value, groups, half)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    medians = np.full(groups, -1.0)
    present = counts >= np.maximum(1, SEEN_SHARE * total)
    medians[present] = ordered[(first + half)[present]]
    return medians
