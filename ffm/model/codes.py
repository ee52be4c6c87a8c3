"""Columns of codes: small numbers that stand for the values of an enumeration."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def is_one_of(codes: NDArray[np.uint8], values: Iterable[int]) -> NDArray[np.bool_]:
    """Return which rows of a column hold one of a few values, shape (n,).

    Comparing bytes with one value after the other takes a tenth of the time of `np.isin`.
    """
    found = np.zeros(len(codes), np.bool_)
    for value in values:
        found |= codes == value
    return found
