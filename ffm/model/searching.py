"""Searches that begin near the place of an earlier one, in the subset of Python that Numba compiles.

A pass that moves through a long column looks for places close to the last one: a search through the whole column would
read memory far away from it each time.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ffm.model.compiled import inner


@inner
def place_of(values: NDArray[Any], value: int, near: int) -> int:
    """Return the first place of ascending values at which they are at least `value`, or else how many there are.

    `near` is where to begin, from 0 to the number of values; the time that it takes depends on how far away that is.
    """
    step = 1
    low = high = near
    if near > 0 and values[near - 1] >= value:
        high = near - 1
        low = max(high - step, 0)
        while low > 0 and values[low - 1] >= value:
            high = low - 1
            step *= 2
            low = max(high - step, 0)
    else:
        while high < len(values) and values[high] < value:
            low = high + 1
            high = min(low + step, len(values))
            step *= 2
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
