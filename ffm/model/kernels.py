"""The passes over the rows of a timeline, in the subset of Python that Numba compiles.

Nothing is compiled here: `ffm.model.compiled.run` chooses between these functions as plain Python and in compiled form.
Each makes one pass, O(rows), and keeps no state per row. Arguments are the columns of `Timeline`. A row's group is
`group_of[label[row]]`, or none if the label or the group is negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner, longer
from ffm.model.numbers import (
    FREE,
    MISPLACED_SYNCHRONIZATION,
    SYNCHRONIZATION,
    SYNCHRONIZATION_PROBLEM,
    TRANSFER,
    UNNECESSARY_SYNCHRONIZATION,
    UNNECESSARY_TRANSFER,
)

Integers = NDArray[Any]


WORK, OWN, WAITING = 0, 1, 2
"""What a part of a row is: work that stays, the own time of a call that a fix removes, or a wait."""

SECOND, GAP, PARTS = 1, 2, 3
"""The places of a row's parts: the first and the second part of its call, and the time until the next call."""


class Rows(NamedTuple):
    """The columns of a timeline that `carry_groups` reads."""

    thread: Integers
    duration: Integers
    wait: Integers
    gap: Integers
    kind: Integers
    problem: Integers
    first_use: Integers
    site: Integers


class Balance(NamedTuple):
    """What fixing each group alone saved so far, and what is not decided yet. Shape (groups,), nanoseconds."""

    saved: Integers
    pending: Integers
    """The wait of a group's moved synchronizations that later time can still absorb,"""
    deadline: Integers
    """until this time."""
    settled: Integers
    """The time up to which it has been accounted for."""


@inner
def settle(balance: Balance, group: int, now: int) -> int:
    """Let the time until now absorb what is pending of a group; return how much it did."""
    pending = balance.pending[group]
    if pending <= 0:
        return 0
    realized = min(pending, max(min(now, balance.deadline[group]) - balance.settled[group], 0))
    balance.saved[group] += realized
    balance.pending[group] = pending - realized
    balance.settled[group] = now
    return int(realized)


@inner
def fix_part(
    balance: Balance, group: int, role: int, moved: bool, begin: int, end: int, first_use: int, carried: int
) -> int:
    """Fix the part of a row from `begin` to `end`, which is in this role; return what its group then carries.

    A wait is removed, or `moved` to its first use, with the wait that was `carried` into it.
    """
    settle(balance, group, begin)  # time that the fix removes cannot absorb anything
    balance.settled[group] = end
    length = end - begin
    if role == OWN:
        balance.saved[group] += length
        return carried
    if not moved:
        return carried + length
    left = min(balance.pending[group], max(balance.deadline[group] - end, 0))
    balance.pending[group] = left + carried + length
    balance.deadline[group] = max(balance.deadline[group], end + first_use)
    return 0


@inner
def pay(balance: Balance, debtor: int, debt: int, length: int, now: int) -> int:
    """Let time of this length, which ends now, absorb what a group carries; return the rest of it."""
    realized = min(debt, max(length - settle(balance, debtor, now), 0))
    balance.saved[debtor] += realized
    return debt - realized


def carry_groups(rows: Rows, copy_time: Integers, label: Integers, group_of: Integers, groups: int) -> Integers:
    """Nanoseconds that fixing each group alone saves, by the rules of `ffm.model.estimators.carry`.

    At any row at most one group owes a carried wait: the group of the last synchronization, because that
    synchronization stays for every other group and absorbs what they carried. So only one debt must be tracked.
    """
    balance = Balance(
        np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    )
    clock = last_deadline = debt = 0
    debtor = -1
    for row in range(len(rows.thread)):
        if row > 0 and rows.thread[row] != rows.thread[row - 1]:
            debtor, debt = -1, 0
            clock = max(clock, last_deadline)
        asked = debtor >= 0 or rows.problem[row] != 0  # a row without a problem changes nothing
        group = int(group_of[label[row]]) if asked and label[row] >= 0 else -1
        if group < 0 and debtor < 0:  # nobody saves anything here
            clock += int(rows.duration[row]) + int(rows.gap[row])
            continue
        flags = int(rows.problem[row]) if group >= 0 else 0
        unnecessary = (flags & UNNECESSARY_SYNCHRONIZATION) != 0
        misplaced = (flags & MISPLACED_SYNCHRONIZATION) != 0 and not unnecessary
        is_free = rows.kind[row] == FREE
        repeats = (flags & UNNECESSARY_TRANSFER) != 0
        wait = int(rows.wait[row])
        # The part of the wait that disappears with the call, as its own time does. For other groups it is a wait.
        copied = min(wait, int(copy_time[rows.site[row]])) if repeats else 0
        synchronizes = (
            wait > 0 or rows.kind[row] == SYNCHRONIZATION or (rows.problem[row] & SYNCHRONIZATION_PROBLEM) != 0
        )
        for part in range(PARTS):
            if part == GAP:
                role, length = WORK, int(rows.gap[row])
            elif (part == SECOND) == is_free:  # a free waits before it works; every other call works first
                role = OWN if repeats or (unnecessary and is_free) else WORK
                length = int(rows.duration[row]) - wait + copied
            else:
                role, length = WAITING, wait - copied
            end = clock + length
            if role == WAITING and synchronizes and not unnecessary and not misplaced:
                debtor, debt = -1, 0
            elif role != WORK and group >= 0 and (role != WAITING or synchronizes):
                until_use = rows.first_use[row] if misplaced else 0
                carried = fix_part(
                    balance, group, role, misplaced, clock, end, until_use, debt if debtor == group else 0
                )
                if role == WAITING and misplaced:
                    debtor, debt = -1, 0
                    last_deadline = max(last_deadline, balance.deadline[group])
                elif role == WAITING:
                    debtor, debt = group, carried
            if debtor >= 0 and role != WAITING and (role == WORK or debtor != group):
                debt = pay(balance, debtor, debt, length - (copied if role == OWN else 0), end)
                if debt == 0:
                    debtor = -1
            clock = end
    for group in range(groups):
        settle(balance, group, balance.deadline[group])
    return balance.saved


def bound_totals(
    thread: Integers,
    duration: Integers,
    wait: Integers,
    gap: Integers,
    kind: Integers,
    problem: Integers,
    occurrences: Integers,
    label: Integers,
    group_of: Integers,
    groups: int,
) -> Integers:
    """Totals of each group, shape (groups, 8), for `ffm.model.estimators.bound`.

    Columns: occurrences; time in the call; wait; time until the thread's next synchronizing or transferring operation;
    occurrences that are an unnecessary synchronization; occurrences that are an unnecessary transfer; occurrences with
    any problem; the kind of the first row. One pass from the end, because the next operation must be known.
    """
    totals = np.zeros((groups, 8), np.int64)
    ahead = 0
    rows = len(thread)
    for reverse in range(rows):
        row = rows - 1 - reverse
        if row == rows - 1 or thread[row + 1] != thread[row]:
            ahead = int(gap[row])
        else:
            after = row + 1
            traced = (
                wait[after] > 0
                or kind[after] == SYNCHRONIZATION
                or kind[after] == TRANSFER
                or (problem[after] & SYNCHRONIZATION_PROBLEM) != 0
            )
            ahead = int(gap[row]) if traced else int(gap[row]) + int(duration[after]) + ahead
        if label[row] < 0:
            continue
        group = group_of[label[row]]
        if group < 0:
            continue
        count = occurrences[row] if len(occurrences) > 0 else 1
        totals[group, 0] += count
        totals[group, 1] += duration[row]
        totals[group, 2] += wait[row]
        totals[group, 3] += ahead
        if problem[row] & UNNECESSARY_SYNCHRONIZATION:
            totals[group, 4] += count
        if problem[row] & UNNECESSARY_TRANSFER:
            totals[group, 5] += count
        if problem[row] != 0:
            totals[group, 6] += count
        totals[group, 7] = kind[row]
    return totals


class Instances(NamedTuple):
    """The rows of a timeline, in which sequences recur, and what is known of the instance that is looked at."""

    thread: Integers
    wait: Integers
    kind: Integers
    problem: Integers
    site: Integers
    occurrences: Integers
    lines: Integers
    """Each row's line."""
    last_instance: Integers
    """Of each site, the last instance with it,"""
    last_position: Integers
    """and its position there."""
    current: Integers
    """The distinct sites of the instance, in order of first appearance."""


class Described(NamedTuple):
    """The sequences found so far, as `find_sequences` returns them, and a hash table of their keys."""

    table: Integers
    keys: Integers
    offsets: Integers
    recurrences: Integers
    ends: Integers
    line_site: Integers
    line_count: Integers
    line_problem: Integers


def find_sequences(
    thread: Integers,
    wait: Integers,
    kind: Integers,
    problem: Integers,
    site: Integers,
    occurrences: Integers,
    sites: int,
    lines: Integers,
) -> tuple[Integers, Integers, Integers, Integers, Integers, Integers]:
    """Fill in each row's line, -1 for rows in no sequence, and describe the sequences. Lines are numbered through all
    sequences.

    Returns `offsets` (sequences + 1) into the lines; the lines' `line_site`, `line_count` and `line_problem`; and each
    sequence's `recurrences` and the site that `ends` its first instance (-1: the thread's end). An instance's key is
    its distinct sites in order of first appearance. Equal keys are found through a hash table and compared in full.
    """
    rows = Instances(
        thread, wait, kind, problem, site, occurrences, lines,
        np.full(sites, -1, np.int64), np.zeros(sites, np.int32), np.empty(sites, np.int32),
    )  # fmt: skip
    offsets, recurrences, keys = np.zeros(16, np.int64), np.zeros(16, np.int64), np.zeros(16, np.int64)
    ends = np.full(16, -1, np.int32)
    line_site, line_count, line_problem = np.zeros(64, np.int32), np.zeros(64, np.int64), np.zeros(64, np.uint8)
    table = np.full(64, -1, np.int32)
    found = instance = row = 0
    while row < len(thread):
        while offsets[found] + sites > len(line_site):
            line_site, line_count, line_problem = longer(line_site), longer(line_count), longer(line_problem)
        if found + 2 > len(offsets):
            offsets, recurrences = longer(offsets), longer(recurrences)
            ends, keys = longer(ends), longer(keys)
        if 2 * (found + 1) > len(table):
            table = np.full(4 * len(table), -1, np.int32)
            fill_table(table, keys, found)
        described = Described(table, keys, offsets, recurrences, ends, line_site, line_count, line_problem)
        row, instance, found = describe_on(rows, described, row, instance, found)
    used = offsets[found]
    return (offsets[: found + 1], line_site[:used], line_count[:used], line_problem[:used], recurrences[:found],
            ends[:found])  # fmt: skip


@inner
def describe_on(rows: Instances, described: Described, row: int, instance: int, found: int) -> tuple[int, int, int]:
    """Describe the sequences from a row on, as long as there is room for another one with every site; return how far
    that went, and how many instances and sequences there are.
    """
    offsets, lines_of, table = described.offsets, described.line_site, described.table
    while row < len(rows.thread):
        begin = offsets[found]
        if found + 2 > len(offsets) or begin + len(rows.current) > len(lines_of) or 2 * (found + 1) > len(table):
            break
        first_row, row, length, new_thread = next_instance(rows, row, instance)
        if length == 0:
            break
        key = key_of(rows.current, length)
        match, slot = find_known(table, described.keys, offsets, lines_of, rows.current, length, key)
        if match < 0:
            match = table[slot] = found
            for index in range(length):
                lines_of[begin + index] = rows.current[index]
            offsets[found + 1] = begin + length
            described.keys[found] = key
            described.ends[found] = -1 if row == len(rows.thread) or new_thread else rows.site[row]
            found += 1
        described.recurrences[match] += 1
        count_lines(rows, described, first_row, row, offsets[match])
        instance += 1
    return row, instance, found


@inner
def next_instance(rows: Instances, row: int, instance: int) -> tuple[int, int, int, bool]:
    """Find the next instance of a sequence from a row on; `rows.lines` receives each row's line within it, or -1.

    Returns its first row, the row after it, the number of its distinct sites, which `rows.current` receives, and
    whether the row after it is another thread's.
    """
    thread, kind, problem = rows.thread, rows.kind, rows.problem
    first_row = row
    length = 0
    new_thread = True
    while row < len(thread):
        new_thread = bool(row > 0 and thread[row] != thread[row - 1])
        if length > 0:
            synchronizes = (
                rows.wait[row] > 0 or kind[row] == SYNCHRONIZATION or (problem[row] & SYNCHRONIZATION_PROBLEM) != 0
            )
            if new_thread or (synchronizes and (problem[row] & UNNECESSARY_SYNCHRONIZATION) == 0):
                break
        rows.lines[row] = -1
        if problem[row] != 0:
            here = rows.site[row]
            if length == 0:
                first_row = row
            if rows.last_instance[here] != instance:
                rows.last_instance[here] = instance
                rows.last_position[here] = length
                rows.current[length] = here
                length += 1
            rows.lines[row] = rows.last_position[here]  # offset later, with its sequence
        row += 1
    return first_row, row, length, new_thread


@inner
def key_of(current: Integers, length: int) -> int:
    """Return a number for the distinct sites of an instance. Others may have the same."""
    modulus = (1 << 40) - 87  # prime, so that the low bits of a key, which choose its slot, depend on all of it
    key = 0
    for index in range(length):
        key = (key * 1000003 + int(current[index]) + 1) % modulus
    return key


@inner
def find_known(
    table: Integers, keys: Integers, offsets: Integers, line_site: Integers, current: Integers, length: int, key: int
) -> tuple[int, int]:
    """Return the sequence with the sites of an instance, or -1, and the slot where the search ended."""
    slot = key % len(table)
    while table[slot] >= 0:
        candidate = int(table[slot])
        begin = offsets[candidate]
        if keys[candidate] == key and offsets[candidate + 1] - begin == length:
            index = 0
            while index < length and line_site[begin + index] == current[index]:
                index += 1
            if index == length:
                return candidate, slot
        slot = (slot + 1) % len(table)
    return -1, slot


@inner
def fill_table(table: Integers, keys: Integers, found: int) -> None:
    """Enter the sequences found so far into an empty table."""
    for index in range(found):
        slot = keys[index] % len(table)
        while table[slot] >= 0:
            slot = (slot + 1) % len(table)
        table[slot] = index


@inner
def count_lines(rows: Instances, described: Described, first_row: int, end: int, offset: int) -> None:
    """Add the rows of an instance to the lines of its sequence, which begin at an offset."""
    lines, occurrences = rows.lines, rows.occurrences
    for row in range(first_row, end):
        if lines[row] >= 0:
            line = offset + lines[row]
            lines[row] = line
            described.line_count[line] += occurrences[row] if len(occurrences) > 0 else 1
            described.line_problem[line] |= rows.problem[row]


def relabel(label: Integers, new_label: Integers) -> None:
    """Replace each label by its new one, in place; negative labels stay."""
    for row in range(len(label)):
        if label[row] >= 0:
            label[row] = new_label[label[row]]
