"""Finds the same operation in another run: by process, thread, call stack and occurrence (design, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ffm.stages.documents import Stack
from ffm.stages.tables import Columns

IDENTITY = ("process", "thread", "stack", "occurrence")
"""Columns that name an operation. Stack numbers are those of a document: `translate` them first."""


def translate(numbers: NDArray[np.int32], own: Sequence[Stack], other: Sequence[Stack]) -> NDArray[np.int32]:
    """Turn stack numbers of one document into those of another; -1 where the other has no such stack."""
    place = {stack.key: number for number, stack in enumerate(other)}
    table = np.array([place.get(stack.key, -1) for stack in own] + [-1], np.int32)
    return table[numbers]


def match(wanted: Columns, among: Columns) -> NDArray[np.int64]:
    """Return, for each wanted row, the row of `among` with the same identity; -1 where there is none.

    Both must use the stack numbers of the same document. Identities in `among` are distinct.
    """
    count = len(among["stack"])
    result = np.full(len(wanted["stack"]), -1, np.int64)
    if count == 0 or len(result) == 0:
        return result
    both = [np.concatenate([among[name], wanted[name]]).astype(np.int64) for name in IDENTITY]
    order = np.lexsort(both[::-1])
    same = np.ones(len(order) - 1, bool)
    for column in both:
        same &= column[order][1:] == column[order][:-1]
    # The sort is stable, so that the row of `among` comes directly before the wanted ones of its identity.
    group = np.concatenate(([0], np.cumsum(~same)))
    first = np.full(group[-1] + 1, -1, np.int64)
    known = order < count
    first[group[known]] = order[known]
    result[order[~known] - count] = first[group[~known]]
    return result
