"""Where the iterations of a thread begin: at given rows, or where the sequence of its calls recurs.

Two iterations are alike if they pass the same sites, in the same order of first appearance; how often they pass each
does not matter. Warm-up iterations are those before the first that is like most, and the very first: what a program
sets up on first use happens there. The last one lasts to the end of the thread; if it is then not like most, it is left
out as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

OFTEN = 3
"""A sequence must occur this many times to recur."""

MOST_OF_IT = 0.75
"""Of the sequences that recur and make up this share of what the best one does, the shortest is the iteration."""

CANDIDATES = 64
"""How many sites are tried as the first of an iteration, those that occur least often first."""


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of one thread: rows `begin[i]` to before `end[i]`, without warm-up. Empty if there are none."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    left_out: int
    """How many more there are: warm-up, and one at the end that is different."""

    def __len__(self) -> int:
        return len(self.begin)


_NONE = Iterations(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)


def iterations_from(starts: NDArray[np.int64], site: NDArray[np.int32], *, whole: bool = True) -> Iterations:
    """Return the iterations that begin at some rows of a thread, given the site of each of its rows; shape (n,).

    `whole` is whether the last one may be complete.
    """
    if not len(starts):
        return _NONE
    ends = np.append(starts[1:], len(site))
    usual = _usual(starts, ends, site)
    first = max(int(np.flatnonzero(usual)[0]), 1)
    last = len(starts) if whole and usual[-1] else len(starts) - 1
    if last <= first:
        return Iterations(_NONE.begin, _NONE.end, len(starts))
    return Iterations(starts[first:last], ends[first:last], len(starts) - (last - first))


def recurring_starts(site: NDArray[np.int32], waits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the rows at which the thread's sequence of calls recurs, none if it does not.

    Args:
        site: the site of each row, shape (n,).
        waits: whether the row waits. If any does, an iteration contains one that does.
    """
    if not len(site):
        return np.zeros(0, np.int64)
    count = np.bincount(site)
    _, first = np.unique(site, return_index=True)
    candidates: dict[int, int] = {}
    for row in np.sort(first).tolist():  # of the sites that occur equally often, the first begins an iteration
        candidates.setdefault(int(count[site[row]]), int(site[row]))
    found: list[tuple[int, NDArray[np.int64]]] = []
    for times in sorted(number for number in candidates if number >= OFTEN)[:CANDIDATES]:
        starts = np.flatnonzero(site == candidates[times])
        ends = np.append(starts[1:], len(site))
        usual = _usual(starts, ends, site)
        waiting = np.add.reduceat(waits, starts)[usual].any() or not waits.any()
        if usual.sum() >= OFTEN and waiting:
            found.append((int((ends - starts)[usual].sum()), starts))
    if not found:
        return np.zeros(0, np.int64)
    best = max(covered for covered, _ in found)
    return max((starts for covered, starts in found if covered >= MOST_OF_IT * best), key=len)


def _usual(starts: NDArray[np.int64], ends: NDArray[np.int64], site: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which pieces are like most others; shape of `starts`."""
    inside = site[starts[0] : ends[-1]]
    piece = np.repeat(np.arange(len(starts)), ends - starts)
    _, first = np.unique(np.column_stack((piece, inside)), axis=0, return_index=True)
    first.sort()
    passed = inside[first]
    parts = np.split(passed, np.searchsorted(piece[first], np.arange(1, len(starts))))
    keys = [part.tobytes() for part in parts]
    ((most, _),) = Counter(keys).most_common(1)
    return np.array([key == most for key in keys], bool)
