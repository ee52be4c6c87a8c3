"""Sequences: where they start and end, how they recur, and what parts of them save."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.compiled import compiled
from ffm.model.estimators.bound import bound_by_stack, bound_of_sequence, totals
from ffm.model.estimators.carry import carry, carry_by_group
from ffm.model.groups.sequences import Membership, find_sequences
from ffm.model.timeline import Kind, Timeline
from tests.model import reference
from tests.model.timelines import DUPLICATE, MISPLACED, UNNECESSARY, Row, row_lists, timeline

SYNC, TRANSFER, FREE, LAUNCH = Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.FREE, Kind.LAUNCH

LOOP_BODY = [
    Row(TRANSFER, own=1, wait=2, gap=1, problem=UNNECESSARY | DUPLICATE, site=0),
    Row(LAUNCH, own=1, gap=1, site=1),
    Row(FREE, own=1, wait=3, gap=2, problem=UNNECESSARY, site=2),
    Row(SYNC, wait=4, gap=1, site=3),
]


def sequence_benefits(timeline: Timeline, membership: Membership) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the seconds that fixing each whole sequence saves: by `carry`, and by `bound`."""
    sequence, sequences = membership.sequence_of_line(), len(membership.offsets) - 1
    return (
        carry_by_group(timeline, membership.line, sequence, sequences),
        bound_of_sequence(totals(timeline, membership.line, sequence, sequences)),
    )


def benefit_of_subsequence(
    timeline: Timeline,
    membership: Membership,
    sequence: int,
    start: int,
    end: int,
) -> tuple[float, float]:
    """Return the seconds that fixing a part of a sequence saves: by `carry`, and by `bound`. Lines count from 0, both
    included.
    """
    selected = membership.rows_of(sequence, start, end)
    label = selected.view(np.int8) - np.int8(1)
    operations = totals(timeline, label, np.zeros(1, np.int32), 1)
    return carry(timeline, selected), float(bound_of_sequence(operations)[0])


def test_a_sequence_runs_from_a_problem_to_the_next_necessary_synchronization() -> None:
    found, membership = find_sequences(timeline(LOOP_BODY), 4)
    assert [[line.site for line in sequence.lines] for sequence in found] == [[0, 2]]
    assert found[0].ends_at == 3
    assert membership.line.tolist() == [0, -1, 1, -1]
    assert membership.offsets.tolist() == [0, 2]


def test_a_sequence_that_recurs_is_one_with_a_count() -> None:
    found, membership = find_sequences(timeline(LOOP_BODY * 5), 4)
    assert len(found) == 1
    assert found[0].recurrences == 5
    assert [(line.site, line.count) for line in found[0].lines] == [(0, 5), (2, 5)]
    assert membership.line.tolist() == [0, -1, 1, -1] * 5


def test_an_operation_passed_twice_in_an_instance_is_one_line() -> None:
    twice = Row(FREE, wait=1, problem=UNNECESSARY, site=1)
    rows = [Row(SYNC, wait=1, problem=UNNECESSARY, site=0), twice, twice, Row(SYNC, wait=1, site=2)]
    found, membership = find_sequences(timeline(rows * 3), 3)
    assert [(line.site, line.count) for line in found[0].lines] == [(0, 3), (1, 6)]
    assert membership.line.tolist() == [0, 1, 1, -1] * 3


def test_another_order_of_the_same_operations_is_another_sequence() -> None:
    first, second = (Row(SYNC, wait=1, problem=UNNECESSARY, site=site) for site in (0, 1))
    end = Row(SYNC, wait=1, site=2)
    found, _ = find_sequences(timeline([first, second, end, second, first, end]), 3)
    assert [[line.site for line in sequence.lines] for sequence in found] == [[0, 1], [1, 0]]


def test_a_thread_ends_a_sequence() -> None:
    rows = [Row(SYNC, wait=1, problem=UNNECESSARY), Row(SYNC, wait=1, problem=UNNECESSARY, thread=1)]
    found, _ = find_sequences(timeline(rows), 1)
    assert (len(found), found[0].recurrences, found[0].ends_at) == (1, 2, None)


@pytest.mark.parametrize("problem", [MISPLACED, DUPLICATE])
def test_a_problem_whose_synchronization_is_needed_ends_one_sequence_and_begins_another(problem: int) -> None:
    rows = [
        Row(SYNC, wait=1, problem=UNNECESSARY, site=0),
        Row(TRANSFER, wait=1, problem=problem, first_use=1, site=1),  # type: ignore[arg-type]
        Row(SYNC, wait=1, problem=UNNECESSARY, site=2),
    ]
    found, _ = find_sequences(timeline(rows), 3)
    assert [[line.site for line in sequence.lines] for sequence in found] == [[0], [1, 2]]


def test_no_problems_no_sequences() -> None:
    found, membership = find_sequences(timeline([Row(SYNC, wait=1), Row(LAUNCH)]), 1)
    assert len(found) == 0
    assert membership.line.tolist() == [-1, -1]
    assert len(find_sequences(timeline([]), 0)[0]) == 0


def test_benefit_of_a_part_is_over_all_recurrences() -> None:
    table = timeline(LOOP_BODY * 5)
    _, membership = find_sequences(table, 4)
    # Alone, the free saves its call and as much of its wait as the gap absorbs, five times.
    assert benefit_of_subsequence(table, membership, 0, 1, 1)[0] == 5 * (1 + 2)
    # Together: calls of 1 and 1; the wait of 2 before the gap of 1 and the launch, 2 of the wait of 3 in the
    # gap.
    assert benefit_of_subsequence(table, membership, 0, 0, 1)[0] == 5 * (2 + 2 + 2)


def test_bound_of_a_sequence_is_the_smaller_of_calls_and_gaps() -> None:
    table = timeline(LOOP_BODY * 5)
    _, membership = find_sequences(table, 4)
    calls, gaps = (3 + 4), (1 + 1 + 1) + 2  # the launch is part of the first gap
    assert benefit_of_subsequence(table, membership, 0, 0, 1)[1] == pytest.approx(5 * min(calls, gaps))


@given(row_lists())
def test_equals_the_reference(rows: list[Row]) -> None:
    found, _ = find_sequences(timeline(rows), 4)
    described = {
        tuple(line.site for line in sequence.lines): (
            sequence.recurrences,
            [line.count for line in sequence.lines],
        )
        for sequence in found
    }
    assert len(described) == len(found)
    assert described == reference.sequences(rows)


@given(row_lists())
def test_every_problem_is_in_exactly_one_sequence_and_nothing_else_is(rows: list[Row]) -> None:
    table = timeline(rows)
    found, membership = find_sequences(table, 4)
    assert ((membership.line >= 0) == (table.problem != 0)).all()
    lines = [line for sequence in found for line in sequence.lines]
    for row in np.flatnonzero(membership.line >= 0):
        line = lines[membership.line[row]]
        assert line.site == table.site[row]
        assert int(line.problem) & int(table.problem[row]) == table.problem[row]


@given(row_lists(max_size=20))
def test_a_sequence_s_benefit_is_that_of_its_whole_as_a_part(rows: list[Row]) -> None:
    table = timeline(rows)
    found, membership = find_sequences(table, 4)
    carry_s, bound_s = sequence_benefits(table, membership)
    for number, sequence in enumerate(found):
        last = len(sequence.lines) - 1
        rows_of_sequence = np.isin(membership.line, range(*membership.offsets[number : number + 2]))
        assert carry_s[number] == pytest.approx(carry(table, rows_of_sequence))
        part = benefit_of_subsequence(table, membership, number, 0, last)
        assert (carry_s[number], bound_s[number]) == pytest.approx(part)


@given(row_lists(max_size=20), st.randoms())
def test_reordered_sequences_keep_their_rows(rows: list[Row], random: Random) -> None:
    found, membership = find_sequences(timeline(rows), 4)
    order = random.sample(range(len(found)), k=random.randint(0, len(found)))
    before = [membership.rows_of(old, 0, len(found[old].lines) - 1) for old in order]
    reordered = membership.reorder(np.array(order, np.int64))
    for new, old in enumerate(order):
        assert (reordered.rows_of(new, 0, len(found[old].lines) - 1) == before[new]).all()
    assert (reordered.line >= 0).sum() == sum(rows.sum() for rows in before)


@given(row_lists(misplaced=False), st.data())
def test_a_longer_part_never_saves_less(rows: list[Row], data: st.DataObject) -> None:
    table = timeline(rows)
    found, membership = find_sequences(table, 4)
    if not found:
        return
    number = data.draw(st.integers(0, len(found) - 1))
    last = len(found[number].lines) - 1
    start = data.draw(st.integers(0, last))
    end = data.draw(st.integers(start, last))
    part = benefit_of_subsequence(table, membership, number, start, end)
    whole = benefit_of_subsequence(table, membership, number, 0, last)
    assert part[0] <= whole[0] + 1e-9
    assert part[1] <= whole[1] + 1e-9


@given(row_lists())
def test_totals_equal_the_reference(rows: list[Row]) -> None:
    table = timeline(rows)
    sums = totals(table, table.site, np.arange(4, dtype=np.int32), 4)
    for site in range(4):
        members = [index for index, row in enumerate(rows) if row.site == site]
        assert sums.count[site] == len(members)
        assert sums.total[site] == pytest.approx(sum(rows[index].own + rows[index].wait for index in members))
        assert sums.wait[site] == pytest.approx(sum(rows[index].wait for index in members))
        assert sums.gap[site] == pytest.approx(sum(reference.next_traced(rows, index) for index in members))
        assert sums.problems[site] == sum(bool(rows[index].problem) for index in members)


@given(row_lists())
def test_bound_of_a_stack_lies_between_nothing_and_its_time(rows: list[Row]) -> None:
    table = timeline(rows)
    sums = totals(table, table.site, np.arange(4, dtype=np.int32), 4)
    saved = bound_by_stack(sums)
    assert (saved >= 0).all()
    assert (saved <= sums.total + 1e-9).all()
    assert (saved[sums.problems == 0] == 0).all()


def test_bound_of_a_stack_by_hand() -> None:
    """Two of four frees wait without need: half of the smaller of 12 s waits and 4 s gaps, half of 8 s of
    calls."""
    rows = [
        Row(FREE, own=2, wait=3, gap=1, problem=UNNECESSARY * (index < 2))  # type: ignore[arg-type]
        for index in range(4)
    ]
    table = timeline(rows)
    saved = bound_by_stack(totals(table, table.site, np.zeros(1, np.int32), 1))
    assert saved.tolist() == [pytest.approx(4 / 2 + 8 / 2)]


def test_many_different_sequences_are_told_apart() -> None:
    """More than the initial size of the tables, in instances of several lengths."""
    rows = []
    for number in range(300):
        chosen = [site for site in range(10) if (number + 1) >> site & 1]
        rows += [Row(SYNC, wait=1, problem=UNNECESSARY, site=site) for site in chosen]
        rows.append(Row(SYNC, wait=1, site=10))
    found, _ = find_sequences(timeline(rows * 2), 11)
    assert len(found) == 300
    assert {sequence.recurrences for sequence in found} == {2}


@pytest.mark.thorough
def test_compiled_and_plain_kernels_agree() -> None:
    generator = np.random.default_rng(2)
    rows = [
        Row(
            kind=Kind(int(generator.integers(0, 7))),
            wait=int(generator.integers(0, 2)),
            problem=UNNECESSARY * int(generator.integers(0, 2)),
            site=int(generator.integers(0, 9)),
            thread=index // 100,
        )
        for index in range(400)
    ]
    table = timeline(rows)
    answers = []
    for kernel in (kernels.find_sequences, compiled(kernels.find_sequences)):
        line = np.empty(len(rows), np.int32)
        described = kernel(
            table.thread, table.wait, table.kind, table.problem, table.site, table.occurrences, 9,
            line,
        )  # fmt: skip
        answers.append([part.tolist() for part in (*described, line)])
    assert answers[0] == answers[1]
    label = np.arange(9, dtype=np.int32)
    columns = (
        table.thread, table.duration, table.wait, table.gap, table.kind, table.problem, table.occurrences,
        table.site, label, 9,
    )  # fmt: skip
    assert compiled(kernels.bound_totals)(*columns).tolist() == kernels.bound_totals(*columns).tolist()
