"""The compiled pass that finds the operations of one run in another (`alignment.py`), in the Python that Numba knows.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ffm.model.compiled import index, inner

Columns = NDArray[Any]

MOST_MISSED = 8
"""After this many rows were searched for in vain up to the end of their thread, the tables differ too much."""


class Identities(NamedTuple):
    """What identifies each row of a table."""

    process: Columns
    thread: Columns
    stack: Columns
    occurrence: Columns


def match_in_step(wanted: Identities, among: Identities, rows: Columns) -> int:
    """Fill in, for each wanted row, the row of `among` with the same identity, going through both tables at once.

    That finds what comes in the same order in both, thread by thread: runs of one program mostly do. What it does not
    find gets -1. `among` is sorted by process and thread; if not, less is found. Returns how many were not found.
    """
    place = missed = 0
    for row in range(len(rows)):
        if row == 0 or not same_thread(wanted, row, wanted, row - 1):
            place = first_of_thread(wanted, row, among)
        ahead = index(place)
        if missed < MOST_MISSED:
            while ahead < len(among.stack) and not is_same_call(wanted, row, among, ahead):
                if not same_thread(wanted, row, among, ahead):
                    break
                ahead = index(ahead + 1)
        if ahead < len(among.stack) and is_same_call(wanted, row, among, ahead):
            rows[row] = ahead
            place = ahead + 1
        else:
            rows[row] = -1
            missed += 1
    return missed


def put(rows: Columns, values: Columns, column: Columns) -> None:
    """Put values into the given rows of a column; values for row -1 are dropped."""
    for number in range(len(rows)):
        if rows[number] >= 0:
            column[index(rows[number])] = values[number]


def put_found(rows: Columns, numbers: Columns, table: Columns, column: Columns) -> None:
    """Put what a table has at some numbers into the rows of a column, as `put` does; the last entry is for -1."""
    for number in range(len(rows)):
        if rows[number] >= 0:
            place = numbers[number] if numbers[number] >= 0 else len(table) - 1
            column[index(rows[number])] = table[index(place)]


def put_times(rows: Columns, lasting: Columns, coming: Columns, gpu: Columns, arriving: Columns) -> None:
    """Put how long work took to arrive, and how long it lasted after that, into rows of two columns, as `put` does."""
    for number in range(len(rows)):
        if rows[number] >= 0:
            row = index(rows[number])
            gpu[row] = lasting[number] - coming[number]
            arriving[row] = coming[number]


@inner
def same_thread(some: Identities, row: int, others: Identities, place: int) -> bool:
    """Return whether two rows are of the same thread."""
    return bool(some.process[row] == others.process[place] and some.thread[row] == others.thread[place])


@inner
def is_same_call(some: Identities, row: int, others: Identities, place: int) -> bool:
    """Return whether two rows have the same identity."""
    alike = some.occurrence[row] == others.occurrence[place] and some.stack[row] == others.stack[place]
    return bool(alike and same_thread(some, row, others, place))


@inner
def first_of_thread(wanted: Identities, row: int, among: Identities) -> int:
    """Return the first row of the thread of a wanted row, by a binary search."""
    process, thread = wanted.process[row], wanted.thread[row]
    low = 0
    high = len(among.stack)
    while low < high:
        middle = (low + high) // 2
        before = among.process[middle] < process or (among.process[middle] == process and among.thread[middle] < thread)
        if before:
            low = middle + 1
        else:
            high = middle
    return low
