"""Matches operations that another thread makes in the other run, since chance decides which worker of a pool takes
which task.

Operations of a call stack that are left after its threads were matched are paired in order of time, whichever thread
makes them. So each operation is still paired with at most one of the other run, and a stack with equally many
operations in both runs is matched completely. Which of its operations are the same task is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.grouping import numbered, ranks_within
from ffm.results.columnar.columns import Columns

CALLED = ("process", "stack")
"""Columns that operations have in common whichever thread does them."""

Rows = NDArray[np.int64]


def rows_by_turn(wanted: Columns, left: Rows, among: Columns, free: Rows) -> Rows:
    """Return, for each of the rows `left` of one run, one of the rows `free` of another run with the same process and
    stack, or -1; the first is the other's first, and so on.

    Both come in order of time within each process. Only calls that several threads make are looked for; equal threads
    have the same number `thread` in both tables.
    """
    found = np.full(len(left), -1, np.int64)
    if not len(left) or not len(free):
        return found
    stacks = np.intersect1d(wanted["stack"][left], among["stack"][free])
    seen = [np.flatnonzero(np.isin(table["stack"], stacks)) for table in (wanted, among)]
    several = are_of_several_threads(_both(wanted, seen[0], among, seen[1], (*CALLED, "thread")))
    shared = np.zeros(len(wanted["stack"]), bool), np.zeros(len(among["stack"]), bool)
    shared[0][seen[0]], shared[1][seen[1]] = several[: len(seen[0])], several[len(seen[0]) :]
    asking, answering = np.flatnonzero(shared[0][left]), free[shared[1][free]]
    place = in_turn(
        {name: wanted[name][left[asking]] for name in CALLED}, {name: among[name][answering] for name in CALLED}
    )
    found[asking[place >= 0]] = answering[place[place >= 0]]
    return found


def in_turn(wanted: Columns, among: Columns) -> Rows:
    """Return, for each row of a table, the row of another one with the same process and stack: for the first one the
    first there, and so on; -1 if there is none left. Each table has the columns `CALLED`, of shape (rows,).
    """
    called, first = numbered(*(np.concatenate([wanted[name], among[name]]) for name in CALLED))
    of_wanted, of_among = np.split(called, [len(wanted["stack"])])
    many = np.bincount(of_among, minlength=len(first))
    place = np.cumsum(many) - many
    turn = ranks_within(of_wanted, len(first))
    found = np.full(len(of_wanted), -1, np.int64)
    some = turn < many[of_wanted]
    found[some] = np.argsort(of_among, kind="stable")[place[of_wanted[some]] + turn[some]]
    return found


@dataclass(frozen=True, slots=True)
class Chance:
    """A stack of several threads of which some operations are chosen, and chance decides which ones."""

    stack: int
    chosen: int
    of: int
    least: float
    """How long the same number of operations lasts if they are the shortest, as a share of the chosen ones' time;"""
    most: float
    """the same if they are the longest."""


def chosen_by_chance(columns: Columns, able: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> list[Chance]:
    """Return the stacks of a run of which some operations are chosen, but not all that are `able` to be, and that
    several threads of a process have. Columns have shape (n,).
    """
    if not columns["thread"].any():  # each process has one
        return []
    stack = columns["stack"]
    many = np.bincount(stack[chosen], minlength=1)
    of = np.bincount(stack[able | chosen], minlength=len(many))[: len(many)]
    rows = np.flatnonzero(((many > 0) & (many < of))[np.minimum(stack, len(many) - 1)] & (stack < len(many)))
    rows = rows[(able | chosen)[rows]]
    if not len(rows):
        return []
    rows = rows[are_of_several_threads({name: columns[name][rows] for name in (*CALLED, "thread")})]
    rows = rows[np.lexsort((columns["duration"][rows], stack[rows]))]
    begins = np.flatnonzero(np.diff(stack[rows], prepend=-1))
    found = []
    for mine in np.split(rows, begins[1:]) if len(rows) else []:
        duration, its = columns["duration"][mine], int(chosen[mine].sum())
        taken = int(duration[chosen[mine]].sum())
        if 0 < its < len(mine) and taken > 0:
            shortest, longest = int(duration[:its].sum()), int(duration[-its:].sum())
            found.append(Chance(int(stack[mine[0]]), its, len(mine), shortest / taken, longest / taken))
    return found


def are_of_several_threads(columns: Columns) -> NDArray[np.bool_]:
    """Return which operations have a process and a stack that several threads share; shape (n,)."""
    line, first = numbered(*(columns[name] for name in (*CALLED, "thread")))
    called, _ = numbered(*(columns[name][first] for name in CALLED))
    result: NDArray[np.bool_] = (np.bincount(called) > 1)[called][line]
    return result


def _both(one: Columns, its_rows: Rows, other: Columns, other_rows: Rows, names: tuple[str, ...]) -> dict[str, Any]:
    """Return columns of some rows of two tables, one after the other."""
    return {name: np.concatenate([one[name][its_rows], other[name][other_rows]]) for name in names}
