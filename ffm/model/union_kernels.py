"""The passes that join intervals and measure what they cover (`ffm.model.union.Union`), in the subset of
Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inner
from ffm.model.searching import place_of

Columns = NDArray[Any]

MOST_BEFORE = -(1 << 62)
"""Before all places."""


def join(begin: Columns, end: Columns) -> tuple[Columns, Columns]:
    """Join intervals, ascending by begin, that touch; return the begins and ends of the joined ones."""
    count = 0
    last = 0
    for number in range(len(begin)):
        if number == 0 or begin[number] > last:
            count += 1
            last = end[number]
        last = max(last, end[number])
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    place = -1
    for number in range(len(begin)):
        if place < 0 or begin[number] > ends[place]:
            place += 1
            begins[place] = begin[number]
            ends[place] = end[number]
        ends[place] = max(ends[place], end[number])
    return begins, ends


def ascend(begin: Columns, end: Columns) -> bool:
    """Return whether intervals are in order of their begin, but for empty ones."""
    last = MOST_BEFORE
    for number in range(len(begin)):
        if end[number] > begin[number]:
            if begin[number] < last:
                return False
            last = begin[number]
    return True


def measure(begin: Columns, end: Columns, chosen: Columns, measured: Columns) -> None:
    """Fill in how much intervals, ascending by begin but for empty ones, cover together: all of them, the chosen ones,
    and the others.
    """
    everything = some = others = np.int64(0)
    all_over = some_over = others_over = MOST_BEFORE
    for number in range(len(begin)):
        since, until = begin[number], end[number]
        if until <= since:
            continue
        everything += max(until - max(since, all_over), 0)
        all_over = max(all_over, until)
        if chosen[number]:
            some += max(until - max(since, some_over), 0)
            some_over = max(some_over, until)
        else:
            others += max(until - max(since, others_over), 0)
            others_over = max(others_over, until)
    measured[0], measured[1], measured[2] = everything, some, others


@inner
def follows_gap(begin: Columns, end: Columns, number: int, over: int) -> bool:
    """Return whether an interval begins after a gap; `over` is when all before are, if there are any."""
    return bool(end[number] > begin[number] > over > MOST_BEFORE)


def count_gaps(begin: Columns, end: Columns) -> int:
    """Return how many gaps there are between intervals, ascending by begin but for empty ones."""
    found = 0
    over = MOST_BEFORE
    for number in range(len(begin)):
        found += follows_gap(begin, end, number, over)
        if end[number] > begin[number]:
            over = max(over, end[number])
    return found


def fill_gaps(begin: Columns, end: Columns, behind: Columns, since: Columns, until: Columns) -> None:
    """Fill in, for each of these gaps, the number of the first interval behind it, when the gap begins, and when it
    ends; there is room for all.
    """
    place = 0
    over = MOST_BEFORE
    for number in range(len(begin)):
        if follows_gap(begin, end, number, over):
            behind[index(place)] = number
            since[index(place)] = over
            until[index(place)] = begin[number]
            place += 1
        if end[number] > begin[number]:
            over = max(over, end[number])


def cover(begins: Columns, ends: Columns, before: Columns, since: Columns, until: Columns, found: Columns) -> None:
    """Fill in how much of each interval the joined ones cover."""
    near = 0
    for number in range(len(since)):
        near = place_of(begins, since[number] + 1, near)
        first = covered_until(begins, ends, before, since[number], near)
        near = place_of(begins, until[number] + 1, near)
        found[number] = covered_until(begins, ends, before, until[number], near) - first


@inner
def covered_until(begins: Columns, ends: Columns, before: Columns, time: int, after: int) -> int:
    """Return how much is covered before a moment; `after` is the first of the joined intervals that begins later."""
    if after == 0:
        return 0
    return int(before[after - 1] + min(time, ends[after - 1]) - begins[after - 1])
