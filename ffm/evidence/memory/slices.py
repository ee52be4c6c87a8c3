"""Which parts of allocations copies and sets use: those that use different parts have no memory in common.

How far a kernel goes from an address is not known, so it has memory in common with all copies of the allocation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.necessity.program import Side


@dataclass(frozen=True, slots=True)
class MemoryUses:
    """Uses of numbered memory. Columns of equal length."""

    row: NDArray[np.int64]
    memory: NDArray[np.int64]
    writes: NDArray[np.bool_]
    side: NDArray[np.uint8]
    """A value of `Side`."""


def starts_of_merged(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, ascending, where ranges begin that overlap no earlier one. Ranges that only touch do not overlap."""
    order = np.argsort(begin, kind="stable")
    begin, until = begin[order], np.maximum.accumulate(end[order])
    return begin[np.append(True, begin[1:] >= until[:-1])] if len(begin) else begin


def in_slices(
    row: NDArray[np.int64],
    memory: NDArray[np.int64],
    writes: NDArray[np.bool_],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> MemoryUses:
    """Return uses of memory with those of a slice told apart: of the addresses from `begin` to `end`, 0 where it may be
    all of the memory with that number.

    Each slice gets a number of its own, and so does what uses all of its memory: the slices mark the second number for
    that and look at the first one, which it marks. Memory of which there is one slice stays as it is.

    All arguments, and the columns of what is returned, have a row for each use; `memory` is a number from 0.
    """
    part = end > begin
    start = starts_of_merged(begin[part], end[part])
    slice_ = np.full(len(row), -1, np.int64)
    slice_[part] = np.searchsorted(start, begin[part], side="right") - 1
    pairs = np.unique(np.column_stack([memory[part], slice_[part]]), axis=0)
    of, slices = np.unique(pairs[:, 0], return_counts=True)
    sliced = np.isin(memory, of[slices > 1])
    cut, whole = np.flatnonzero(sliced & part), np.flatnonzero(sliced & ~part)
    of_slices = int(memory.max(initial=-1)) + 1
    first_slice = 2 * of_slices
    side = np.zeros(len(row), np.uint8)
    side[cut] = Side.LOOKS
    places = np.concatenate([np.arange(len(row)), cut, cut, whole])
    return MemoryUses(
        row[places],
        np.concatenate([memory, of_slices + memory[cut], first_slice + slice_[cut], of_slices + memory[whole]]),
        writes[places],
        np.concatenate(
            [side, np.repeat(np.array([Side.MARKS, Side.BOTH, Side.LOOKS], np.uint8), [len(cut), len(cut), len(whole)])]
        ),
    )
