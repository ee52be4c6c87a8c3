"""Numbers equal rows of columns, and orders rows by such numbers, in linear time wherever the values allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import PLAIN_ROWS, compiled, inner, longer

PART_ROWS = 1 << 15
"""Rows of a part: a few columns of it fit into a processor's cache."""

SPARE = 1 << 16
"""Values are looked up in a table if that has at most this many places more than there are rows."""

RADIX_GROUPS = 1 << 16
"""NumPy sorts 16-bit integers in linear time."""

LEAST_SAMPLED = 1 << 15
SAMPLE = 1 << 12
"""Of at least this many values, about this many are sampled, to find those between which the value of a rank lies."""

SAMPLED_BESIDE = 50
"""One in this many of the sample lies on each side between it and these."""

Integers = NDArray[Any]
Value = TypeVar("Value", bound=np.generic)


def parts(rows: int, least: int = 0) -> Iterator[slice]:
    """Return slices that divide so many rows into parts, of at least so many rows. A column computed part by part from
    others takes no memory for temporary ones that grows with the run.
    """
    size = max(PART_ROWS, least)
    return (slice(begin, begin + size) for begin in range(0, rows, size))


def looked_up(table: NDArray[Value], number: NDArray[np.integer]) -> NDArray[Value]:
    """Return what a table has at each number; the last entry is for -1. NumPy alone would turn shorter numbers into
    64-bit ones first.
    """
    found = np.empty(len(number), table.dtype)
    for part in parts(len(number)):
        np.take(table, number[part], out=found[part])
    return found


def begins_of(number: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Return where the rows of each number below `count` begin, of numbers that ascend; shape (count + 1,)."""
    # Of the same type as the numbers: NumPy would turn all of those into wider ones.
    return np.searchsorted(number, np.arange(count + 1, dtype=number.dtype)).astype(np.int64)


def sums_by(number: NDArray[np.integer], groups: int, *columns: NDArray[Any]) -> NDArray[np.float64]:
    """Return, for each group, the sum of the values of some columns that have its number, all together."""
    sums = np.zeros(groups)
    for part in parts(len(number), groups):  # NumPy turns both columns into wider ones
        for column in columns:
            sums += np.bincount(number[part], weights=column[part], minlength=groups)
    return sums


def numbered(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct rows of some columns from 0, in their order: by the first column, then by the second, ...

    Columns have shape (n,), and numbers or truth values. Returns the number of each row, shape (n,), and the first row
    with each number, shape (groups,).
    """
    count = len(columns[0])
    number = np.zeros(count, np.int64)
    first = np.zeros(min(1, count), np.int64)
    for column in columns:
        if count and column.min() == column.max():
            continue
        place, of_value = _numbered(column)
        if len(first) <= 1:
            number, first = place, of_value
        else:
            number *= len(of_value)
            number += place
            number, first = _numbered(number)
    return number, first


def numbered_by_part(
    rows: int, columns: Callable[[slice], Sequence[NDArray[Any]]], least: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what `numbered` does, of columns that are asked for part by part (`parts`); for few distinct rows."""
    number = np.empty(rows, np.int64)
    first: dict[tuple[int, ...], tuple[int, int]] = {}  # how many were found before, and the first row
    for part in parts(rows, least):
        some = columns(part)
        within, firsts = numbered(*some)
        found = zip(*(column[firsts].tolist() for column in some), strict=True)
        place = [
            first.setdefault(row, (len(first), at))[0]
            for row, at in zip(found, (part.start + firsts).tolist(), strict=True)
        ]
        number[part] = np.array(place, np.int64)[within]
    ordered = [first[row] for row in sorted(first)]
    rank = np.empty(len(ordered), np.int64)
    rank[[place for place, _ in ordered]] = np.arange(len(ordered))
    if not (rank[1:] > rank[:-1]).all():
        for part in parts(rows):
            number[part] = rank[number[part]]
    return number, np.array([row for _, row in ordered], np.int64)


def _numbered(column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct values of a column in their order; return the numbers and the first row of each."""
    count = len(column)
    if column.dtype == bool:
        column = column.view(np.uint8)
    if count <= PLAIN_ROWS:
        _, first, number = np.unique(column, return_index=True, return_inverse=True)
        return number.reshape(-1).astype(np.int64, copy=False), first.astype(np.int64, copy=False)
    least, most = column.min(), column.max()
    if int(most) - int(least) < count + SPARE:
        # Of one type, so that the kernel is compiled once. Unsigned values may wrap around, their differences do not.
        number = np.subtract(column, least, dtype=np.int64, casting="unsafe")
        return number, compiled(_by_table)(number, int(most) - int(least) + 1)
    number, first = compiled(_by_hash)(column.astype(np.uint64))
    order = np.argsort(column[first], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]


def _by_table(number: Integers, size: int) -> Integers:
    """Number values, which are from 0 and below `size`, in their order, in place; return the first row of each."""
    row_of = np.full(size, -1, np.int64)
    for row in range(len(number)):
        if row_of[number[row]] < 0:
            row_of[number[row]] = row
    first = np.empty(size, np.int64)
    found = 0
    for value in range(size):
        if row_of[value] >= 0:
            first[found] = row_of[value]
            row_of[value] = found
            found += 1
    if found < size:
        for row in range(len(number)):
            number[row] = row_of[number[row]]
    return first[:found]


def _by_hash(column: Integers) -> tuple[Integers, Integers]:
    """Number the distinct values of a column in the order of their first rows; also return those rows."""
    table = np.full(1 << 12, -1, np.int64)
    first = np.empty(1 << 11, np.int64)
    number = np.empty(len(column), np.int64)
    row = found = 0
    while row < len(column):
        row, found = _number_on(column, table, first, number, row, found)
        if row < len(column):  # all numbers are taken
            first = longer(first)
            table = np.full(2 * len(table), -1, np.int64)
            for known in range(found):
                table[_slot(table, first, column, first[known])] = known
    return number, first[:found]


@inner
def _number_on(
    column: Integers, table: Integers, first: Integers, number: Integers, row: int, found: int
) -> tuple[int, int]:
    """Number the values from a row on, as long as there is room for another one; return how far that went, and how many
    were found.
    """
    while row < len(column):
        slot = _slot(table, first, column, row)
        if table[slot] < 0:
            if found == len(first):
                break
            table[slot] = found
            first[found] = row
            found += 1
        number[row] = table[slot]
        row += 1
    return row, found


@inner
def _slot(table: Integers, first: Integers, column: Integers, row: int) -> int:
    """Return where the number of a row's value is in a hash table whose size is a power of two, or where to put it. The
    search starts there by Fibonacci hashing.
    """
    value = column[row]
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & (len(table) - 1)
    while table[slot] >= 0 and column[first[table[slot]]] != value:
        slot = (slot + 1) & (len(table) - 1)
    return int(slot)


def grouped(number: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return the rows by group, those of a group in their order."""
    if groups <= 1:
        return np.arange(len(number))
    return np.argsort(number.astype(np.uint16) if groups <= RADIX_GROUPS else number, kind="stable")


def ranks_within(number: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return how many earlier rows of its group each row has."""
    if groups <= 1:
        return np.arange(len(number))
    counts = np.bincount(number, minlength=groups)
    ranks = np.empty(len(number), np.int64)
    ranks[grouped(number, groups)] = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def sorted_within(
    number: NDArray[np.int64], value: NDArray[Any], groups: int, *ranks: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the values by group, sorted within each.

    With `ranks`, shape (groups,) each, only the values at these places of the groups need to be where sorting puts
    them, which takes linear time; other values may get lost.
    """
    if groups > RADIX_GROUPS:
        return value[np.lexsort((value, number))]
    counts = np.bincount(number, minlength=groups)
    if len(number) <= PLAIN_ROWS:
        ordered = value[grouped(number, groups)]
    else:
        ordered = np.empty_like(value)
        # As bytes of the same length, which the kernel need not tell apart: it is compiled once.
        bits = f"i{value.dtype.itemsize}"
        compiled(_place_by_group)(number, value.view(bits), np.cumsum(counts) - counts, ordered.view(bits))
    select_within(ordered, counts, *ranks)
    return ordered


def select_within(ordered: NDArray[Any], counts: NDArray[np.int64], *ranks: NDArray[np.int64]) -> None:
    """Sort values, which are ordered by group, within each group, in place; `counts`, shape (groups,), is how many each
    has. `ranks` as for `sorted_within`.
    """
    if len(counts) > RADIX_GROUPS:
        ordered[:] = ordered[np.lexsort((ordered, np.repeat(np.arange(len(counts)), counts)))]
        return
    end = 0
    for group, count in enumerate(counts.tolist()):
        begin, end = end, end + count
        if not ranks:
            ordered[begin:end].sort()
        elif count > 1:
            _select(ordered[begin:end], [int(rank[group]) for rank in ranks])


def _select(values: NDArray[Any], ranks: list[int]) -> None:
    """Put the values at some ranks where sorting would put them, in place; others may get lost.

    NumPy's partition takes up to ten times as long where many values are the same. So a sample says between which two
    values those of a rank are, and counts tell whether that is so.
    """
    found = {} if len(values) < LEAST_SAMPLED else _between_sampled(values, ranks)
    left = [rank for rank in ranks if rank not in found]
    if left:
        values.partition(left)
    for rank, value in found.items():
        values[rank] = value


def _between_sampled(values: NDArray[Any], ranks: list[int]) -> dict[int, Any]:
    """Return the values at those of some ranks at which a sample nearly shows them."""
    sample = np.sort(values[:: len(values) // SAMPLE])
    found = {}
    for rank in ranks:
        near, beside = rank * len(sample) // len(values), len(sample) // SAMPLED_BESIDE
        least, most = sample[max(near - beside, 0)], sample[min(near + beside, len(sample) - 1)]
        below, within = np.count_nonzero(values < least), np.count_nonzero(values <= least)
        above, over = np.count_nonzero(values < most), np.count_nonzero(values <= most)
        if below <= rank < within:
            found[rank] = least
        elif above <= rank < over:
            found[rank] = most
        elif within <= rank < above:
            between = values[(values > least) & (values < most)]
            between.partition(rank - within)
            found[rank] = between[rank - within]
    return found


def _place_by_group(number: Integers, value: Integers, free: Integers, ordered: Integers) -> None:
    """Put the values by group; `free` is where each group begins, and is used up."""
    for row in range(len(number)):
        group = number[row]
        ordered[free[group]] = value[row]
        free[group] += 1
