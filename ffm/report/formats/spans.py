"""Spans of a picture in time, joined where they would be too short to see.

They come in blocks, of which only what is drawn is kept: a picture of a run of any length takes about the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.grouping import numbered

MIXED = -1
"""Instead of a name: several spans that were joined."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans in lanes; all columns have the same length. Nanoseconds."""

    lane: Times
    begin: Times
    end: Times
    taken: Times
    """How much of that the spans take that were joined."""
    kind: Times
    name: Times
    """The least of their names, which are numbers,"""
    last: Times
    """and the greatest."""
    count: Times
    """How many they are."""

    @classmethod
    def single(
        cls, lane: NDArray[np.integer], begin: Times, end: Times, kind: Times, name: NDArray[np.integer]
    ) -> Spans:
        """Return spans that stand for themselves."""
        named = name.astype(np.int64)
        one = np.ones(len(begin), np.int64)
        return cls(lane.astype(np.int64), begin, end, end - begin, kind, named, named, one)

    @classmethod
    def together(cls, parts: Iterable[Spans]) -> Spans:
        """Return the spans of all parts."""
        columns = ([np.empty(0, np.int64), *(getattr(part, name) for part in parts)] for name in cls.__slots__)
        return cls(*map(np.concatenate, columns))

    def chosen(self, rows: NDArray[np.bool_] | Times) -> Spans:
        """Return some of the spans."""
        return Spans(*(getattr(self, name)[rows] for name in self.__slots__))

    def by_begin(self) -> Spans:
        """Return the spans in the order of time."""
        return self.chosen(np.argsort(self.begin, kind="stable"))

    def joined(self, which: Times, groups: int) -> Spans:
        """Return one span for each group, with the kind and lane that take most of it; `which` is each span's group."""
        begin, least = np.full((2, groups), np.iinfo(np.int64).max)
        end, last = np.zeros(groups, np.int64), np.full(groups, MIXED)
        np.minimum.at(begin, which, self.begin)
        np.maximum.at(end, which, self.end)
        np.minimum.at(least, which, self.name)
        np.maximum.at(last, which, self.last)
        taken = np.bincount(which, self.taken, groups).astype(np.int64)
        count = np.bincount(which, self.count, groups).astype(np.int64)
        lane, kind = (self._most(which, column, groups) for column in (self.lane, -self.kind))
        return Spans(lane, begin, end, taken, -kind, least, last, count)

    def _most(self, which: Times, column: Times, groups: int) -> Times:
        """Return the value of a column that takes most of each group; the greatest of several."""
        part, first = numbered(which, column)
        longest = first[np.argsort(np.bincount(part, self.taken, len(first)), kind="stable")]
        found = np.zeros(groups, np.int64)
        found[which[longest]] = column[longest]  # the last one, which is the longest, stays
        return found

    def __len__(self) -> int:
        return len(self.lane)


def bounded(blocks: Iterable[Spans], begin: int, length: int, most: int, *, in_lanes: bool = True) -> Spans:
    """Join spans that are shorter than some time with those in the same stretch of that time, which is the shortest
    that leaves about as many as wanted. Stretches are counted from `begin`, the first span's.

    Those of one lane are joined, or, unless `in_lanes`, pieces that follow each other in whatever lanes: as no longer
    piece can lie between those that begin in one stretch, the joined ones follow each other, too.
    """
    stretch = max(length // most, 1)
    all_, alone, short, total = list[Spans](), list[Spans](), list[Spans](), 0
    for spans in blocks:
        total += len(spans)
        if total <= most:
            all_.append(spans)
        brief = spans.end - spans.begin < stretch
        alone.append(spans.chosen(~brief))
        # Longer stretches consist of whole ones of this length, so what is joined here can be joined further.
        some = spans.chosen(brief)
        which, first = numbered((some.begin - begin) // stretch, some.lane, some.kind)
        short.append(some.joined(which, len(first)))
    if total <= most:
        return Spans.together(all_).by_begin()
    long, joined = Spans.together(alone), Spans.together(short)
    while True:
        brief = long.end - long.begin < stretch
        every = Spans.together([joined, long.chosen(brief)])
        group = (every.begin - begin) // stretch
        if in_lanes:
            group += every.lane * (length // stretch + 2)
        which, first = numbered(group)
        if int((~brief).sum()) + len(first) <= most or stretch > length:
            return Spans.together([every.joined(which, len(first)), long.chosen(~brief)]).by_begin()
        stretch *= 2
