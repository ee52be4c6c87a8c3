"""The passes over the rows that fixes change (`ffm.model.estimators.replay`), in the subset of Python that Numba
compiles. As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
from ffm.model.visits import row_at

Columns = NDArray[Any]


def members_by_group(
    place: Columns, labelled: Columns, label: Columns, group_of: Columns, groups: int
) -> tuple[Columns, Columns]:
    """Return the places group by group, in their order within each, and where each group ends, shape (groups,).

    The group of a place is that of the label of its row, `labelled`; places without one are left out.
    """
    ends = np.zeros(groups, np.int64)
    for index in range(len(place)):
        group = group_labelled(label, group_of, labelled[index])
        if group >= 0:
            ends[group] += 1
    begin = 0
    for group in range(groups):
        count = ends[group]
        ends[group] = begin
        begin += count
    members = np.empty(begin, np.int64)
    for index in range(len(place)):
        group = group_labelled(label, group_of, labelled[index])
        if group >= 0:
            members[ends[group]] = place[index]
            ends[group] += 1
    return members, ends


@inner
def group_labelled(label: Columns, group_of: Columns, row: int) -> int:
    """Return the group of a row's label; -1 for none."""
    return int(group_of[label[row]]) if label[row] >= 0 else -1


class Longest(NamedTuple):
    """Columns of all rows: how long calls take, and their work in the timelines of the GPU."""

    duration: Columns
    likely: Columns
    slow: Columns
    fast: Columns


def touched_by(order: Columns, members: Columns, longest: Longest) -> int:
    """Return how long the calls at some places, and their work, take in all: the longest of each in the timelines."""
    touched = 0
    duration, likely, slow, fast = longest.duration, longest.likely, longest.slow, longest.fast
    for index in range(len(members)):
        row = row_at(order, members[index])
        touched += duration[row] + max(likely[row], slow[row], fast[row])
    return touched
