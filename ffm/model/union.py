"""Intervals, of time or of memory, joined where they overlap or touch."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model import union_kernels
from ffm.model.compiled import run

Places = NDArray[np.int64]
"""Nanoseconds, or addresses."""


def lengths(begin: Places, end: Places, chosen: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Return how much some intervals, in any order, cover together: all of them, the chosen ones, and the others."""
    if not run(union_kernels.ascend, len(begin), begin, end):
        order = np.argsort(begin, kind="stable")
        begin, end, chosen = begin[order], end[order], chosen[order]
    measured = np.zeros(3, np.int64)
    run(union_kernels.measure, len(begin), begin, end, chosen, measured)
    everything, some, others = measured.tolist()
    return everything, some, others


def gaps(begin: Places, end: Places) -> tuple[NDArray[np.integer], Places, Places]:
    """Return the gaps between intervals, in any order: the number of the first interval behind each, when it begins,
    and when it ends. Intervals that are empty do not count.
    """
    if not run(union_kernels.ascend, len(begin), begin, end):
        order = np.argsort(begin, kind="stable")
        behind, since, until = gaps(begin[order], end[order])
        return order[behind], since, until
    count = run(union_kernels.count_gaps, len(begin), begin, end)
    behind, since, until = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count, np.int64)
    run(union_kernels.fill_gaps, len(begin), begin, end, behind, since, until)
    return behind, since, until


@dataclass(frozen=True)
class Union:
    """Intervals that do not touch, ascending, which cover what some intervals cover together."""

    begin: Places
    end: Places

    @classmethod
    def of(cls, begin: Places, end: Places) -> Union:
        """Join intervals, in any order."""
        if (begin[1:] < begin[:-1]).any():
            order = np.argsort(begin, kind="stable")
            begin, end = begin[order], end[order]
        return cls(*run(union_kernels.join, len(begin), begin, end))

    @property
    def length(self) -> int:
        """How much they cover."""
        return int((self.end - self.begin).sum())

    @functools.cached_property
    def before(self) -> Places:
        """How much the intervals before each one cover; one entry more than intervals."""
        covered = np.zeros(len(self.begin) + 1, np.int64)
        np.cumsum(self.end - self.begin, out=covered[1:])
        return covered

    def within(self, begin: Places, end: Places) -> Places:
        """Return how much of each interval they cover."""
        found = np.empty(len(begin), np.int64)
        run(union_kernels.cover, len(begin), self.begin, self.end, self.before, begin, end, found)
        return found

    def overlaps(self, other: Union) -> bool:
        """Return whether both cover some place."""
        return bool(self.within(other.begin, other.end).any())
