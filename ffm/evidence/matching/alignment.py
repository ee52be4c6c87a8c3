"""Finds the same operation in another run (docs/architecture.md#the-stages).

Operations are identified by process, thread, call stack and occurrence.

Threads are numbered in the order of their first driver call, which is random if a program starts several at once. The
same thread of another run is the one that makes the same calls from the same places, as often as possible. What is then
left of a call stack that several threads share is matched whichever thread makes the calls (`changing_threads.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.matching.alignment_kernels import Identities, match_in_step
from ffm.evidence.matching.changing_threads import rows_by_turn
from ffm.model.compiled import run
from ffm.model.grouping import SPARE, looked_up, numbered, ranks_within
from ffm.results.columnar.columns import LONGEST, Columns
from ffm.results.documents.stacks import Stack

CALLER = ("process", "thread", "stack")
IDENTITY = (*CALLER, "occurrence")
"""Columns that identify an operation. Stack numbers are those of one document: `translate` them first."""

MOST_PAIRS = 1 << 20
"""At most this many pairs of threads with a stack in common, counted for each stack, are compared: about a second."""

SPARSE = 4
"""Rows are looked up in a table of all occurrences if that has at most this many places for each row."""


def translation(own: Sequence[Stack], other: Sequence[Stack]) -> NDArray[np.int32]:
    """Return the number in another document of each stack of a document, and -1 at the end; -1 if the other has no such
    stack.
    """
    place = {stack.key: number for number, stack in enumerate(other)}
    return np.array([place.get(stack.key, -1) for stack in own] + [-1], np.int32)


def translate(numbers: NDArray[np.int32], own: Sequence[Stack], other: Sequence[Stack]) -> NDArray[np.int32]:
    """Convert stack numbers of one document to those of another; -1 if the other has no such stack."""
    return looked_up(translation(own, other), numbers)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which operations of one run are those of another, with the threads of both paired once for all of its tables."""

    _among: Columns
    _span: int
    _lines: NDArray[np.int64]
    """The first run's threads, each as `process * _span + thread`, ascending; empty if no process has several."""
    _paired: NDArray[np.int64]
    """The other run's thread for each, or -1."""

    def rows(self, table: Columns) -> NDArray[np.int64]:
        """Return, for each row of a table of the first run, the other run's row with the same identity; or -1.

        The table must be one of those that were aligned.
        """
        return rows_of({name: table[name] for name in IDENTITY} | {"thread": self._threads(table)}, self._among)

    def rows_by_turn(
        self, table: Columns, rows: NDArray[np.int64], able: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return `rows` in which those without a row (-1) get an unmatched row of the other run with the same call
        stack, if several threads have that, whichever thread makes the call there: the first one in time stands for the
        first, and so on.

        `rows` is what `rows` of the table returned, whose rows come in order of time within each process. Of the other
        run's rows, which have a `start`, only those are taken that are `able`; if that is None, all are.
        """
        if self._span == 1:
            return rows
        asking = np.flatnonzero(rows < 0)
        if not len(asking):
            return rows
        free = np.ones(len(self._among["start"]), np.bool_) if able is None else able.copy()
        free[rows[rows >= 0]] = False
        answering = np.flatnonzero(free & np.isin(self._among["stack"], np.unique(table["stack"][asking])))
        answering = answering[np.argsort(self._among["start"][answering], kind="stable")]
        found = rows_by_turn({**table, "thread": self._threads(table)}, asking, self._among, answering)
        rows = rows.copy()
        rows[asking[found >= 0]] = found[found >= 0]
        return rows

    def _threads(self, table: Columns) -> NDArray[Any]:
        """Return the other run's thread for each row of a table, or -1."""
        if self._span == 1 or not len(table["thread"]):
            return table["thread"]
        return self._paired[np.searchsorted(self._lines, _lines_of(table, self._span))]


def align(tables: Sequence[Columns], among: Columns) -> Alignment:
    """Align all tables that name operations of one run with the rows of another run, `among`.

    All must use the stack numbers of the same document. Identities in `among` are distinct.
    """
    span = 1 + max(int(table["thread"].max(initial=0)) for table in (*tables, among))
    if span == 1:
        nothing = np.zeros(0, np.int64)
        return Alignment(among, span, nothing, nothing)
    lines = np.unique(np.concatenate([_lines_of(table, span) for table in tables]))
    return Alignment(among, span, lines, _pair_threads(lines, tables, among, span))


def rows_of(wanted: Columns, among: Columns) -> NDArray[np.int64]:
    """Return, for each wanted row, the row of `among`, of the same run, with the same identity; -1 if there is none."""
    count = len(among["stack"])
    result = np.full(len(wanted["stack"]), -1, np.int64)
    if count == 0 or len(result) == 0:
        return result
    order = _thread_by_thread(wanted["process"], wanted["thread"])
    in_step = result if isinstance(order, slice) else np.empty(len(result), np.int64)
    missed = run(
        match_in_step,
        len(result),
        Identities(*(wanted[name][order] for name in IDENTITY)),
        Identities(*(among[name] for name in IDENTITY)),
        in_step,
    )
    if in_step is not result:
        result[order] = in_step
    if missed:
        left = np.flatnonzero(result < 0)
        result[left] = _looked_up({name: wanted[name][left] for name in IDENTITY}, among)
    return result


def _thread_by_thread(process: NDArray[Any], thread: NDArray[Any]) -> NDArray[np.int64] | slice:
    """Return the order in which the rows of each thread follow each other: as they are, if they do. Each start of a
    thread's rows costs a search from that thread's first row on.
    """
    other = (process[1:] != process[:-1]) | (thread[1:] != thread[:-1])
    begins = np.concatenate(([0], np.flatnonzero(other) + 1))
    if len(set(zip(process[begins].tolist(), thread[begins].tolist(), strict=True))) == len(begins):
        return slice(None)
    return np.lexsort((thread, process))


def _looked_up(wanted: Columns, among: Columns) -> NDArray[np.int64]:
    """Return what `rows_of` does, in whatever order the rows of both tables are."""
    count = len(among["stack"])
    result = np.full(len(wanted["stack"]), -1, np.int64)
    number, _ = numbered(*(np.concatenate([among[name], wanted[name]]) for name in CALLER))
    most = np.zeros(int(number.max()) + 1, np.int64)
    np.maximum.at(most, number[:count], among["occurrence"] + 1)
    if (most <= LONGEST // len(most)).all() and most.sum() <= SPARE + SPARSE * count:
        return _matched_by_place(number[:count], number[count:], most, wanted["occurrence"], among["occurrence"])
    both = [np.concatenate([among[name], wanted[name]]).astype(np.int64) for name in IDENTITY]
    order = np.lexsort(both[::-1])
    same = np.ones(len(order) - 1, bool)
    for column in both:
        same &= column[order][1:] == column[order][:-1]
    # The sort is stable, so the row of `among` comes directly before the wanted ones with its identity.
    group = np.concatenate(([0], np.cumsum(~same)))
    first = np.full(group[-1] + 1, -1, np.int64)
    known = order < count
    first[group[known]] = order[known]
    result[order[~known] - count] = first[group[~known]]
    return result


def _matched_by_place(
    number: NDArray[np.int64],
    wanted_number: NDArray[np.int64],
    most: NDArray[np.int64],
    wanted: NDArray[np.int64],
    occurrence: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Match by a table with a place for each occurrence; `number` is that of process, thread and stack together."""
    first = np.cumsum(most) - most
    row_of = np.full(int(most.sum()), -1, np.int64)
    row_of[(first[number] + occurrence)[::-1]] = np.arange(len(number))[::-1]  # the first of equal ones stays
    known = wanted < most[wanted_number]
    result = np.full(len(wanted), -1, np.int64)
    result[known] = row_of[first[wanted_number[known]] + wanted[known]]
    return result


def _lines_of(table: Columns, span: int) -> NDArray[np.int64]:
    """Return a number for the thread of each row; `span` is more than the number of any thread of a process."""
    return np.asarray(table["process"].astype(np.int64) * span + table["thread"])


def _pair_threads(lines: NDArray[np.int64], tables: Sequence[Columns], among: Columns, span: int) -> NDArray[np.int64]:
    """Return the thread of `among` that corresponds to each thread; -1 if better matches took them all.

    Among several equally good matches, such as the workers of a pool, the one with the same number is chosen. If there
    are very many threads, those that make the same calls, however often, are paired as they come.
    """
    calls, other_calls = _calls_of(tables, span), _calls_of([among], span)
    paired = dict.fromkeys(lines.tolist(), -1)
    if _pairs(calls, other_calls) > MOST_PAIRS:
        paired.update(_paired_by_role(calls, other_calls))
        calls = calls[np.array([paired[line] < 0 for line in calls[:, 2].tolist()], bool)]
        other_calls = other_calls[~np.isin(other_calls[:, 2], list(paired.values()))]
        if _pairs(calls, other_calls) > MOST_PAIRS:
            calls = calls[:0]
    left, right, alike = _common_calls(calls, other_calls)
    taken: set[int] = set()
    for pair in np.lexsort((right, left, left != right, -alike)).tolist():
        line, other = int(left[pair]), int(right[pair])
        if paired[line] < 0 and other not in taken:
            paired[line] = other
            taken.add(other)
    found = np.array([paired[line] for line in lines.tolist()], np.int64)
    return np.where(found >= 0, found % span, -1)


def _pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """Return how many pairs of a left and a right line have a stack in common, added up over all stacks. Arguments as
    `_calls_of` returns them.
    """
    called, _ = numbered(*(np.concatenate([left[:, column], right[:, column]]) for column in (0, 1)))
    many = int(called.max(initial=-1)) + 1
    return int(np.bincount(called[: len(left)], minlength=many) @ np.bincount(called[len(left) :], minlength=many))


def _paired_by_role(left: NDArray[np.int64], right: NDArray[np.int64]) -> dict[int, int]:
    """Pair lines of two runs that have the same set of stacks, in their order, and return the right line of each left
    one. Arguments as `_calls_of` returns them.
    """
    both = np.concatenate([left, right])
    called, first = numbered(both[:, 0], both[:, 1])
    mark = np.random.default_rng(0).integers(1 << 63, size=len(first))
    run = np.repeat([0, 1], [len(left), len(right)])
    line, first = numbered(run, both[:, 2])
    role = np.zeros(len(first), np.int64)
    np.add.at(role, line, mark[called])  # the sum stands for the set
    run, lines = run[first], both[first, 2]
    of_role, _ = numbered(role)
    place = np.empty(len(role), np.int64)
    for one in (0, 1):
        place[run == one] = ranks_within(of_role[run == one], int(of_role.max(initial=-1)) + 1)
    pair, _ = numbered(of_role, place)
    partner = np.full(len(role), -1, np.int64)
    partner[pair[run == 1]] = lines[run == 1]
    found = partner[pair[run == 0]]
    return dict(zip(lines[run == 0][found >= 0].tolist(), found[found >= 0].tolist(), strict=True))


def _calls_of(tables: Sequence[Columns], span: int) -> NDArray[np.int64]:
    """Return distinct (process, stack, line, calls) of tables of a run: the number of calls of each stack that a line,
    which is a thread of a process, makes up to the last of these rows. Shape (n, 4). Rows without a stack (-1) do not
    count.
    """
    found = np.concatenate([_calls_in(table, span) for table in tables])
    place, first = numbered(found[:, 2], found[:, 1])
    calls = np.zeros(len(first), np.int64)
    np.maximum.at(calls, place, found[:, 3])
    return np.column_stack([found[first, :3], calls])


def _calls_in(columns: Columns, span: int) -> NDArray[np.int64]:
    """Return the calls of one table, as `_calls_of` does."""
    some = columns["stack"] >= 0
    stack = columns["stack"][some].astype(np.int64)
    line = _lines_of(columns, span)[some]
    place, first = numbered(line, stack)
    calls = np.zeros(len(first), np.int64)
    np.maximum.at(calls, place, columns["occurrence"][some] + 1)
    line, stack = line[first], stack[first]
    return np.column_stack([line // span, stack, line, calls])


def _common_calls(
    left: NDArray[np.int64], right: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each pair of lines with a common stack, return both lines and how many calls they have in common at most."""
    stacks = np.unique(np.concatenate([left[:, :2], right[:, :2]]), axis=0, return_inverse=True)[1].reshape(-1)
    of_left, of_right = stacks[: len(left)], stacks[len(left) :]
    order = np.argsort(of_right, kind="stable")
    first = np.searchsorted(of_right[order], of_left, "left")
    many = np.searchsorted(of_right[order], of_left, "right") - first
    row = np.repeat(np.arange(len(left)), many)
    within = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    other = order[first[row] + within]
    pairs = np.column_stack([left[row, 2], right[other, 2]])
    if not len(pairs):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    alike = np.zeros(len(distinct), np.int64)
    np.add.at(alike, place.reshape(-1), np.minimum(left[row, 3], right[other, 3]))
    return distinct[:, 0], distinct[:, 1], alike
