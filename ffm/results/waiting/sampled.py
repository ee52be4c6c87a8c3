"""The program's own functions within its CPU work between calls, by samples of what its threads did.

How long the work between two calls took is measured. Samples say where in the program it was done; each stands for some
milliseconds of processor time. The time for which no sample stands is waiting, or time without a processor. While
threads that never call the driver work, it is assumed to be waiting for them, and belongs to their functions. The rest
is kept apart if chance does not explain it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.results.documents.measured import Sampled, SampledPlace

LIKELY_ERRORS = 2.0
"""By how many standard errors of its samples a time must exceed them to be more than chance."""

REST = " (waiting)"
"""After the name of a function: it waited."""

Lines = dict[int, int]
"""Nanoseconds of each line; 0 if it is unknown."""


@dataclass(frozen=True, slots=True)
class SampledFunction:
    """A function of the program, by its name and the name of its file."""

    name: str
    file: str


@dataclass(slots=True)
class SampledPair:
    """What was sampled between calls at two sites: nanoseconds by function and line."""

    period_ns: int
    """Of processor time between two samples of a thread."""
    functions: dict[SampledFunction, Lines] = field(default_factory=dict)
    beside: dict[SampledFunction, Lines] = field(default_factory=dict)
    """The same of threads that never call the driver, while the one between the calls was not seen to work."""

    def lines(self, function: SampledFunction) -> Lines:
        """Return the nanoseconds of a function's lines, in all threads."""
        found = dict(self.functions.get(function, {}))
        for line, nanoseconds in self.beside.get(function, {}).items():
            found[line] = found.get(line, 0) + nanoseconds
        return found

    def shares(self, total: float) -> tuple[dict[SampledFunction, float], float]:
        """Return which shares of a time of so many nanoseconds the functions have, and the rest. Both are nothing if it
        is too short to say.
        """
        own, others = _all_of(self.functions), _all_of(self.beside)
        waited = min(others, max(total - own, 0.0))
        sampled = own + waited
        error = LIKELY_ERRORS * math.sqrt(total * self.period_ns) + self.period_ns
        whole = total if total - sampled > error else sampled
        if whole == 0:
            return {}, 0.0
        shares = {function: sum(lines.values()) / whole for function, lines in self.functions.items()}
        for function, lines in self.beside.items():
            shares[function] = shares.get(function, 0.0) + sum(lines.values()) * waited / others / whole
        return shares, (whole - sampled) / whole


def _all_of(functions: dict[SampledFunction, Lines]) -> int:
    return sum(sum(lines.values()) for lines in functions.values())


def sampled_pairs(sampled: Sampled) -> dict[tuple[int, int | None], SampledPair]:
    """Return what was sampled, by the sites before and after; None is the end of the thread."""
    pairs: dict[tuple[int, int | None], SampledPair] = defaultdict(lambda: SampledPair(sampled.period_ns))
    functions = [_function(place) for place in sampled.places]
    for before, after, place, beside, nanoseconds in zip(
        sampled.before, sampled.after, sampled.place, sampled.beside, sampled.nanoseconds, strict=True
    ):
        pair = pairs[before, None if after < 0 else after]
        if nanoseconds:
            lines = (pair.beside if beside else pair.functions).setdefault(functions[place], {})
            line = sampled.places[place].line
            lines[line] = lines.get(line, 0) + nanoseconds
    return dict(pairs)


def _function(place: SampledPlace) -> SampledFunction:
    return SampledFunction(place.function, PurePath(place.file).name)


@dataclass(frozen=True, slots=True)
class Split:
    """How cells, each a piece of the run that was timed as a whole, share out to regions. Columns of length n."""

    cell: NDArray[np.int64]
    region: NDArray[np.int64]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, rows: list[tuple[int, int, float]]) -> Split:
        """Return it from (cell, region, share)."""
        cell, region, share = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(np.array(cell, np.int64), np.array(region, np.int64), np.array(share, np.float64))

    def spread(self, values: NDArray[Any], regions: int) -> NDArray[np.float64]:
        """Return the regions' sums of the cells' values."""
        weights = values[self.cell] * self.share
        return np.bincount(self.region, weights=weights, minlength=regions).astype(np.float64)

    def bounded(self, bound: NDArray[Any], total: NDArray[Any], regions: int) -> NDArray[np.float64]:
        """Return the regions' sums of bounds of the cells: a part of one has its bound, but no more than its time."""
        weights = np.where(
            self.share < 1, np.minimum(bound[self.cell], total[self.cell] * self.share), bound[self.cell]
        )
        return np.bincount(self.region, weights=weights, minlength=regions).astype(np.float64)

    def count(self, values: NDArray[np.int64], regions: int) -> NDArray[np.int64]:
        """Return the regions' sums of what is counted in cells."""
        return np.bincount(self.region, weights=values[self.cell], minlength=regions).astype(np.int64)

    def of_regions(self, chosen: list[int], cells: int) -> NDArray[np.float64]:
        """Return the share of each cell that some regions have."""
        mine = np.isin(self.region, chosen)
        return np.bincount(self.cell[mine], weights=self.share[mine], minlength=cells).astype(np.float64)

    def largest(self, cells: int) -> NDArray[np.int64]:
        """Return the region that has most of each cell; -1 if none has any."""
        found = np.full(cells, -1, np.int64)
        order = np.argsort(self.share, kind="stable")
        found[self.cell[order]] = self.region[order]
        return found

    def renumbered(self, number: NDArray[np.int64]) -> Split:
        """Return it with other numbers for regions; those with -1 are left out."""
        region = number[self.region]
        kept = region >= 0
        return Split(self.cell[kept], region[kept], self.share[kept])
