"""How long the GPU works at each operation: measured by events, or inferred from the ends of the CPU's waits.

Stage 3 puts events around what a program enqueues (`DeviceWork.measured`). An idle GPU passes the first of them before
the work has arrived, so that they also time the rest of the call (`DeviceWork.arriving`). They cannot time work for
which a call itself waits, such as synchronous copies, nor captured work, nor work that stage 3 did not see at the same
place. A trace of driver calls contains no GPU times, but it does show this: work reaches a stream when its call
enqueues it, a stream does its work in order, and a long wait ends when its work is done. This yields bounds for each
*segment*, the work between two moments at which a stream was known to be idle. The bounds are exact if the CPU waited,
and only upper limits if it came after the GPU had finished.

A wait ends a little after the work: the GPU reports, and the operating system wakes the thread. If all work of some
segments was measured, the remainder of those segments is this latency, as it is in this program. Otherwise the trace
cannot show its minimum, because every wait contains it; it is measured separately and passed in (`latency_ns`). If the
same work is waited for repeatedly, the shortest of those times, less part of that latency, is what the GPU needs. The
excess of the others is latency too, which disappears with the wait. The same holds if a few of many equal waits last
much longer: then the thread came late to a busy CPU. If the times differ too much for that, the work itself differs,
and each time counts as it is, less the usual latency.

Between queued pieces of work, the GPU pauses (`ffm.model.gpu_times.pauses`). That is no work, except in the slow
timeline.

There are three timelines: the likely one; a *slow* one, in which everything waited for was GPU work, and work that
nothing waited for took as long as it could; and a *fast* one, in which latency was as large, and the GPU as idle, as
the waits allow. A removed wait saves least in the slow one and most in the fast one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import kernels, segments
from ffm.model.gpu_times.pauses import usual_pause
from ffm.model.gpu_times.unseen_work import FEW, brief_transfers, by_segment, guess_unseen
from ffm.model.grouping import numbered, parts, sorted_within
from ffm.model.timeline import Timeline

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


_ENQUEUES = np.zeros(max(Action) + 1, np.bool_)
_ENQUEUES[[Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.SET_AND_WAIT]] = True
"""Whether each `Action` puts work on the GPU."""


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
    pause: int = 0
    """From the end of a stream's work to the begin of the next if that is queued."""

    def work_alone(self) -> GpuTimes:
        """Return the same without what only a replay needs, which takes two thirds of the memory."""
        nothing = np.empty(0, np.int64)
        return replace(self, ready=nothing, latency=nothing)


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
    fastest: GpuTimes | None = None
    """The fastest timeline that a trace without measured times allows: any wait may have ended late. None if it was not
    asked for.
    """

    def work_alone(self) -> Inference:
        """As `GpuTimes.work_alone`, of the three timelines."""
        likely, slow, fast = (times.work_alone() for times in (self.likely, self.slow, self.fast))
        return replace(self, likely=likely, slow=slow, fast=fast, fastest=None)

    def if_anything_is_late(self) -> Inference:
        """Return the same with the fastest timeline as the fast one."""
        assert self.fastest is not None, "it was not inferred"
        return replace(self, fast=self.fastest, waking_ns=ENDLESS_NS, fastest=None)

    def likely_alone(self) -> Inference:
        """Return the same with the likely timeline in place of the others."""
        return replace(self, slow=self.likely, fast=self.likely, fastest=None)


@dataclass(frozen=True, slots=True)
class _Expected:
    """How long each enqueuing row's work takes; -1 if unknown. `firm` if it was measured or many segments agree on it,
    `sure` if all but a few do.
    """

    gpu: NDArray[np.int64]
    firm: NDArray[np.bool_]
    sure: NDArray[np.bool_]
    seldom: NDArray[np.bool_]
    """Whether equal work was seen less than `OFTEN` times, and this not at all."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the waits show: the segments, and the latencies that go with them. Columns of rows, or of segments."""

    order: NDArray[np.int64]
    segment: NDArray[np.int32]
    """Each row's segment; -1 for none."""
    length: NDArray[np.int64]
    size: NDArray[np.int64]
    """The number of operations of each segment."""
    same: _Same
    brief: NDArray[np.bool_]
    """Which segments are one transfer of a few bytes."""
    hidden: int
    """The part of the latency that every wait of the program has."""
    usual: int
    """The usual latency."""
    least: int
    """The least latency of a wait for an idle GPU."""
    pause: int
    """The usual pause between queued operations."""

    @property
    def most(self) -> int:
        """The most latency, unless a thread comes late to a CPU."""
        return ALIKE_TIMES * self.same.usual + self.least

    @property
    def likely_length(self) -> NDArray[np.int64]:
        """How long each segment's work likely takes."""
        length = np.where(self.same.alike, self.same.least - self.hidden, self.length - self.usual)
        length = (length - (self.size - 1) * self.pause).clip(0)
        return np.where(self.brief, (length + self.hidden - self.least).clip(0) // 2, length)


def infer_gpu_times(
    timeline: Timeline, work: DeviceWork, latency_ns: int = 0, *, anything_late: bool = False
) -> Inference:
    """Infer the GPU's times of a whole run. O(n log n).

    `latency_ns` is the minimum time that a wait for an idle GPU lasts beyond the GPU's work, as far as it is known. If
    `anything_late`, the fastest timeline is found, too: the GPU needs the shortest time that the same work took, and
    none if it occurs too seldom to tell.
    """
    shown, room = _find_segments(timeline, work, latency_ns)
    works = _equal_works(timeline, work)
    expected = _expect(timeline, work, works, shown, shown.likely_length)
    fastest = None
    if anything_late:
        shortest = np.where(shown.same.often, shown.same.least - shown.least, 0).clip(0)
        seen = _expect(timeline, work, works, shown, shortest).gpu
        fastest = _fast(timeline, work, shown, replace(expected, gpu=expected.gpu.copy()), seen)
        del seen
    slow = _slow(timeline, work, shown, works, expected)
    del works
    likely = _likely(timeline, work, shown, expected, room, slow.gpu)
    del room
    fast = _fast(timeline, work, shown, expected)
    return Inference(shown.order, likely, slow, fast, shown.usual, shown.usual, fastest)


def infer_likely_times(timeline: Timeline, work: DeviceWork, latency_ns: int = 0) -> Inference:
    """Infer the likely timeline alone, in less time and memory: the other two of the result are the same one.

    Arguments as for `infer_gpu_times`.
    """
    shown, room = _find_segments(timeline, work, latency_ns)
    works = _equal_works(timeline, work)
    expected = _expect(timeline, work, works, shown, shown.likely_length)
    possible = None
    if (expected.gpu[works.rows] < 0).any():
        possible = _slow(timeline, work, shown, works, expected).gpu
    del works
    likely = _likely(timeline, work, shown, expected, room, possible)
    return Inference(shown.order, likely, likely, likely, shown.usual, shown.usual)


def _find_segments(timeline: Timeline, work: DeviceWork, latency_ns: int) -> tuple[_Shown, NDArray[np.int64]]:
    """Find the segments, compare them, and tell the latencies; also return `room` as `find_segments` fills it in."""
    order = visiting_order(timeline, work)
    segment = np.empty(len(timeline), np.int32)
    room = np.empty(len(timeline), np.int64)
    length, key, size = run(
        segments.find_segments,
        len(timeline),
        _trace(timeline, work, order),
        WAITED_NS,
        latency_ns,
        segment,
        room,
    )
    length, key, size = length.copy(), key.copy(), size.copy()  # there was room for as many as rows
    same = _compare(length, key)
    pause = usual_pause(timeline, work, segment, length, latency_ns)
    left = _latencies(length - (size - 1) * pause, size, segment, work.measured, latency_ns)
    if len(left) >= max(OFTEN, SEEN_SHARE * len(length)):
        hidden = latency_ns = int(np.quantile(left, FEW))
        usual = int(np.median(left))
    else:
        hidden = int(HIDDEN_SHARE * latency_ns)
        usual = same.usual + hidden
    brief = brief_transfers(segment, size, work)
    return _Shown(order, segment, length, size, same, brief, hidden, usual, latency_ns, pause), room


def _slow(timeline: Timeline, work: DeviceWork, shown: _Shown, works: _Works, likely: _Expected) -> GpuTimes:
    """Return the slow timeline, where work that no wait shows lasts as long as it can."""
    most = _longest(work)
    gpu = _expect(timeline, most, works, shown, np.where(shown.same.alike, shown.same.median, shown.length)).gpu
    gpu.clip(0, out=gpu)
    gpu[works.rows[(likely.gpu[works.rows] < 0) | likely.seldom[works.rows]]] = ENDLESS_NS
    return fit_times(timeline, work, shown.order, gpu, 0, np.where(work.measured >= 0, shown.usual, 0))


def _longest(work: DeviceWork) -> DeviceWork:
    """Return the work with the most that events say of its times."""
    if work.arriving is None:
        return work
    return replace(work, measured=np.where(work.measured >= 0, work.measured + work.arriving, -1), arriving=None)


def _likely(
    timeline: Timeline,
    work: DeviceWork,
    shown: _Shown,
    expected: _Expected,
    room: NDArray[np.int64],
    possible: NDArray[np.int64] | None,
) -> GpuTimes:
    """Return the likely timeline; `possible` is how long each row's work takes in the slow one, which need not be known
    if no work's time is unknown.
    """
    gpu = expected.gpu.clip(0)
    if possible is not None:
        unseen = np.flatnonzero((expected.gpu < 0) & _enqueues(work))
        most = np.where(possible[unseen] < ENDLESS_NS, possible[unseen], 0)
        gpu[unseen] = guess_unseen(timeline.site, work, room, unseen, most, expected.gpu)
    allowed = _allowed(work, shown, expected)
    first = fit_times(timeline, work, shown.order, gpu.copy(), shown.usual, allowed, pause=shown.pause)
    late = _often_late(timeline, first.latency, ALIKE_TIMES * shown.usual)
    if not late.any():
        return first
    del first
    excused = np.where(late, shown.usual, ENDLESS_NS)
    return fit_times(timeline, work, shown.order, gpu, shown.usual, allowed, excused, pause=shown.pause)


def _fast(
    timeline: Timeline,
    work: DeviceWork,
    shown: _Shown,
    expected: _Expected,
    seen: NDArray[np.int64] | None = None,
) -> GpuTimes:
    """Return the fast timeline; `seen` is how long work takes at least if any wait may have ended late.

    The expected times become the result's.
    """
    gpu = expected.gpu
    allowed = _allowed(work, shown, expected)
    before_last = by_segment((shown.size - 1).clip(0))
    brief = by_segment(shown.brief)
    for part in parts(len(timeline)):
        measured, likely, sure = work.measured[part], gpu[part], expected.sure[part]
        queued = before_last[shown.segment[part]]
        passing = np.where(queued > 0, max(shown.least - shown.pause, 0), shown.least - shown.hidden)
        shorter = np.where(measured >= 0, measured, (likely - passing).clip(0))
        shorter[brief[shown.segment[part]] & (measured < 0)] = 0
        unseen = (likely < 0) | expected.seldom[part]
        gpu[part] = np.where(unseen, 0, shorter) if seen is None else np.minimum(shorter, seen[part].clip(0))
        late_by = np.maximum(shown.most, allowed[part]) + queued * shown.least
        allowed[part] = np.where(sure, ENDLESS_NS, late_by) if seen is None else ENDLESS_NS
    return fit_times(timeline, work, shown.order, gpu, shown.most, allowed, pause=shown.pause)


def _allowed(work: DeviceWork, shown: _Shown, expected: _Expected) -> NDArray[np.int64]:
    """Return by how much a wait for each row's work may end later than expected, in the likely timeline."""
    allowed = np.empty(len(work.action), np.int64)
    # Unmeasured transfers of a few bytes that make up a segment may be late by all of it.
    least = by_segment(np.where(shown.brief, shown.same.median + shown.most, 0))
    for part in parts(len(allowed)):
        firm = np.where(expected.firm[part], shown.most, shown.usual)
        later = np.where(expected.sure[part], ENDLESS_NS, firm)
        alone = np.where(work.measured[part] < 0, least[shown.segment[part]], 0)
        allowed[part] = np.maximum(later, alone)
    return allowed


def _enqueues(work: DeviceWork) -> NDArray[np.bool_]:
    return _ENQUEUES[work.action]


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

    What the work and the pauses leave over of a segment, whose `length` is without pauses, may still be time between
    its operations, which grows with their number. So of a longer segment, only an equal share is latency, unless even
    the `least` latency is more.
    """
    known = np.flatnonzero((segment >= 0) & (measured >= 0))
    number = segment[known]
    complete = np.bincount(number, minlength=len(length)) == size
    work = np.bincount(number, weights=measured[known], minlength=len(length)).astype(np.int64)
    left = (length - work)[complete].clip(0)
    latencies: NDArray[np.int64] = np.maximum(left // size[complete], np.minimum(left, least))
    return latencies


def visiting_order(timeline: Timeline, work: DeviceWork) -> NDArray[np.int64]:
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
    few, half = (FEW * counts).astype(np.int64), counts // 2
    ordered = sorted_within(which, length, len(counts), few, half)
    least, median = ordered[first + few], ordered[first + half]
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


@dataclass(frozen=True, slots=True)
class _Works:
    """The rows that put work on the GPU, and which of them do the same: the same call stack moves as many bytes."""

    rows: NDArray[np.int64]
    equal: NDArray[np.int64]
    """A number for what each does."""
    total: NDArray[np.int64]
    """How many rows have each number."""
    copied: NDArray[np.int64]
    """The bytes that rows with each number move."""


def _equal_works(timeline: Timeline, work: DeviceWork) -> _Works:
    rows = np.flatnonzero(_enqueues(work))
    equal, first = numbered(timeline.site[rows], work.copied[rows])
    return _Works(rows, equal, np.bincount(equal), work.copied[rows[first]])


def _expect(timeline: Timeline, work: DeviceWork, works: _Works, shown: _Shown, length: NDArray[np.int64]) -> _Expected:
    """Divide the segments' time, `length`, among their operations, and expect the same of equal ones elsewhere."""
    rows, equal, same = works.rows, works.equal, shown.same
    gpu = np.full(len(timeline), -1, np.int64)
    firm, sure, seldom = np.zeros((3, len(timeline)), bool)
    if not len(rows):
        return _Expected(gpu, firm, sure, seldom)
    number = shown.segment[rows]
    inside = number >= 0
    several = by_segment(shown.size > 1)[number]
    told = work.measured[rows] >= 0
    single = told | by_segment(shown.size == 1)[number]
    alone = np.where(told, _usual(work, works), by_segment(length)[number])
    known = np.full(len(works.total), -1.0)
    if single.any():
        known = _medians(equal[single], alone[single], works.total)
    value = np.where(single, alone, _by_size(known, works.copied)[equal])
    del alone
    if several.any():
        value = _share_out(value, several, number, length)
        left = value < 0
        resolved = ~left & inside
        if left.any() and resolved.any():
            elsewhere = _medians(equal[resolved], value[resolved], works.total)
            value = np.where(left, elsewhere[equal], value)
    seen = np.bincount(equal[inside | told], minlength=len(works.total))
    seldom[rows] = ~inside & ~told & (work.copied[rows] == 0) & (seen[equal] < OFTEN)
    gpu[rows] = np.maximum(value, -1).astype(np.int64)
    firm[rows] = told | by_segment(same.alike)[number]
    sure[rows] = told | by_segment(same.sure)[number]
    return _Expected(gpu, firm, sure, seldom)


def _usual(work: DeviceWork, works: _Works) -> NDArray[np.float64]:
    """Return the measured times of rows that put work on the GPU: what equal work takes, as far as events allow.

    The call that brought the work to an idle GPU may have lasted on when that was there: then events leave open when
    the work began, and other occurrences tell.
    """
    least = work.measured[works.rows].astype(np.float64)
    if work.arriving is None:
        return least
    told = np.flatnonzero(least >= 0)
    arriving = work.arriving[works.rows[told]]
    median = _medians(works.equal[told], least[told], np.zeros(len(works.total), np.int64))[works.equal[told]]
    least[told] = median.clip(least[told], least[told] + arriving)
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


def fit_times(
    timeline: Timeline,
    work: DeviceWork,
    order: NDArray[np.int64],
    gpu: NDArray[np.int64],
    tolerance: int,
    allowed: NDArray[np.int64],
    excused: NDArray[np.int64] | None = None,
    *,
    pause: int = 0,
) -> GpuTimes:
    """Fit the GPU's times to the waits. Arguments as for the kernel; `gpu` and `allowed` have shape (n,),
    `excused` (sites,), in nanoseconds; without the latter, no wait is doubted. `gpu` becomes the result's.
    """
    if excused is None:
        excused = np.full(int(timeline.site.max(initial=-1)) + 1, ENDLESS_NS)
    ready = np.empty(len(timeline), np.int64)
    latency = np.empty(len(timeline), np.int64)
    # Waits shorten earlier work: the second pass sees from the beginning when it is done.
    for _ in range(2):
        explained, waited = run(
            kernels.fit,
            len(timeline),
            _trace(timeline, work, order),
            kernels.Rules(WAITED_NS, tolerance, allowed, excused, pause),
            kernels.Fitted(gpu, ready, latency),
        )
    return GpuTimes(gpu, ready, latency, int(explained), int(waited), pause)


def _trace(timeline: Timeline, work: DeviceWork, order: NDArray[np.int64]) -> kernels.Trace:
    gpus = work.gpus
    return kernels.Trace(
        order=order,
        thread=timeline.thread,
        start=timeline.start,
        duration=timeline.duration,
        wait=timeline.wait,
        site=timeline.site,
        action=work.action,
        stream=work.stream,
        event=work.event,
        copied=work.copied,
        process_of_thread=work.process_of_thread,
        legacy=work.legacy,
        apart=work.apart,
        gpu_of_stream=gpus.of_stream,
        first_gpu=gpus.first,
        events=work.events,
    )
