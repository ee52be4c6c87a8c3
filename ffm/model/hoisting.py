"""Which frees and allocations disappear if memory is kept instead of freed (dissertation 5.4.1; 6.2).

A `cudaFree` that waits for nothing useful cannot simply be deleted, or memory would leak. Instead, the buffer is kept
for the next allocation at the same place that it is large enough for. So a free saves its own time only if a later
allocation at that place takes over its memory, and then that allocation disappears as well. As many frees stay as
buffers were in use at once; for a loop, the last. Where each round asks for more than the one before, all stay.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_SURPLUS = 1 / 8
"""How much larger than an allocation the memory may be that it takes over, as a share of the allocation. The pool of
`ffm apply-remedy` keeps to it (`best_of` in `ffm/instrument/native/correction/order/pool.c`).
"""

LEAST_KEPT_BYTES = 64 << 20
"""A process can keep this much of a kind of memory without a taker beside what it held of it at its peak (`SLACK` in
`pool.c`).
"""


def reused_memory(
    process: NDArray[np.integer],
    site: NDArray[np.integer],
    address: NDArray[np.integer],
    size: NDArray[np.integer],
    allocates: NDArray[np.bool_],
    kind: NDArray[np.integer],
) -> NDArray[np.int32]:
    """For each free, return the row of the allocation that could have used its memory, and the reverse.

    Rows are the successful allocations and frees of a run in order of time; all columns have shape (n,). A free gives
    its memory to the next allocation of the process with the call stack that had allocated it and about its size; each
    free serves one allocation. Returns shape (n,), with -1 if there is no partner, and the row itself for a free whose
    memory the process could keep to its end. One pass.

    Args:
        process: the process of each row.
        site: the call stack of each row.
        address: the address allocated or freed.
        size: the bytes that an allocation asks for; not used for frees.
        allocates: True for allocations, False for frees.
        kind: what kind of memory an allocation is of; not used for frees.
    """
    partner = np.full(len(site), -1, np.int32)
    processes: dict[int, _Memory] = {}
    columns = (process, site, address, size, allocates, kind)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (owner, stack, where, asked, allocation, of) in enumerate(rows):
        memory = processes.setdefault(owner, _Memory())
        if allocation:
            free = memory.allocate(_Place(of, stack), where, asked)
            if free is not None:
                partner[row], partner[free] = free, row
        else:
            memory.free(where, row)
    for memory in processes.values():
        for row in memory.kept_to_the_end():
            partner[row] = row
    return partner


def without_keeping(partner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the partners where memory without a taker is freed in the end, instead of left to the process's end."""
    rows = np.flatnonzero(partner >= 0)
    kept = rows[partner[rows] == rows]
    if not len(kept):
        return partner
    without = partner.copy()
    without[kept] = -1
    return without


@dataclass(slots=True)
class _Kept:
    """Memory that calls with one stack had allocated, by size: the frees that could give it away, last one last."""

    frees: dict[int, list[int]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    """Those with frees, in order."""

    def put(self, size: int, row: int) -> None:
        waiting = self.frees.setdefault(size, [])
        if not waiting:
            insort(self.sizes, size)
        waiting.append(row)

    def take(self, size: int) -> tuple[int, int] | None:
        """Return the row of a free and the size of its memory, which is the smallest that fits."""
        place = bisect_left(self.sizes, size)
        if place == len(self.sizes) or self.sizes[place] - size > size * MOST_SURPLUS:
            return None
        found = self.sizes[place]
        row = self.frees[found].pop()
        if not self.frees[found]:
            self.sizes.pop(place)
        return row, found


class _Place(NamedTuple):
    """The kind of memory that is allocated, and the call stack that does it."""

    kind: int
    stack: int


@dataclass(slots=True)
class _Memory:
    """The memory of a process, in use and kept."""

    living: dict[int, tuple[_Place, int]] = field(default_factory=dict)
    """By address: where it was allocated, and its size."""
    kept: dict[_Place, _Kept] = field(default_factory=dict)
    held: Counter[int] = field(default_factory=Counter)
    """Bytes in use of each kind."""
    peak: Counter[int] = field(default_factory=Counter)

    def allocate(self, place: _Place, address: int, size: int) -> int | None:
        """Return the row of the free that could serve an allocation."""
        taken = self.kept[place].take(size) if place in self.kept else None
        row, actual = taken or (None, size)
        self.living[address] = place, actual
        self.held[place.kind] += actual
        self.peak[place.kind] = max(self.peak[place.kind], self.held[place.kind])
        return row

    def free(self, address: int, row: int) -> None:
        if address in self.living:
            place, size = self.living.pop(address)
            self.held[place.kind] -= size
            self.kept.setdefault(place, _Kept()).put(size, row)

    def kept_to_the_end(self) -> Iterator[int]:
        """Yield the frees without a taker, last one first, as long as there is room for what they keep."""
        room = {kind: peak + LEAST_KEPT_BYTES - self.held[kind] for kind, peak in self.peak.items()}
        left = (
            (row, size, place.kind)
            for place, kept in self.kept.items()
            for size, rows in kept.frees.items()
            for row in rows
        )
        for row, size, kind in sorted(left, reverse=True):
            room[kind] -= size
            if room[kind] >= 0:
                yield row
