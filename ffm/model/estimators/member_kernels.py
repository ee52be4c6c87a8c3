"""The pass that finds the rows that fixes change (`ffm.model.estimators.replay`), in the part of Python that Numba
compiles. As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner

Columns = NDArray[Any]


def members_by_group(
    place: Columns, labelled: Columns, label: Columns, group_of: Columns, groups: int
) -> tuple[Columns, Columns]:
    """Return the places by group, those of a group in their order, and where each group ends, shape (groups,).

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
