"""The passes that join intervals and measure what they cover (`ffm.model.union.Union`), in the part of
Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
from ffm.model.searching import place_of

Columns = NDArray[Any]


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
