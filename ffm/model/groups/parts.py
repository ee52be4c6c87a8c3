"""Which parts of a sequence are worth fixing: the most seconds for the fewest places to change.

A part is a run of consecutive lines, as in Figure 5.4 of the dissertation, which names finding good ones as future work
("we need to be able to estimate the complexity of fixing the problematic behavior and weight it against the benefit").
Here, complexity is the number of distinct places in the source that would have to change.

A sequence of m lines has m (m + 1) / 2 parts. All are ranked by sums over their lines; only the few best for each
number of places are fully estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ESTIMATED_FOR_EACH = 3
"""How many parts are fully estimated for each number of places."""

ESTIMATED = 96
"""How many are fully estimated at most in total."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `start` to `end` of a sequence, from 0 and both included."""

    start: int
    end: int
    places: int
    """Distinct places that would have to change."""
    seconds: float


def promise(
    own_s: NDArray[np.floating], wait_s: NDArray[np.floating], work_s: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return roughly how much each part saves, shape (m, m) by start and end; -inf if the end is before the start.

    This is the time of the calls that disappear, plus their waits to the extent that there is work to absorb them.

    Args:
        own_s: for each line, the time of its calls that would disappear with them, without waiting.
        wait_s: for each line, its waiting.
        work_s: for each line, the CPU time after its operations that could absorb waiting.
    """

    def sums(column: NDArray[np.floating]) -> NDArray[np.float64]:
        total = np.concatenate(([0.0], np.cumsum(column)))
        return total[None, 1:] - total[:-1, None]

    promised: NDArray[np.float64] = sums(own_s) + np.minimum(sums(wait_s), sums(work_s))
    promised[np.tril_indices(len(own_s), -1)] = -np.inf
    return promised


def count_places(places: Sequence[frozenset[Hashable]]) -> NDArray[np.int32]:
    """Return how many distinct places each part touches, shape (m, m) by start and end; O(m^2) for few places each."""
    lines = len(places)
    counts = np.zeros((lines, lines), np.int32)
    for start in range(lines):
        seen: set[Hashable] = set()
        for end in range(start, lines):
            seen |= places[end]
            counts[start, end] = len(seen)
    return counts


def best_parts(
    promised: NDArray[np.float64],
    places: NDArray[np.int32],
    estimate: Callable[[int, int], float],
    wanted: int,
) -> list[Part]:
    """Return the Pareto-best parts, fewest places first: each saves more than every part with as few places or fewer.

    Args:
        promised: as from `promise`.
        places: as from `count_places`.
        estimate: returns the seconds of a part, given its start and end.
        wanted: the maximum number of parts; if there are more, those with the smallest loss are left out.

    Raises:
        ValueError: Fewer than one part is requested.
    """
    if wanted < 1:
        raise ValueError("at least one part must be wanted")
    parts = [
        Part(start, end, int(places[start, end]), estimate(start, end)) for start, end in _candidates(promised, places)
    ]
    front: list[Part] = []
    for part in sorted(parts, key=lambda one: (one.places, -one.seconds, one.end - one.start)):
        if part.seconds > (front[-1].seconds if front else 0.0):
            front.append(part)
    while len(front) > wanted:
        front.pop(_least_loss(front))
    return front


def _candidates(promised: NDArray[np.float64], places: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Return the most promising parts for each number of places."""
    lines = len(promised)
    starts, ends = np.triu_indices(lines)
    value, number = promised[starts, ends], places[starts, ends]
    order = np.lexsort((-value, number))
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    chosen = order[rank < ESTIMATED_FOR_EACH]
    if len(chosen) > ESTIMATED:  # thin out evenly over the numbers of places; the whole sequence stays
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, ESTIMATED).astype(int))]
    found = dict.fromkeys(zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True))
    found[0, lines - 1] = None
    return list(found)


def _least_loss(front: list[Part]) -> int:
    """Return the part of a front, except its last, whose removal shrinks the area below the front least."""

    def loss(index: int) -> float:
        below = front[index - 1].seconds if index else 0.0
        return (front[index].seconds - below) * (front[index + 1].places - front[index].places)

    if len(front) == 1:
        return 0
    return min(range(len(front) - 1), key=loss)
