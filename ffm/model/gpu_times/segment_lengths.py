"""What the waits show: how long each segment lasts, which segments are the same work, and their latencies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times import segments
from ffm.model.gpu_times.fitting import WAITED_NS, trace_of, visiting_order
from ffm.model.gpu_times.pauses import usual_pause
from ffm.model.gpu_times.stream_latencies import latencies_of_streams
from ffm.model.gpu_times.unseen_work import FEW, brief_transfers
from ffm.model.grouping import numbered, sorted_within
from ffm.model.timeline import Timeline

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

SEEN_SHARE = 0.05
"""If fewer of an operation's occurrences were seen, they say nothing about the others: they may be exceptions."""

SELDOM = 0.05
"""If at most this share of the segments of the same work lasts much longer than the others, the work does not differ:
the waiting threads came late to a CPU.
"""

WAKING_NS = 50_000
"""At most this counts as usual latency when segments are compared: waking a thread on a busy virtual machine takes this
long. If segments differ by more, their work differs. Where none can be compared, any wait may be late by it.
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the waits show: the segments, and the latencies that go with them. Columns of rows, or of segments."""

    order: NDArray[np.int64]
    segment: NDArray[np.int32]
    """Each row's segment; -1 for none."""
    length: NDArray[np.int64]
    size: NDArray[np.int64]
    """The number of operations of each segment."""
    same: Same
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
    shows_latency: bool
    """Whether work was measured or done repeatedly, so that what waits last beyond it is known."""

    @property
    def most(self) -> int:
        """The most latency, unless a thread comes late to a CPU."""
        return self.least + (ALIKE_TIMES * self.same.usual if self.shows_latency else WAKING_NS)

    @property
    def likely_length(self) -> NDArray[np.int64]:
        """How long each segment's work likely takes."""
        length = np.where(self.same.alike, self.same.least - self.hidden, self.length - self.usual)
        length = (length - (self.size - 1) * self.pause).clip(0)
        return np.where(self.brief, (length + self.hidden - self.least).clip(0) // 2, length)


def find_segment_lengths(timeline: Timeline, work: DeviceWork, latency_ns: int) -> tuple[Shown, NDArray[np.int64]]:
    """Find the segments, compare them, and tell the latencies; also return `room` as `find_segments` fills it in."""
    order = visiting_order(timeline, work)
    segment = np.empty(len(timeline), np.int32)
    room = np.empty(len(timeline), np.int64)
    length, key, size = run(
        segments.find_segments,
        len(timeline),
        trace_of(timeline, work, order),
        work.measured,
        WAITED_NS,
        latency_ns,
        segment,
        room,
    )
    length, key, size = length.copy(), key.copy(), size.copy()  # there was room for as many as rows
    same = _compare(length, key)
    pause = usual_pause(timeline, work, segment, length, latency_ns)
    left = _latencies(length - (size - 1) * pause, size, segment, work.measured, latency_ns)
    measured = _are_enough(len(left), len(length))
    if measured:
        hidden = latency_ns = int(np.quantile(left, FEW))
        usual = int(np.median(left))
    else:
        hidden = int(HIDDEN_SHARE * latency_ns)
        usual = same.usual + hidden
    waits = latencies_of_streams(timeline, work, order, pause)
    # More is no latency: streams keep the device from each other.
    if len(waits) > max(OFTEN, len(left)) and np.median(waits) < usual:
        hidden = latency_ns = int(np.quantile(waits, FEW))
        usual = int(np.median(waits))
        same, measured = replace(same, usual=max(same.usual, usual - hidden)), True
    brief = brief_transfers(segment, size, work)
    known = measured or bool(same.often.any())
    return Shown(order, segment, length, size, same, brief, hidden, usual, latency_ns, pause, known), room


def _are_enough(latencies: int, segments: int) -> bool:
    return latencies >= max(OFTEN, SEEN_SHARE * segments)


def _latencies(
    length: NDArray[np.int64],
    size: NDArray[np.int64],
    segment: NDArray[np.int32],
    measured: NDArray[np.int32] | NDArray[np.int64],
    least: int,
) -> NDArray[np.int64]:
    """Return the latencies that the segments show whose work was completely measured, in nanoseconds: those of one
    operation, if they are not few, as what events measure is a little wrong for each.

    What the work and the pauses leave over of a segment, whose `length` is without pauses, may still be time between
    its operations, which grows with their number. So of a longer segment, only an equal share is latency, unless even
    the `least` latency is more.
    """
    known = np.flatnonzero((segment >= 0) & (measured >= 0))
    number = segment[known]
    complete = np.bincount(number, minlength=len(length)) == size
    alone = complete & (size == 1)
    if _are_enough(int(alone.sum()), len(length)):
        complete = alone
    work = np.bincount(number, weights=measured[known], minlength=len(length)).astype(np.int64)
    left = (length - work)[complete].clip(0)
    latencies: NDArray[np.int64] = np.maximum(left // size[complete], np.minimum(left, least))
    return latencies


@dataclass(frozen=True, slots=True)
class Same:
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


def _compare(length: NDArray[np.int64], key: NDArray[np.int64]) -> Same:
    if not len(length):
        empty, nothing = np.zeros(0, np.int64), np.zeros(0, bool)
        return Same(empty, empty, nothing, nothing, nothing, 0)
    which, _ = numbered(key)
    counts = np.bincount(which)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    few, half = (FEW * counts).astype(np.int64), counts // 2
    ordered = sorted_within(which, length, len(counts), few, half)
    least, median = ordered[first + few], ordered[first + half]
    excess = median - least
    often = counts >= OFTEN
    usual = min(_first_quartile(excess[often], counts[often]), WAKING_NS) if often.any() else 0
    allowed = np.maximum(ALIKE_SHARE * least, ALIKE_TIMES * usual)
    alike = often & (excess <= allowed)
    late = np.bincount(which, weights=length > (least + allowed)[which])
    sure = alike & (late <= SELDOM * counts)
    usual = int(np.average(excess[alike], weights=counts[alike])) if alike.any() else 0
    return Same(least[which], median[which], alike[which], sure[which], often[which], usual)


def _first_quartile(value: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Return the first quartile of values each of which occurs so many times, in whole numbers."""
    order = np.argsort(value)
    ends = np.cumsum(counts[order])
    place = 0.25 * (int(ends[-1]) - 1)
    beside = np.searchsorted(ends, np.minimum([int(place), int(place) + 1], ends[-1] - 1), side="right")
    return int(np.quantile(value[order[beside]], place % 1))
