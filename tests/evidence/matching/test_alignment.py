"""The same operation is found in another run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.evidence.matching import alignment
from ffm.evidence.matching.alignment import align, rows_of
from ffm.evidence.matching.alignment_kernels import put, put_found, put_times
from ffm.evidence.operations import occurrences
from ffm.results.columnar.columns import Columns


def run_of(*calls: tuple[int, int, int]) -> Columns:
    """A run of calls, each (process, thread, stack)."""
    process, thread, stack = (np.array([call[part] for call in calls], np.int32) for part in range(3))
    occurrence = occurrences(process, thread, stack)
    return {"process": process, "thread": thread, "stack": stack, "occurrence": occurrence}


def matched(run: Columns, among: Columns) -> NDArray[np.int64]:
    return align([run], among).rows(run)


def test_occurrences_of_a_stack_are_told_apart() -> None:
    trace = run_of((0, 0, 7), (0, 0, 8), (0, 0, 7))
    assert matched(run_of((0, 0, 7), (0, 0, 7), (0, 0, 7)), trace).tolist() == [0, 2, -1]


def test_threads_that_were_numbered_the_other_way_round_are_found_by_their_stacks() -> None:
    trace = run_of((0, 0, 1), (0, 1, 5), (0, 1, 5), (0, 2, 6), (0, 2, 9))
    again = run_of((0, 0, 1), (0, 2, 5), (0, 2, 5), (0, 1, 6), (0, 1, 9))
    assert matched(again, trace).tolist() == [0, 1, 2, 3, 4]


def test_workers_of_a_pool_keep_their_numbers() -> None:
    trace = run_of((0, 1, 5), (0, 2, 5), (0, 3, 5))
    assert matched(run_of((0, 3, 5), (0, 2, 5), (0, 1, 5)), trace).tolist() == [2, 1, 0]


def test_a_thread_is_matched_with_one_thread_only() -> None:
    trace = run_of((0, 1, 5), (0, 1, 5), (0, 1, 5))
    assert matched(run_of((0, 1, 5), (0, 2, 5)), trace).tolist() == [0, -1]


def test_processes_are_never_confused() -> None:
    trace = run_of((0, 0, 5), (1, 0, 6))
    assert matched(run_of((0, 0, 6), (1, 0, 5)), trace).tolist() == [-1, -1]


def test_part_of_a_run_finds_its_threads_too() -> None:
    trace = run_of((0, 0, 5), (0, 0, 6), (0, 1, 7), (0, 1, 8))
    assert matched(run_of((0, 1, 6), (0, 0, 8)), trace).tolist() == [1, 3]


@given(
    threads=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    renumber=st.randoms(use_true_random=False),
)
def test_any_renumbering_of_threads_with_stacks_of_their_own_is_undone(threads: list[int], renumber: object) -> None:
    calls = [(0, number, 10 * number + call % 2) for number, many in enumerate(threads) for call in range(many)]
    numbers = list(range(len(threads)))
    renumber.shuffle(numbers)  # type: ignore[attr-defined]
    again = [(process, numbers[thread], stack) for process, thread, stack in calls]
    assert matched(run_of(*again), run_of(*calls)).tolist() == list(range(len(calls)))


def test_tables_of_a_run_are_matched_with_the_same_threads() -> None:
    """Each table alone could be of either thread, or speaks for the wrong one."""
    trace = run_of((0, 0, 5), (0, 1, 5), (0, 1, 6), (0, 1, 6))
    unclear, clear = run_of((0, 0, 5)), run_of((0, 0, 6), (0, 0, 6))
    both = align([unclear, clear], trace)
    assert both.rows(unclear).tolist() == [1]
    assert both.rows(clear).tolist() == [2, 3]
    assert matched(unclear, trace).tolist() == [0]


def test_nothing_is_found_in_an_empty_run_or_table() -> None:
    some, nothing = run_of((0, 1, 5)), run_of()
    assert align([some, nothing], nothing).rows(some).tolist() == [-1]
    assert align([nothing], some).rows(nothing).tolist() == []


@given(st.data())
def test_rows_are_found_in_whatever_order_they_come_and_whatever_is_missing(data: st.DataObject) -> None:
    calls = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), max_size=40))
    trace = run_of(*sorted(calls, key=lambda call: call[:2]))
    rows = data.draw(st.permutations(range(len(calls))) if data.draw(st.booleans()) else st.just(range(len(calls))))
    kept = [row for row in rows if data.draw(st.integers(0, 3))]
    known = data.draw(st.permutations(range(len(calls)))) if data.draw(st.booleans()) else list(range(len(calls)))
    known = known[: data.draw(st.integers(0, len(calls)))]
    among = {name: column[known] for name, column in trace.items()}
    wanted = {name: column[kept] for name, column in trace.items()}
    place = {row: number for number, row in enumerate(known)}
    assert rows_of(wanted, among).tolist() == [place.get(row, -1) for row in kept]


def test_very_many_threads_are_paired_by_what_they_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread's further call in one run, and more calls of a task, do not matter."""
    monkeypatch.setattr(alignment, "MOST_PAIRS", 8)
    odd, even = [(0, thread, 5) for thread in (1, 3, 5)], [(0, thread, 6) for thread in (2, 4, 6)]
    trace = run_of((0, 0, 7), (0, 0, 8), *sorted([*odd, *even]))
    other = run_of((0, 0, 7), *[(0, thread, 6) for thread in (1, 2, 3)], *[(0, thread, 5) for thread in (4, 5, 6)])
    assert matched(other, trace).tolist() == [0, 3, 5, 7, 2, 4, 6]


def test_what_is_found_of_rows_is_put_where_they_are() -> None:
    rows, numbers, table = np.array([2, -1, 0]), np.array([1, 0, -1]), np.array([10, 11, 12])
    column, times = np.zeros(3, np.int64), np.zeros((2, 3), np.int64)
    put(rows, numbers, column)
    assert column.tolist() == [-1, 0, 1]
    put_found(rows, numbers, table, column)
    assert column.tolist() == [12, 0, 11]  # the last entry of the table stands for -1
    put_times(rows, np.array([7, 8, 9]), np.array([1, 2, 3]), *times)
    assert times.tolist() == [[6, 0, 6], [3, 0, 1]]
