"""The compiled part of `ffm.sources.nesting`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROUNDED_NS = 2_000
"""A span may end this much after the one around it: some traces have whole microseconds."""


def enclose(
    order: NDArray[np.int64],
    group: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    spans: int,
    outer: NDArray[np.int64],
    depth: NDArray[np.int64],
) -> None:
    """Find the innermost span around each interval, in one pass.

    A span that ends well before another that begins within it is not around that one: the other is a range of the
    program, which a function opened and left open.

    Args:
        order: the intervals by group and start; of those with the same start, the outermost first.
        group: which intervals can contain each other.
        begin: shape (intervals,), like `end`, `outer` and `depth`.
        end: likewise.
        spans: how many of the first intervals are spans; the others contain nothing.
        outer: filled with the span around each interval; -1 if there is none.
        depth: filled with the number of spans around each interval.
    """
    stack = np.empty(spans + 1, np.int64)
    top = 0
    for place in range(len(order)):
        one = order[place]
        while top > 0 and (group[stack[top - 1]] != group[one] or end[stack[top - 1]] <= begin[one]):
            top -= 1
        while one < spans and top > 0 and end[stack[top - 1]] + ROUNDED_NS < end[one]:
            top -= 1
        outer[one] = stack[top - 1] if top > 0 else -1
        depth[one] = top
        if one < spans:
            stack[top] = one
            top += 1
