"""The pass that finds who started a thread (`ffm.model.thread_relations`), in the subset of Python that Numba compiles,
and how threads are related, as other such passes need it.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[Any]


class Locks(NamedTuple):
    """Waits of threads for what others release, in the order in which they end: columns of equal length."""

    goes_on: Columns
    """Position in `order` of the row before which the wait ended, ascending."""
    by: Columns
    """Position of the row after which the other thread ended it."""
    let_go: Columns
    """The numbers of the waits in the order of `by`."""
    waited: Columns
    """Nanoseconds."""
    work_after: Columns
    """Which share of the CPU work before the row comes after the wait; 0 if another wait comes before the row, too."""
    work_before: Columns
    """The share of the CPU work until the other thread's next row that comes before the release."""
    following: Columns
    """That next row; -1 if there is none."""


class OrderedEncounters(NamedTuple):
    """Where threads meet (`ffm.model.encounter_order`): columns with one entry for each row at each of its encounters,
    in the order of the rows' positions.
    """

    place: Columns
    """Position in `order` of the row."""
    number: Columns
    """Which encounter."""
    comes: Columns
    """Whether others wait there for the row to begin."""
    waits: Columns
    """Whether it waits there for the others that come."""
    after: Columns
    """How many nanoseconds after the one that comes there the row begins, if it follows that; -1 otherwise."""
    total: int
    """How many encounters there are."""


class Family(NamedTuple):
    """Which thread started, joined and follows which; columns of shape (threads,), -1 if there is none."""

    parent: Columns
    """The thread that started it."""
    forked: Columns
    """Position in `order` of the thread's first row."""
    joined: Columns
    """Position in `order` of the parent's row before which it was joined."""
    follows: Columns
    """The thread with whose waits its gaps end."""
    alike: Columns
    """The number of the set of threads of its process that run the same code."""
    children: Columns
    """The threads that were joined, by where, then by `alike`; shape (joined,)."""
    locks: Locks
    encounters: OrderedEncounters


def first_enclosing(opens: Columns, rank: Columns, row: Columns, born: Columns, reaching: Columns) -> Columns:
    """Return, for each life, the first row whose gap encloses it; -1 if there is none. O(n log n).

    Args:
        opens: when each gap begins, ascending.
        rank: how many gaps close later.
        row: the row before the gap.
        born: when each life begins, ascending.
        reaching: how many gaps close when the life ends or later: those with the lowest ranks.
    """
    none = np.iinfo(np.int64).max
    size = len(opens)
    least = np.full(size + 1, none, np.int64)  # a Fenwick tree: the least row among the gaps with the lowest ranks
    found = np.full(len(born), -1, np.int64)
    gap = 0
    for life in range(len(born)):
        while gap < size and opens[gap] <= born[life]:
            node = rank[gap] + 1
            while node <= size:
                least[node] = min(least[node], row[gap])
                node += node & -node
            gap += 1
        node = reaching[life]
        first = none
        while node > 0:
            first = min(first, least[node])
            node -= node & -node
        if first != none:
            found[life] = first
    return found
