"""How long work is expected to take: as measured, as its segment shows, or as equal work took elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import ENQUEUES, DeviceWork
from ffm.model.gpu_times import expected_kernels
from ffm.model.gpu_times.segment_lengths import OFTEN, SEEN_SHARE, Shown
from ffm.model.gpu_times.timelines import Times
from ffm.model.grouping import looked_up, parts, select_within
from ffm.model.timeline import Timeline

SMALL_TRANSFER_NS = 1_200
"""What the GPU likely needs to copy or set a few bytes if nothing shows it: mostly the fixed cost of any such
operation. Medians of such work in traces of Nsight Systems and of PyTorch's profiler are 0.5 to 1.4 us for sets and
uploads, 1.1 to 2.5 us for downloads (RTX 3090, A100, H100).
"""

LEAST_SMALL_TRANSFER_NS = 500
MOST_SMALL_TRANSFER_NS = 4_000
"""What it needs at least and at most. In these traces, 95 of 100 transfers of up to 64 KiB take 0.5 to 3.5 us."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How long each enqueuing row's work takes; -1 if unknown. `firm` if it was measured or many segments agree on it,
    `sure` if all but a few do.
    """

    gpu: Times
    firm: NDArray[np.bool_]
    sure: NDArray[np.bool_]
    seldom: NDArray[np.bool_]
    """Whether equal work was seen less than `OFTEN` times, and this not at all; transfers are known by their bytes."""
    unseen: NDArray[np.bool_]
    """The same, with transfers."""


def enqueues(work: DeviceWork) -> NDArray[np.bool_]:
    """Return which rows put work on the GPU."""
    return looked_up(ENQUEUES, work.action)


@dataclass(frozen=True, slots=True)
class EqualWork:
    """The rows that put work on the GPU, and which of them do the same: the same call stack moves as many bytes."""

    rows: NDArray[np.int32]
    equal: NDArray[np.int32]
    """A number for what each does."""
    total: NDArray[np.int64]
    """How many rows have each number."""
    copied: NDArray[np.int64]
    """The bytes that rows with each number move."""


def find_equal_work(timeline: Timeline, work: DeviceWork) -> EqualWork:
    """Number what the rows that put work on the GPU do."""
    rows, equal = np.empty((2, len(timeline)), np.int32)
    count, first = run(
        expected_kernels.number_works,
        len(timeline),
        work.action,
        ENQUEUES,
        timeline.site,
        work.copied,
        rows,
        equal,
    )
    rows, equal = rows[:count], equal[:count]
    total = np.zeros(len(first), np.int64)
    for part in parts(count, len(first)):  # NumPy turns the column into a wider one
        total += np.bincount(equal[part], minlength=len(first))
    return EqualWork(rows, equal, total, work.copied[first])


def expect_times(
    timeline: Timeline, work: DeviceWork, works: EqualWork, shown: Shown, length: NDArray[np.int64], small_ns: int
) -> Expected:
    """Divide the segments' time, `length`, among their operations, and expect the same of equal ones elsewhere.
    `small_ns` is what transfers of a few bytes take that nothing shows.
    """
    gpu = expected_gpu(timeline, work, works, shown, length, small_ns)
    firm, sure, seldom, unseen = np.zeros((4, len(timeline)), bool)
    columns, segments = _columns(work, works, shown, length)
    seen = np.zeros(len(works.total), np.int64)
    run(expected_kernels.settle_flags, len(works.rows), columns, segments, OFTEN, seen, (firm, sure, seldom, unseen))
    return Expected(gpu, firm, sure, seldom, unseen)


def expected_gpu(
    timeline: Timeline, work: DeviceWork, works: EqualWork, shown: Shown, length: NDArray[np.int64], small_ns: int
) -> NDArray[np.int64]:
    """Return the times of `expect_times` alone."""
    value = _expected_values(work, works, shown, length, small_ns)
    gpu = np.full(len(timeline), -1, np.int64)  # not before: computing the values takes most memory
    run(expected_kernels.settle_times, len(works.rows), works.rows, value, gpu)
    return gpu


def _columns(
    work: DeviceWork, works: EqualWork, shown: Shown, length: NDArray[np.int64]
) -> tuple[expected_kernels.Works, expected_kernels.Segments]:
    """Return the columns that the kernels read."""
    arriving = np.zeros(0, work.measured.dtype) if work.arriving is None else work.arriving
    columns = expected_kernels.Works(works.rows, works.equal, shown.segment, work.measured, arriving, work.copied)
    return columns, expected_kernels.Segments(length, shown.size, shown.same.alike, shown.same.sure)


def _expected_values(
    work: DeviceWork, works: EqualWork, shown: Shown, length: NDArray[np.int64], small_ns: int
) -> NDArray[np.float64]:
    """Return how long the work of each of the works' rows takes; below 0 if unknown. Arguments as for `expect_times`.

    Measured times count as far as events allow: the call that brought the work to an idle GPU may have lasted on when
    that was there. Then events leave open when the work began, and other occurrences tell.
    """
    rows, equal = len(works.rows), works.equal
    columns, segments = _columns(work, works, shown, length)
    value, source = np.empty(rows), np.empty(rows, np.uint8)
    opened, others = np.zeros((2, len(works.total)), np.bool_)
    several = run(expected_kernels.value_rows, rows, columns, segments, value, source, opened, others)
    if opened.any():
        anyhow = np.zeros(len(works.total), np.int64)
        median = _medians_of(opened, equal, value, source, expected_kernels.TIMED, anyhow)
        run(expected_kernels.limit_open, rows, columns, median, value)
    if others.any():
        asked = others | (works.copied >= WORTH_TIMING_BYTES)  # these show how fast transfers are
        known = _medians_of(asked, equal, value, source, expected_kernels.SINGLE, works.total)
        run(expected_kernels.fill_others, rows, equal, source, _by_size(known, works.copied, small_ns), value)
    if several:
        _share_out(works, columns, segments, value)
    return value


def _share_out(
    works: EqualWork,
    columns: expected_kernels.Works,
    segments: expected_kernels.Segments,
    value: NDArray[np.float64],
) -> None:
    """Give the operations of longer segments equal parts of what those with a known time leave over, in place.

    Operations with a known time keep it: the fit to the waits corrects what does not add up. Those of other segments
    that are still unknown then take what equal ones do elsewhere.
    """
    taken, missing = np.zeros(len(segments.length)), np.zeros(len(segments.length), np.int64)
    if not run(expected_kernels.share_out, len(value), columns, segments, value, taken, missing):
        return
    left = value < 0
    resolved = ~left & (columns.segment[works.rows] >= 0)
    asked = np.zeros(len(works.total), bool)
    asked[works.equal[left]] = True
    elsewhere = _medians_of(asked, works.equal, value, resolved.view(np.uint8), 1, works.total)
    value[left] = elsewhere[works.equal[left]]


def _by_size(value: NDArray[np.float64], copied: NDArray[np.int64], small_ns: int) -> NDArray[np.float64]:
    """Give transfers of unknown time what their bytes take at the speed of the others, or `small_ns`, in place; return
    the times.
    """
    timed = (copied >= WORTH_TIMING_BYTES) & (value > 0)
    if timed.any():
        speed = float((copied[timed] / value[timed]).max())
        moved = np.flatnonzero((value < 0) & (copied > 0))
        value[moved] = copied[moved] / speed
    value[(value < 0) & (copied > 0) & (copied < WORTH_TIMING_BYTES)] = small_ns
    return value


def _medians_of(
    asked: NDArray[np.bool_],
    group: NDArray[np.integer],
    value: NDArray[np.float64],
    source: NDArray[np.uint8],
    least: int,
    total: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the medians of the groups that are asked for, of those rows of which `source` is at least `least`; -1 for
    other groups, and for those with few such rows of `total` (shape (groups,)).
    """
    ordered, counts = run(expected_kernels.gather, len(group), asked, group, value, source, least)
    half = counts // 2
    select_within(ordered, counts, half)
    medians = np.full(len(total), -1.0)
    present = counts >= np.maximum(1, SEEN_SHARE * total)
    medians[present] = ordered[(np.cumsum(counts) - counts + half)[present]]
    return medians
