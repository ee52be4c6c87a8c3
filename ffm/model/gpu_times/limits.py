"""The passes that tell what timelines of the GPU are fitted from (`ffm.model.gpu_times.inference`): how late waits may
be, and how long work takes at least; in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ffm.model.compiled import inner

Columns = NDArray[Any]

ANY = (1 << 31) - 1
"""Waits for some work may end as late as they like. So may those that may be late by more than that, in nanoseconds."""


class Known(NamedTuple):
    """What is known of each row's work, and of segments. Times are in nanoseconds."""

    segment: Columns
    """Each row's segment; -1 for none."""
    measured: Columns
    firm: Columns
    """The columns of `ffm.model.gpu_times.expected_work.Expected`, as the next three."""
    sure: Columns
    seldom: Columns
    unseen: Columns
    copied: Columns
    size: Columns
    """The number of each segment's operations."""
    median: Columns
    """Of the lengths of the segments of the same work, for each segment."""
    brief: Columns
    """Which segments are one transfer of a few bytes."""
    usual: int
    """The usual latency,"""
    least: int
    """the least,"""
    most: int
    """and the most."""
    endless: int
    """Longer than any wait."""


class Passing(NamedTuple):
    """What of a segment's length may be no work, in nanoseconds."""

    alone: int
    """Of a single operation,"""
    queued: int
    """and of one of several."""
    late: int
    """By so much any wait may be late, shared by a segment's operations."""
    few_bytes: int
    """Transfers of fewer bytes, whose time is guessed,"""
    small: int
    """take no longer than that."""


def allow_late(known: Known, allowed: Columns) -> None:
    """Fill in how much later than expected a wait for each row's work may end, in the likely timeline."""
    for row in range(len(allowed)):
        allowed[row] = min(late_in_likely(known, row), ANY)


@inner
def late_in_likely(known: Known, row: int) -> int:
    """Return how much later than expected a wait for a row's work may end, in the likely timeline."""
    segment = known.segment[row]
    late = known.usual
    if known.sure[row]:
        late = known.endless
    elif known.firm[row]:
        late = known.most
    # Unmeasured transfers of a few bytes that make up a segment may be late by all of it.
    if segment >= 0 and known.measured[row] < 0 and known.brief[segment]:
        late = max(late, int(known.median[segment]) + known.most)
    return int(late)


def find_shortest(known: Known, passing: Passing, seen: Columns, gpu: Columns, allowed: Columns) -> None:
    """Turn the likely times of work, -1 if unknown, into the shortest, and fill in how late waits may be in the fast
    timeline.

    If `seen` is not empty, any wait may have ended late, and work takes no longer than that.
    """
    anyhow, seldom = len(seen) > 0, known.seldom
    for row in range(len(gpu)):
        likely = int(gpu[row])
        gpu[row] = shortest_of(known, passing, row, likely)
        if anyhow:
            gpu[row] = max(min(gpu[row], seen[row]), 0)
        elif likely < 0 or seldom[row]:
            gpu[row] = 0
        elif 0 < known.copied[row] < passing.few_bytes and is_guessed(known, row):
            gpu[row] = min(gpu[row], passing.small)
        allowed[row] = ANY if anyhow else min(late_in_fast(known, row, late_in_likely(known, row)), ANY)


@inner
def shortest_of(known: Known, passing: Passing, row: int, likely: int) -> int:
    """Return how long a row's work takes at least, if it takes so long in the likely timeline."""
    segment = known.segment[row]
    if known.measured[row] >= 0:
        return int(known.measured[row])
    if segment < 0:
        return max(likely - passing.alone, 0)
    if known.brief[segment]:
        return 0
    size = int(known.size[segment])
    return max(likely - (passing.queued if size > 1 else passing.alone) - passing.late // max(size, 1), 0)


@inner
def is_guessed(known: Known, row: int) -> bool:
    """Return whether neither events nor a wait for it alone show how long a row's transfer takes."""
    segment = known.segment[row]
    return bool(known.unseen[row] or (known.measured[row] < 0 and segment >= 0 and known.size[segment] > 1))


@inner
def late_in_fast(known: Known, row: int, likely: int) -> int:
    """Return by how much a wait for a row's work may end late in the fast timeline, if it may do so by so much in the
    likely one.
    """
    if known.sure[row]:
        return known.endless
    segment = known.segment[row]
    queued = max(int(known.size[segment]) - 1, 0) if segment >= 0 else 0
    return max(known.most, likely) + queued * known.least
