"""How much longer one kind of run takes than another, with an interval, whatever the distribution of their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

CONFIDENCE = 0.95
"""The confidence of an interval if there are enough runs: four of each kind. With fewer it is lower."""


@dataclass(frozen=True, slots=True)
class Shift:
    """An interval of the difference, in the unit of the values."""

    low: float
    high: float
    confidence: float
    """The probability with which such an interval holds the difference, 0 to 1."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the two kinds of runs differ at all, as far as the interval shows."""
        return self.low > 0 or self.high < 0


def shift_between(longer: Sequence[float], shorter: Sequence[float]) -> Shift | None:
    """Return the interval of `longer` minus `shorter`; None if there are too few values to tell.

    It consists of the differences of all pairs without the outermost ones, as many as the distribution of the
    Mann-Whitney statistic allows (Conover, Practical Nonparametric Statistics, 5.4).
    """
    pairs = sorted(more - less for more in longer for less in shorter)
    all_orders = comb(len(longer) + len(shorter), len(longer))
    if all_orders <= 2:
        return None
    outside, beyond, dropped = 0, 1, 0
    for number in _orders(len(longer), len(shorter))[: len(pairs) // 2]:
        outside += number
        if dropped and 2 * outside > (1 - CONFIDENCE) * all_orders:
            break
        beyond, dropped = outside, dropped + 1
    return Shift(pairs[dropped - 1], pairs[-dropped], 1 - 2 * beyond / all_orders)


def _orders(first: int, second: int) -> list[int]:
    """Return in how many orders of two kinds of values 0, 1, 2, ... pairs stand with the second kind first.

    These are the coefficients of the Gaussian binomial, the product of (1 - q^(second + i)) / (1 - q^i).
    """
    orders = [1] + [0] * (first * second)
    for step in range(1, first + 1):
        for place in range(len(orders) - 1, second + step - 1, -1):
            orders[place] -= orders[place - second - step]
        for place in range(step, len(orders)):
            orders[place] += orders[place - step]
    return orders
