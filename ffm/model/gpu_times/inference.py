"""How long the GPU works at each operation: measured by events, or inferred from the ends of the CPU's waits.

Stage 3 puts events around what a program enqueues (`DeviceWork.measured`). An idle GPU passes the first of them before
the work has arrived, so that they also time the rest of the call (`DeviceWork.arriving`). They cannot time work for
which a call itself waits, such as synchronous copies, nor captured work, nor work that stage 3 did not see at the same
place. A trace of driver calls contains no GPU times, but it does show this: work reaches a stream when its call
enqueues it, a stream does its work in order, and a long wait ends when its work is done. If several threads wait for a
stream, what one waits for is done when the wait of another is over that began later, however late the one wakes
(`ffm.model.gpu_times.overtaken_waits`). This yields bounds for each *segment*, the work between two moments at which a
stream was known to be idle. The bounds are exact if the CPU waited, and only upper limits if it came after the GPU had
finished.

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
from ffm.model.device import DeviceWork
from ffm.model.gpu_times import limits
from ffm.model.gpu_times.expected_work import (
    LEAST_SMALL_TRANSFER_NS,
    MOST_SMALL_TRANSFER_NS,
    SMALL_TRANSFER_NS,
    EqualWork,
    Expected,
    enqueues,
    expect_times,
    expected_gpu,
    find_equal_work,
)
from ffm.model.gpu_times.fitting import fit_times
from ffm.model.gpu_times.segment_lengths import ALIKE_TIMES, OFTEN, WAKING_NS, Shown, find_segment_lengths
from ffm.model.gpu_times.timelines import ENDLESS_NS, GpuTimes, GuessedTotals, Inference, Times, packed
from ffm.model.gpu_times.unseen_work import guess_unseen
from ffm.model.grouping import parts
from ffm.model.timeline import Timeline

OFTEN_LATE = 0.5
"""If more than this share of a site's waits ends much later than the measured work, the work took longer."""


def infer_gpu_times(
    timeline: Timeline,
    work: DeviceWork,
    latency_ns: int = 0,
    *,
    anything_late: bool = False,
) -> Inference:
    """Infer the GPU's times of a whole run. O(n log n).

    `latency_ns` is the minimum time that a wait for an idle GPU lasts beyond the GPU's work, as far as it is known. If
    `anything_late`, the fastest timeline is found, too: the GPU needs the shortest time that the same work took, and
    none if it occurs too seldom to tell.
    """
    shown, room = find_segment_lengths(timeline, work, latency_ns)
    order, usual, pause = shown.order, shown.usual, shown.pause
    works = find_equal_work(timeline, work)
    expected = expect_times(timeline, work, works, shown, shown.likely_length, SMALL_TRANSFER_NS)
    fastest = None
    if anything_late:
        shortest = np.where(shown.same.often, shown.same.least - shown.least, 0).clip(0)
        seen = expected_gpu(timeline, work, works, shown, shortest, LEAST_SMALL_TRANSFER_NS)
        briefest = _shortest(work, shown, replace(expected, gpu=expected.gpu.copy()), seen)
        fastest = fit_times(timeline, work, order, *briefest, pause=pause)
        del seen, briefest
    if np.count_nonzero(expected.gpu >= 0) == len(works.rows):  # nothing is to be guessed
        room = np.empty(0, np.int64)
    expected = replace(expected, gpu=packed(expected.gpu))  # the next steps take most memory
    longest = _longest_times(timeline, work, shown, works, expected)
    del works
    slow = _slow(timeline, work, shown, longest)
    guessed = _guessed(timeline, work, expected, room, slow.gpu)
    del room
    rows = np.flatnonzero(expected.unseen | ((expected.gpu < 0) & enqueues(work)))
    usually = [_Usually.of(work, shown, expected, guessed)]
    shortest, most, allowed = _shortest(work, shown, expected)
    del shown, expected, guessed  # no fit needs them
    shortest = packed(shortest)
    likely = _likely(timeline, work, usually.pop())
    shortest = np.asarray(shortest, np.int64)
    fast = fit_times(timeline, work, order, shortest, most, allowed, pause=pause)
    totals = GuessedTotals.of(rows, fast, likely, slow)
    return Inference(order, likely, slow, fast, usual, usual, fastest, totals).of_one_type()


def infer_likely_times(timeline: Timeline, work: DeviceWork, latency_ns: int = 0) -> Inference:
    """Infer the likely timeline alone, in less time and memory: the other two of the result are the same one.

    Arguments as for `infer_gpu_times`.
    """
    shown, room = find_segment_lengths(timeline, work, latency_ns)
    works = find_equal_work(timeline, work)
    expected = expect_times(timeline, work, works, shown, shown.likely_length, SMALL_TRANSFER_NS)
    guessed = _Guessed.nothing()
    if np.count_nonzero(expected.gpu >= 0) < len(works.rows):
        slow = _slow(timeline, work, shown, _longest_times(timeline, work, shown, works, expected))
        guessed = _guessed(timeline, work, expected, room, slow.gpu)
        del slow
    order, usual = shown.order, shown.usual
    usually = [_Usually.of(work, shown, expected, guessed)]
    del works, room, shown, expected, guessed
    likely = _likely(timeline, work, usually.pop())
    return Inference(order, likely, likely, likely, usual, usual)


def _longest_times(
    timeline: Timeline, work: DeviceWork, shown: Shown, works: EqualWork, likely: Expected
) -> NDArray[np.int64]:
    """Return how long each row's work takes at most; work that no wait shows lasts as long as it can."""
    length = np.where(shown.same.alike, shown.same.median, shown.length)
    gpu = expected_gpu(timeline, _longest(work), works, shown, length, MOST_SMALL_TRANSFER_NS)
    gpu.clip(0, out=gpu)
    gpu[((likely.gpu < 0) | likely.seldom) & enqueues(work)] = ENDLESS_NS
    return gpu


def _slow(timeline: Timeline, work: DeviceWork, shown: Shown, gpu: NDArray[np.int64]) -> GpuTimes:
    """Return the slow timeline, in which work takes so long if no wait shows that it takes less."""
    allowed = np.where(work.measured >= 0, np.int32(min(shown.usual, limits.ANY)), np.int32(0))
    return fit_times(timeline, work, shown.order, gpu, 0, allowed)


def _longest(work: DeviceWork) -> DeviceWork:
    """Return the work with the most that events say of its times."""
    if work.arriving is None:
        return work
    return replace(work, measured=np.where(work.measured >= 0, work.measured + work.arriving, -1), arriving=None)


@dataclass(frozen=True, slots=True)
class _Guessed:
    """Rows whose work's time is unknown, and the nanoseconds that were guessed for it."""

    rows: NDArray[np.int64]
    gpu: NDArray[np.int64]

    @classmethod
    def nothing(cls) -> _Guessed:
        """Return no guess."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _guessed(
    timeline: Timeline, work: DeviceWork, expected: Expected, room: NDArray[np.int64], possible: Times
) -> _Guessed:
    """Guess how long unknown work takes; `possible` is how long each row's work takes in the slow timeline."""
    unseen = np.flatnonzero((expected.gpu < 0) & enqueues(work))
    if not len(unseen):
        return _Guessed.nothing()
    most = np.where(possible[unseen] < ENDLESS_NS, possible[unseen], 0).astype(np.int64)
    return _Guessed(unseen, guess_unseen(timeline.site, work, room, unseen, most, expected.gpu))


@dataclass(frozen=True, slots=True)
class _Usually:
    """What the likely timeline is fitted from."""

    order: NDArray[np.int64]
    gpu: Times
    """How long each row's work is expected to take; 0 for none. In 32 bits if that is enough."""
    allowed: NDArray[np.int32]
    usual: int
    """The usual latency."""
    pause: int

    @classmethod
    def of(cls, work: DeviceWork, shown: Shown, expected: Expected, guessed: _Guessed) -> _Usually:
        """Return it, in columns of its own."""
        gpu = expected.gpu.astype(np.int64)
        gpu.clip(0, out=gpu)
        gpu[guessed.rows] = guessed.gpu
        return cls(shown.order, packed(gpu), _allowed(work, shown, expected), shown.usual, shown.pause)


def _likely(timeline: Timeline, work: DeviceWork, usually: _Usually) -> GpuTimes:
    """Return the likely timeline."""
    order, allowed, usual, pause = usually.order, usually.allowed, usually.usual, usually.pause
    first = fit_times(timeline, work, order, usually.gpu.astype(np.int64), usual, allowed, pause=pause)
    late = _often_late(timeline, first.latency, ALIKE_TIMES * usual)
    if not late.any():
        return first
    del first  # its times were corrected in place: they are found again, which takes no memory meanwhile
    excused = np.where(late, usual, ENDLESS_NS)
    return fit_times(timeline, work, order, usually.gpu.astype(np.int64), usual, allowed, excused, pause=pause)


def _shortest(
    work: DeviceWork, shown: Shown, expected: Expected, seen: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], int, NDArray[np.int32]]:
    """Return what the fast timeline is fitted from: how long work takes, and what waits show, as `fit_times` takes it.

    `seen` is how long work takes at least if any wait may have ended late. Expected times of 64 bits become those of
    the result.
    """
    gpu = np.asarray(expected.gpu, np.int64)
    allowed = np.empty(len(gpu), np.int32)
    queued = max(shown.least - shown.pause, 0)
    passing = limits.Passing(
        alone=shown.least - shown.hidden,
        queued=queued,
        late=0 if shown.shows_latency else WAKING_NS,
        few_bytes=WORTH_TIMING_BYTES,
        small=LEAST_SMALL_TRANSFER_NS,
    )
    seen = np.empty(0, np.int64) if seen is None else seen
    run(limits.find_shortest, len(gpu), _known(work, shown, expected), passing, seen, gpu, allowed)
    return gpu, shown.most, allowed


def _allowed(work: DeviceWork, shown: Shown, expected: Expected) -> NDArray[np.int32]:
    """Return how much later than expected a wait for each row's work may end, in the likely timeline."""
    allowed = np.empty(len(work.action), np.int32)
    run(limits.allow_late, len(allowed), _known(work, shown, expected), allowed)
    return allowed


def _known(work: DeviceWork, shown: Shown, expected: Expected) -> limits.Known:
    """Return what the passes read."""
    return limits.Known(
        segment=shown.segment,
        measured=work.measured,
        firm=expected.firm,
        sure=expected.sure,
        seldom=expected.seldom,
        unseen=expected.unseen,
        copied=work.copied,
        size=shown.size,
        median=shown.same.median,
        brief=shown.brief,
        usual=shown.usual,
        least=shown.least,
        most=shown.most,
        endless=ENDLESS_NS,
    )


def _often_late(timeline: Timeline, latency: Times, most: int) -> NDArray[np.bool_]:
    """Return the sites whose waits end more than `most` nanoseconds later than the GPU's work, more often than not.

    A thread comes late to a CPU now and then. What is so each time is the GPU's: streams share it, so that work takes
    longer than it did between events, which also delay what follows.
    """
    sites = int(timeline.site.max(initial=-1)) + 1
    late, all_of = np.zeros((2, sites), np.int64)
    for part in parts(len(latency), sites):  # columns of all rows take much memory
        waited, site = latency[part] >= 0, timeline.site[part]
        late += np.bincount(site[waited & (latency[part] > most)], minlength=sites)
        all_of += np.bincount(site[waited], minlength=sites)
    often: NDArray[np.bool_] = (late > OFTEN_LATE * all_of) & (late >= OFTEN)
    return often
