"""The pass of `ffm.model.estimators.hoisting`: which free gives its memory to which allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner


class Calls(NamedTuple):
    """Successful allocations and frees in order of time. Columns of length n."""

    address: NDArray[np.int64]
    """A number for each address of each process."""
    allocates: NDArray[np.bool_]
    size: NDArray[np.int64]
    """The number of an allocation's size among `Sizes`; not used for frees."""


class Sizes(NamedTuple):
    """The distinct sizes that each place asks for, place after place, ascending at each. Columns of equal length."""

    bytes: NDArray[np.int64]
    end: NDArray[np.int64]
    """Behind the last size of the same place."""
    kind: NDArray[np.int64]
    """A number for the kind of memory, in each process."""


class Kept(NamedTuple):
    """Memory in use and kept, as the pass proceeds."""

    waiting: NDArray[np.int64]
    """A tree: the second half says for each size whether a free of it waits, and each number before that whether one of
    its two children does. Shape (2 * leaves,).
    """
    latest: NDArray[np.int64]
    """The last free of each size that waits, or -1.
    """
    before: NDArray[np.int64]
    """The one before each free. Shape (n,).
    """
    living: NDArray[np.int64]
    """The size of what lies at each address, or -1.
    """
    held: NDArray[np.int64]
    """Bytes in use of each kind, and `peak` the most that ever were.
    """
    peak: NDArray[np.int64]


@inner
def _mark(waiting: NDArray[np.int64], size: int, value: int) -> None:
    """Note whether a free of a size waits."""
    node = size + len(waiting) // 2
    waiting[node] = value
    while node > 1:
        node //= 2
        waiting[node] = waiting[2 * node] | waiting[2 * node + 1]


@inner
def _first_waiting(waiting: NDArray[np.int64], size: int) -> int:
    """Return the first size from this one on of which a free waits, or the number of leaves."""
    leaves = len(waiting) // 2
    node = size + leaves
    while waiting[node] == 0:
        while node & 1:  # the last of its parent
            node //= 2
        if node == 0:
            return leaves
        node += 1
    while node < leaves:
        node *= 2
        if waiting[node] == 0:
            node += 1
    return node - leaves


def reuse(calls: Calls, sizes: Sizes, kept: Kept, surplus: int, slack: int, partner: NDArray[np.int32]) -> None:
    """Fill in `partner` as `ffm.model.estimators.hoisting.reused_memory` returns it; it is -1 before.

    An allocation takes over memory that is larger by at most the `surplus`-th part of it; `slack` bytes can be kept
    without a taker. `kept` is as at the start of a run.
    """
    for row in range(len(partner)):
        if calls.allocates[row]:
            asked = calls.size[row]
            found = _first_waiting(kept.waiting, asked)
            if found < sizes.end[asked] and (sizes.bytes[found] - sizes.bytes[asked]) * surplus <= sizes.bytes[asked]:
                free = kept.latest[found]
                kept.latest[found] = kept.before[free]
                if kept.latest[found] < 0:
                    _mark(kept.waiting, found, 0)
                partner[row], partner[free] = free, row
            else:
                found = asked
            kept.living[calls.address[row]] = found
            kind = sizes.kind[found]
            kept.held[kind] += sizes.bytes[found]
            kept.peak[kind] = max(kept.peak[kind], kept.held[kind])
        else:
            size = kept.living[calls.address[row]]
            if size < 0:
                continue
            kept.living[calls.address[row]] = -1
            kept.held[sizes.kind[size]] -= sizes.bytes[size]
            kept.before[row] = kept.latest[size]
            if kept.latest[size] < 0:
                _mark(kept.waiting, size, 1)
            kept.latest[size] = row
    # Frees that still wait at the end are kept, the last one first, as long as there is room.
    left = np.full(len(partner), -1, np.int64)
    for size in range(len(kept.latest)):
        row = kept.latest[size]
        while row >= 0:
            left[row] = size
            row = kept.before[row]
    for row in range(len(partner) - 1, -1, -1):
        size = left[row]
        if size < 0:
            continue
        kind = sizes.kind[size]
        kept.held[kind] += sizes.bytes[size]
        if kept.held[kind] <= kept.peak[kind] + slack:
            partner[row] = row
