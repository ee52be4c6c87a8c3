"""The passes over the rows that put work on the GPU, which find how long it is expected to take
(`ffm.model.gpu_times.expected_work`), in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Columns are taken from their tuples before each loop
(`ffm.model.compiled.inner`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner, longer

Columns = NDArray[Any]

NOBODY = -1

OTHER, SINGLE, TIMED = 0, 1, 2
"""What shows how long a row's work takes: something else, its segment of this work alone, or events."""


class Works(NamedTuple):
    """The rows that put work on the GPU, and columns of all rows."""

    rows: Columns
    equal: Columns
    """A number for what each of `rows` does."""
    segment: Columns
    """Each row's segment; -1 for none."""
    measured: Columns
    arriving: Columns
    """Empty if it is nothing for all."""
    copied: Columns


class Segments(NamedTuple):
    """Columns of segments."""

    length: Columns
    size: Columns
    """The number of their operations."""
    alike: Columns
    sure: Columns


def number_works(
    action: Columns, puts_work: Columns, site: Columns, copied: Columns, rows: Columns, equal: Columns
) -> tuple[int, Columns]:
    """Fill in the rows that put work on the GPU, and a number for what each does: equal ones are of one site and copy
    as many bytes. Numbers are in the order of their first rows. Return how many rows there are, and these first ones.

    `puts_work` says of each `Action` whether it does that.
    """
    table, first = np.full(1 << 8, NOBODY, np.int32), np.empty(1 << 7, np.int64)
    row = count = found = 0
    while row < len(action):
        row, count, found = number_on(action, puts_work, site, copied, rows, equal, table, first, row, count, found)
        if row < len(action):  # all numbers are taken
            first = longer(first)
            table = np.full(2 * len(table), NOBODY, np.int32)
            for number in range(found):
                table[slot_of(table, first, site, copied, first[number])] = number
    return count, first[:found]


@inner
def number_on(
    action: Columns,
    puts_work: Columns,
    site: Columns,
    copied: Columns,
    rows: Columns,
    equal: Columns,
    table: Columns,
    first: Columns,
    row: int,
    count: int,
    found: int,
) -> tuple[int, int, int]:
    """Do so from a row on, as long as there is room for another number; return how far that went, and both counts."""
    while row < len(action):
        if puts_work[action[row]]:
            slot = slot_of(table, first, site, copied, row)
            if table[slot] < 0:
                if found == len(first):
                    break
                table[slot] = found
                first[found] = row
                found += 1
            rows[count] = row
            equal[count] = table[slot]
            count += 1
        row += 1
    return row, count, found


@inner
def slot_of(table: Columns, first: Columns, site: Columns, copied: Columns, row: int) -> int:
    """Return where the number of a row's work is in a hash table whose size is a power of two, or where to put it."""
    bytes_, mine = copied[row], site[row]
    mixed = (int(bytes_) + 1) * 1000003 + int(mine) * 31
    slot = (mixed ^ (mixed >> 15)) & (len(table) - 1)
    while table[slot] >= 0 and (copied[first[table[slot]]] != bytes_ or site[first[table[slot]]] != mine):
        slot = (slot + 1) & (len(table) - 1)
    return int(slot)


def value_rows(
    works: Works, segments: Segments, value: Columns, source: Columns, opened: Columns, others: Columns
) -> bool:
    """Fill in what events or segments tell of each row's work, and which of the two does; `opened` and `others` receive
    whether rows of each number leave open when they began, or are told by neither. Return whether segments contain
    several operations.
    """
    rows, equal, of_row, measured, arriving = works.rows, works.equal, works.segment, works.measured, works.arriving
    length, sizes = segments.length, segments.size
    several = False
    for place in range(len(rows)):
        row = rows[place]
        segment = of_row[row]
        size = sizes[segment] if segment >= 0 else 0
        several |= size > 1
        if measured[row] >= 0:
            value[place], source[place] = measured[row], TIMED
            if len(arriving) > 0 and arriving[row] != 0:
                opened[equal[place]] = True
        elif size == 1:
            value[place], source[place] = length[segment], SINGLE
        else:
            value[place], source[place] = -1, OTHER
            others[equal[place]] = True
    return several


def gather(asked: Columns, group: Columns, value: Columns, source: Columns, least: int) -> tuple[Columns, Columns]:
    """Return the values by group, and how many each has: of groups that are asked for, those of rows of which `source`
    is at least `least`.
    """
    count = np.zeros(len(asked), np.int64)
    for place in range(len(group)):
        count[group[place]] += source[place] >= least and asked[group[place]]
    free = np.zeros(len(asked) + 1, np.int64)
    for number in range(len(asked)):
        free[number + 1] = free[number] + count[number]
    gathered = np.empty(free[len(asked)], value.dtype)
    for place in range(len(group)):
        if source[place] >= least and asked[group[place]]:
            gathered[free[group[place]]] = value[place]
            free[group[place]] += 1
    return gathered, count


def limit_open(works: Works, median: Columns, value: Columns) -> None:
    """Let work of which events leave open when it began take the `median` of equal work, as far as they allow."""
    rows, equal, measured, arriving = works.rows, works.equal, works.measured, works.arriving
    for place in range(len(rows)):
        row = rows[place]
        if measured[row] >= 0 and arriving[row] != 0:
            most = value[place] + arriving[row]
            value[place] = min(max(median[equal[place]], value[place]), most)


def fill_others(equal: Columns, source: Columns, expected: Columns, value: Columns) -> None:
    """Give work whose time nothing shows the time that equal work is expected to take."""
    for place in range(len(equal)):
        if source[place] == OTHER:
            value[place] = expected[equal[place]]


def share_out(works: Works, segments: Segments, value: Columns, taken: Columns, missing: Columns) -> bool:
    """Give each operation of a segment of several whose `value` is below 0 an equal part of what the others leave of
    the segment's length. `taken` and `missing` contain a zero for each segment. Return whether any value remains below
    0.
    """
    rows, of_row, length, size = works.rows, works.segment, segments.length, segments.size
    for place in range(len(value)):
        segment = of_row[rows[place]]
        if segment >= 0 and size[segment] > 1:
            taken[segment] += max(value[place], 0.0)
            missing[segment] += value[place] < 0
    left = False
    for place in range(len(value)):
        segment = of_row[rows[place]]
        if value[place] < 0 and segment >= 0 and size[segment] > 1:
            value[place] = max(length[segment] - taken[segment], 0.0) / missing[segment]
        left |= value[place] < 0
    return left


def settle_times(rows: Columns, value: Columns, gpu: Columns) -> None:
    """Fill in how long the work of some rows takes, in whole nanoseconds; -1 if it is not known."""
    for place in range(len(rows)):
        gpu[rows[place]] = int(max(value[place], -1.0))


def settle_flags(works: Works, segments: Segments, often: int, seen: Columns, found: Any) -> None:
    """Fill in the other columns of `ffm.model.gpu_times.expected_work.Expected`: `firm`, `sure`, `seldom` and `unseen`,
    in this order. Rows that put no work on the GPU keep what they have.

    `seen` contains a zero for each number of equal work. What was seen less than `often` times is unseen, unless it was
    seen here.
    """
    firm, sure, seldom, unseen = found
    rows, equal, of_row, measured, copied = works.rows, works.equal, works.segment, works.measured, works.copied
    alike, surely = segments.alike, segments.sure
    for place in range(len(rows)):
        row = rows[place]
        seen[equal[place]] += of_row[row] >= 0 or measured[row] >= 0
    for place in range(len(rows)):
        row = rows[place]
        segment, timed = of_row[row], measured[row] >= 0
        firm[row] = timed or (segment >= 0 and alike[segment])
        sure[row] = timed or (segment >= 0 and surely[segment])
        unseen[row] = segment < 0 and not timed and seen[equal[place]] < often
        seldom[row] = unseen[row] and copied[row] == 0
