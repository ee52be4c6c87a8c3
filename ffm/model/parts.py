"""Which parts of a sequence are worth fixing: the most seconds for the fewest places to change.

A part is a run of consecutive lines, as in Figure 5.4 of the dissertation, which names finding good ones as future work
("we need to be able to estimate the complexity of fixing the problematic behavior and weight it against the
benefit"). Complexity is counted here as distinct places in the source that would have to change.

There are m (m + 1) / 2 parts of m lines. All are ranked by sums over their lines; only the few best of each
number of places are estimated in full.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ESTIMATED_FOR_EACH = 3
"""So many parts are estimated in full for each number of places."""

ESTIMATED = 96
"""And at most so many in all."""


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
    """About how much each part saves, shape (m, m) by start and end; -inf where the end lies before the start.

    The time of the calls that go, and their waits as far as there is work to absorb them.

    Args:
        own_s: for each line the time of its calls that would go with them, without waiting.
        wait_s: for each line its waiting.
        work_s: for each line the CPU time behind its operations that could absorb waiting.
    """

    def sums(column: NDArray[np.floating]) -> NDArray[np.float64]:
        total = np.concatenate(([0.0], np.cumsum(column)))
        return total[None, 1:] - total[:-1, None]

    promised: NDArray[np.float64] = sums(own_s) + np.minimum(sums(wait_s), sums(work_s))
    promised[np.tril_indices(len(own_s), -1)] = -np.inf
    return promised


def count_places(places: Sequence[frozenset[Hashable]]) -> NDArray[np.int32]:
    """How many distinct places each part touches, shape (m, m) by start and end; O(m^2) for few places a line."""
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
    """The Pareto-best parts, fewest places first: each saves more than every part with as few places or fewer.

    Args:
        promised: as from `promise`.
        places: as from `count_places`.
        estimate: gives the seconds of a part by its start and end.
        wanted: how many parts at most; of more, those are left out that lose least.

    Raises:
        ValueError: fewer than one part is wanted.
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
    """The most promising parts of each number of places."""
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
    """The part of a front, not its last, without which the area below the front shrinks least."""

    def loss(index: int) -> float:
        below = front[index - 1].seconds if index else 0.0
        return (front[index].seconds - below) * (front[index + 1].places - front[index].places)

    if len(front) == 1:
        return 0
    return min(range(len(front) - 1), key=loss)
