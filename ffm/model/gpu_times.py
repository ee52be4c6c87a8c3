"""How long the GPU works at each operation: measured by events, or inferred from the ends of the CPU's waits.

Stage 3 puts events around what a program enqueues (`DeviceWork.measured`). They cannot time work for which a call
itself waits, such as synchronous copies, nor captured work, nor work that stage 3 did not see at the same place. A
trace of driver calls contains no GPU times, but it does show this: work reaches a stream when its call enqueues it, a
stream does its work in order, and a long wait ends when its work is done. This yields bounds for each *segment*, the
work between two moments at which a stream was known to be idle. The bounds are exact if the CPU waited, and only upper
limits if it came after the GPU had finished.

A wait ends a little after the work: the GPU reports, and the operating system wakes the thread. If all work of some
segments was measured, the remainder of those segments is this latency, as it is in this program. Otherwise the trace
cannot show its minimum, because every wait contains it; it is measured separately and passed in (`latency_ns`). If the
same work is waited for repeatedly, the shortest of those times, less part of that latency, is what the GPU needs. The
excess of the others is latency too, which disappears with the wait. The same holds if a few of many equal waits last
much longer: then the thread came late to a busy CPU. If the times differ too much for that, the work itself differs,
and each time counts as it is, less the usual latency.

There are three timelines: the likely one; a *slow* one, in which everything waited for was GPU work, and work that
nothing waited for took as long as it could; and a *fast* one, in which latency was as large, and the GPU as idle, as
the waits allow. A removed wait saves least in the slow one and most in the fast one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model import gpu_times_kernels
from ffm.model.compiled import run
from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import Action, DeviceWork
from ffm.model.grouping import numbered, sorted_within
from ffm.model.timeline import Timeline
from ffm.model.unseen_work import FEW, brief_transfers, guess_unseen, of_segment

WAITED_NS = 2_000
"""A longer wait really waited for the GPU; a shorter one only queried it. (Entering the driver's wait function for an
idle GPU takes 0.1 to 1 microseconds.)
"""

OFTEN = 3
"""This many segments must look alike before the shortest of them counts as what the GPU needs."""

ALIKE_SHARE = 0.05
"""Segments are the same work if their median exceeds their shortest by less than this share, or by less than
`ALIKE_TIMES` times the usual difference.
"""
ALIKE_TIMES = 4

HIDDEN_SHARE = 0.5
"""The share of the latency of a wait for an idle GPU that every wait of a program has. Part of that latency is the
work's way to the GPU, which a busy GPU has already behind it; part is waking the thread, which is quicker after a short
wait. None and all of it are the limits of the interval.
"""

SELDOM = 0.05
"""If at most this share of the segments of the same work lasts much longer than the others, the work does not differ:
the waiting threads came late to a CPU.
"""

OFTEN_LATE = 0.5
"""If more than this share of a site's waits ends much later than the measured work, the work took longer."""

SEEN_SHARE = 0.05
"""If fewer of an operation's occurrences were seen, they say nothing about the others: they may be exceptions."""

WAKING_NS = 50_000
"""At most this counts as usual latency when segments are compared: waking a thread on a busy virtual machine takes this
long. If segments differ by more, their work differs.
"""

SMALL_TRANSFER_NS = 4_000
"""What the GPU needs to copy or set a few bytes next to longer work: mostly the fixed cost of any such operation."""

ENDLESS_NS = 1 << 50
"""Expected duration, in the slow timeline, of work that nothing ever waited for; waits shorten it to what is possible.
"""


@dataclass(frozen=True, slots=True)
class GpuTimes:
    """One timeline of the GPU. Columns parallel to those of the timeline, in nanoseconds."""

    gpu: NDArray[np.int64]
    """How long the GPU does the work that the row enqueued; 0 for rows that enqueue nothing."""
    ready: NDArray[np.int64]
    """When all work of the process that was enqueued before the row is done."""
    latency: NDArray[np.int64]
    """From the end of the work until the waiting CPU continues; -1 - wait if the reason for the wait is unknown."""
    explained: int
    """How much of all waiting this timeline explains."""
    waited: int
    """All waiting."""


@dataclass(frozen=True, slots=True)
class Inference:
    """The three timelines, and the order in which their rows are visited: by process, then by start."""

    order: NDArray[np.int64]
    likely: GpuTimes
    slow: GpuTimes
    fast: GpuTimes
    latency_ns: int
    """The usual time in this run from the end of the GPU's work until the CPU continues."""
    waking_ns: int
    """How much of a latency at most is the waking of the thread, in the fast timeline. During the rest, the GPU may not
    have been done yet.
    """


@dataclass(frozen=True, slots=True)
class _Expected:
    """How long each enqueuing row's work takes; -1 if unknown. `firm` if it was measured or many segments agree on it,
    `sure` if all but a few do.
    """

    gpu: NDArray[np.int64]
    firm: NDArray[np.bool_]
    sure: NDArray[np.bool_]


def infer_gpu_times(
    timeline: Timeline, work: DeviceWork, latency_ns: int = 0, *, anything_late: bool = False
) -> Inference:
    """Infer the GPU's times of a whole run. O(n log n).

    `latency_ns` is the minimum time that a wait for an idle GPU lasts beyond the GPU's work, as far as it is known. If
    `anything_late`, the fast timeline is the fastest that a trace without measured times allows: any wait may have
    ended late, so the GPU needs the shortest time that the same work took, and none if it occurs too seldom to tell.
    """
    order = _order(timeline, work)
    segment = np.full(len(timeline), -1, np.int32)
    room = np.full(len(timeline), -1, np.int64)
    length, key, size = run(
        gpu_times_kernels.find_segments,
        len(timeline),
        order,
        timeline.thread,
        timeline.start,
        timeline.duration,
        timeline.wait,
        timeline.site,
        work.action,
        work.stream,
        work.copied,
        work.process_of_thread,
        WAITED_NS,
        latency_ns,
        segment,
        room,
    )
    same = _compare(length, key)
    left = _latencies(length, size, segment, work.measured, latency_ns)
    enqueues = np.isin(
        work.action, (Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.SET_AND_WAIT)
    )
    if len(left) >= max(OFTEN, SEEN_SHARE * len(length)):
        hidden = latency_ns = int(np.quantile(left, FEW))
        usual = int(np.median(left))
    else:
        hidden = int(HIDDEN_SHARE * latency_ns)
        usual = same.usual + hidden
    shortest = np.where(same.alike, same.least - hidden, length - usual).clip(0)
    longest = np.where(same.alike, same.median, length)
    brief = brief_transfers(segment, size, work)
    shortest = np.where(brief, (shortest + hidden - latency_ns).clip(0) // 2, shortest)
    likely = _expect(timeline, work, enqueues, segment, shortest, same, size)
    slow = _expect(timeline, work, enqueues, segment, longest, same, size)
    unknown = likely.gpu < 0
    most = ALIKE_TIMES * same.usual + latency_ns
    endless = np.where(unknown & enqueues, ENDLESS_NS, slow.gpu.clip(0))
    slowest = _fit(timeline, work, order, endless, 0, np.where(work.measured >= 0, usual, 0))
    possible = np.where(slowest.gpu < ENDLESS_NS, slowest.gpu, 0)
    allowed = np.where(likely.sure, ENDLESS_NS, np.where(likely.firm, most, usual))
    alone = np.flatnonzero((of_segment(segment, brief) > 0) & (work.measured < 0))
    allowed[alone] = np.maximum(allowed[alone], same.median[segment[alone]] + most)
    queued = (of_segment(segment, size) - 1).clip(0)
    passing = np.where(queued > 0, latency_ns, latency_ns - hidden)
    shorter = np.where(work.measured >= 0, work.measured, (likely.gpu - passing).clip(0))
    shorter[alone] = 0
    guess = guess_unseen(timeline.site, work, room, possible, np.where(enqueues, likely.gpu, -1))
    expected = np.where(unknown, guess, likely.gpu)
    likeliest = _fit(timeline, work, order, expected, usual, allowed)
    late = _often_late(timeline, likeliest.latency, ALIKE_TIMES * usual)
    if late.any():
        likeliest = _fit(timeline, work, order, expected, usual, allowed, np.where(late, usual, ENDLESS_NS))
    if anything_late:
        least = np.where(same.often, same.least - latency_ns, 0).clip(0)
        seen = _expect(timeline, work, enqueues, segment, least, same, size).gpu.clip(0)
        fastest = _fit(timeline, work, order, np.minimum(shorter, seen), most, np.full(len(timeline), ENDLESS_NS))
    else:
        late_by = np.where(likely.sure, ENDLESS_NS, np.maximum(most, allowed) + queued * latency_ns)
        fastest = _fit(timeline, work, order, np.where(unknown, 0, shorter), most, late_by)
    return Inference(
        order,
        likeliest,
        slowest,
        fastest,
        usual,
        ENDLESS_NS if anything_late else usual,
    )


def _often_late(timeline: Timeline, latency: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Return the sites whose waits end more than `most` nanoseconds later than the GPU's work, more often than not.

    A thread comes late to a CPU now and then. What is so each time is the GPU's: streams share it, so that work takes
    longer than it did between events, which also delay what follows.
    """
    sites = int(timeline.site.max(initial=-1)) + 1
    waited = latency >= 0
    late = np.bincount(timeline.site[waited & (latency > most)], minlength=sites)
    all_of = np.bincount(timeline.site[waited], minlength=sites)
    often: NDArray[np.bool_] = (late > OFTEN_LATE * all_of) & (late >= OFTEN)
    return often


def _latencies(
    length: NDArray[np.int64],
    size: NDArray[np.int64],
    segment: NDArray[np.int32],
    measured: NDArray[np.int64],
    least: int,
) -> NDArray[np.int64]:
    """Return the latencies that the segments show whose work was completely measured, in nanoseconds.

    What the work leaves over of a segment is also time between its operations, which grows with their number. So of a
    longer segment, only an equal share is latency, unless even the `least` latency is more.
    """
    known = (segment >= 0) & (measured >= 0)
    complete = np.bincount(segment[known], minlength=len(length)) == size
    work = np.bincount(segment[known], weights=measured[known], minlength=len(length)).astype(np.int64)
    left = (length - work)[complete].clip(0)
    latencies: NDArray[np.int64] = np.maximum(left // size[complete], np.minimum(left, least))
    return latencies


def given_gpu_times(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64]) -> Inference:
    """Use times given by a driver or a simulation: shape (n,), nanoseconds, 0 for rows that enqueue nothing."""
    order = _order(timeline, work)
    times = _fit(timeline, work, order, gpu, 0, np.full(len(timeline), ENDLESS_NS))
    return Inference(order, times, times, times, 0, 0)


def _order(timeline: Timeline, work: DeviceWork) -> NDArray[np.int64]:
    """Return the rows by process, then start. Rows are sorted by thread, and threads by process."""
    if work.processes == len(work.process_of_thread):
        return np.arange(len(timeline))
    return np.lexsort((timeline.start, work.process_of_thread[timeline.thread]))


@dataclass(frozen=True, slots=True)
class _Same:
    """How each segment compares with those that consist of the same operations. One entry per segment."""

    least: NDArray[np.int64]
    """The shortest, except for a few."""
    median: NDArray[np.int64]
    alike: NDArray[np.bool_]
    """Whether they are the same work."""
    sure: NDArray[np.bool_]
    """And hardly any lasts much longer than the others."""
    often: NDArray[np.bool_]
    """Whether there are enough to compare."""
    usual: int
    """Nanoseconds by which a segment usually exceeds the shortest of its kind."""


def _compare(length: NDArray[np.int64], key: NDArray[np.int64]) -> _Same:
    if not len(length):
        empty, nothing = np.zeros(0, np.int64), np.zeros(0, bool)
        return _Same(empty, empty, nothing, nothing, nothing, 0)
    which, _ = numbered(key)
    counts = np.bincount(which)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    ordered = sorted_within(which, length, len(counts))
    least, median = ordered[first + (FEW * counts).astype(np.int64)], ordered[first + counts // 2]
    excess = median - least
    often = counts >= OFTEN
    usual = int(np.quantile(np.repeat(excess[often], counts[often]), 0.25)) if often.any() else 0
    usual = min(usual, WAKING_NS)
    allowed = np.maximum(ALIKE_SHARE * least, ALIKE_TIMES * usual)
    alike = often & (excess <= allowed)
    late = np.bincount(which, weights=length > (least + allowed)[which])
    sure = alike & (late <= SELDOM * counts)
    usual = int(np.average(excess[alike], weights=counts[alike])) if alike.any() else 0
    return _Same(least[which], median[which], alike[which], sure[which], often[which], usual)


def _expect(
    timeline: Timeline,
    work: DeviceWork,
    enqueues: NDArray[np.bool_],
    segment: NDArray[np.int32],
    length: NDArray[np.int64],
    same: _Same,
    size: NDArray[np.int64],
) -> _Expected:
    """Divide the segments' time among their operations, and expect the same of equal operations elsewhere."""
    rows = np.flatnonzero(enqueues)
    gpu = np.full(len(timeline), -1, np.int64)
    firm, sure = np.zeros(len(timeline), bool), np.zeros(len(timeline), bool)
    if not len(rows):
        return _Expected(gpu, firm, sure)
    # Equal operations: the same call stack moving the same number of bytes.
    equal, _ = numbered(timeline.site[rows], work.copied[rows])
    part = segment[rows]
    inside = part >= 0
    number = np.where(inside, part, 0)
    several = inside & (size[number] > 1) if len(size) else inside
    told = work.measured[rows] >= 0
    alone = np.where(told, work.measured[rows], length[number] if len(length) else 0)
    single = told | (inside & ~several)
    total = np.bincount(equal)
    known = np.full(len(total), -1.0)
    if single.any():
        known = _medians(equal[single], alone[single], total)
    value = known[equal]
    copies = work.copied[rows] >= WORTH_TIMING_BYTES
    timed = copies & (value > 0)
    if timed.any():
        speed = float((work.copied[rows][timed] / value[timed]).max())
        moved = work.copied[rows] > 0
        value = np.where((value < 0) & moved, work.copied[rows] / speed, value)
    small = (work.copied[rows] > 0) & ~copies
    value = np.where((value < 0) & small, SMALL_TRANSFER_NS, value)
    value = np.where(single, alone, value)
    if several.any():
        value = _share_out(value, several, number, length)
        left = value < 0
        resolved = ~left & inside
        if left.any() and resolved.any():
            elsewhere = _medians(equal[resolved], value[resolved], total)
            value = np.where(left, elsewhere[equal], value)
    gpu[rows] = np.where(value >= 0, value, -1).astype(np.int64)
    firm[rows] = sure[rows] = told
    if len(size):
        firm[rows] |= inside & same.alike[number]
        sure[rows] |= inside & same.sure[number]
    return _Expected(gpu, firm, sure)


def _share_out(
    value: NDArray[np.float64],
    several: NDArray[np.bool_],
    number: NDArray[np.int32],
    length: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Give the operations of longer segments equal parts of what those with a known time leave over.

    Operations with a known time keep it: the fit to the waits corrects what does not add up.
    """
    members = np.flatnonzero(several)
    where = number[members]
    taken = np.bincount(where, weights=np.maximum(value[members], 0), minlength=len(length))
    missing = np.bincount(where, weights=value[members] < 0, minlength=len(length))
    rest = np.maximum(length - taken, 0) / np.maximum(missing, 1)
    shared = value.copy()
    unknown = members[value[members] < 0]
    shared[unknown] = rest[number[unknown]]
    return shared


def _medians(group: NDArray[np.int64], value: NDArray[np.number], total: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the median of each group's values; -1 if a group has few of its `total` rows (shape (groups,))."""
    groups = len(total)
    ordered = sorted_within(group, value, groups)
    counts = np.bincount(group, minlength=groups)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    medians = np.full(groups, -1.0)
    present = counts >= np.maximum(1, SEEN_SHARE * total)
    medians[present] = ordered[(first + counts // 2)[present]]
    return medians


def _fit(
    timeline: Timeline,
    work: DeviceWork,
    order: NDArray[np.int64],
    expected: NDArray[np.int64],
    tolerance: int,
    allowed: NDArray[np.int64],
    excused: NDArray[np.int64] | None = None,
) -> GpuTimes:
    """Fit the GPU's times to the waits. Arguments as for the kernel; `expected` and `allowed` have shape (n,),
    `excused` (sites,), in nanoseconds; without the latter, no wait is doubted.
    """
    if excused is None:
        excused = np.full(int(timeline.site.max(initial=-1)) + 1, ENDLESS_NS)
    gpu = expected.astype(np.int64)
    ready = np.zeros(len(timeline), np.int64)
    latency = np.zeros(len(timeline), np.int64)
    # Waits shorten earlier work: the second pass sees from the beginning when it is done.
    for _ in range(2):
        explained, waited = run(
            gpu_times_kernels.fit,
            len(timeline),
            order,
            timeline.thread,
            timeline.start,
            timeline.duration,
            timeline.wait,
            work.action,
            work.stream,
            work.event,
            work.process_of_thread,
            work.legacy,
            work.apart,
            work.stream_process,
            work.events,
            WAITED_NS,
            tolerance,
            allowed.astype(np.int64),
            timeline.site,
            excused,
            gpu,
            ready,
            latency,
        )
    return GpuTimes(gpu, ready, latency, int(explained), int(waited))
