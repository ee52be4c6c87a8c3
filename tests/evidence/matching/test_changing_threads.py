"""Operations are found in a run whose threads share out their tasks differently."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.evidence.matching.alignment import IDENTITY, align
from ffm.evidence.matching.changing_threads import chosen_by_chance
from ffm.evidence.matching.task_stacks import numbered_tasks
from ffm.evidence.operations import occurrences
from ffm.model.necessity.reasons import Reason, is_required
from ffm.results.columnar.columns import Columns
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.stages.analysis.joined import rows_of_tasks, rows_of_waits

Call = tuple[int, int, int, int]
"""Thread, stack, and a wait's `Reason` and duration. They come in order of time, all of one process."""


def in_time(calls: list[Call]) -> Columns:
    """The rows of a run in order of time, as stage 3 judges them."""
    thread, stack, reason, duration = np.array(calls, np.int64).reshape(-1, 4).T
    process = np.zeros(len(calls), np.int32)
    thread, stack = thread.astype(np.int32), stack.astype(np.int32)
    return {
        "process": process,
        "thread": thread,
        "stack": stack,
        "occurrence": occurrences(process, thread, stack),
        "start": np.arange(len(calls)),
        "duration": duration,
        "reason": reason.astype(np.uint8),
    }


def traced(calls: list[Call]) -> Columns:
    """The rows of a run as stage 2 stores them, by thread."""
    columns = in_time(calls)
    order = np.lexsort((columns["start"], columns["thread"]))
    return {name: column[order] for name, column in columns.items()}


def judged(calls: list[Call]) -> Columns:
    columns = in_time(calls)
    return {name: columns[name] for name in (*IDENTITY, "reason")}


def reasons(run: list[Call], other: list[Call]) -> tuple[Columns, np.ndarray]:
    """The rows of a traced run, with the reason that each gets from another run."""
    columns, table = traced(run), judged(other)
    rows = rows_of_waits(align([table], columns), table, np.ones(len(run), bool))
    found = np.zeros(len(run), np.uint8)
    found[rows[rows >= 0]] = table["reason"][rows >= 0]
    assert len(set(rows[rows >= 0].tolist())) == (rows >= 0).sum()
    return columns, found


TASK = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([Reason.NOTHING_RELIES, Reason.LATER_COVERS, Reason.RESULT_USED])),
    min_size=1,
    max_size=4,
)


def scheduled(tasks: list[list[tuple[int, int]]], data: st.DataObject, threads: int) -> list[Call]:
    """The tasks by some threads that take them from a queue, in turns that are chance. The first stack is one that
    only the thread 0 has.
    """
    waiting, calls = list(tasks), [(0, 9, int(Reason.NOTHING_RELIES), 1)]
    at_work: dict[int, list[tuple[int, int]]] = {}
    while waiting or at_work:
        thread = data.draw(st.integers(1, threads))
        if not at_work.get(thread):
            at_work.pop(thread, None)
            if not waiting:
                continue
            at_work[thread] = list(waiting.pop(0))
        stack, reason = at_work[thread].pop(0)
        calls.append((thread, stack, int(reason), 1))
        if not at_work[thread]:
            del at_work[thread]
    return calls


@given(st.lists(TASK, max_size=12), st.integers(1, 4), st.data())
def test_any_schedule_of_tasks_gives_the_same_verdicts_of_each_stack(
    tasks: list[list[tuple[int, int]]], threads: int, data: st.DataObject
) -> None:
    run, other = scheduled(tasks, data, threads), scheduled(tasks, data, threads)
    columns, found = reasons(run, other)
    measured = Counter((stack, reason) for _, stack, reason, _ in other)
    assert Counter(zip(columns["stack"].tolist(), found.tolist(), strict=True)) == measured


@given(st.lists(TASK, max_size=8), st.lists(TASK, max_size=8), st.data())
def test_no_needed_wait_is_left_out(
    tasks: list[list[tuple[int, int]]], more: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Runs with other tasks: a stack has as many needed waits as the other run, or all that are matched are needed."""
    run, other = scheduled(tasks, data, 3), scheduled(tasks + more, data, 3)
    columns, found = reasons(run, other)
    _, table = traced(run), judged(other)
    for stack in range(6):
        mine, its = columns["stack"] == stack, table["stack"] == stack
        needed = int(is_required(table["reason"][its]).sum())
        assert int(is_required(found[mine]).sum()) == min(needed, int((found[mine] != 0).sum()))
        threads = [len(set(run_of["thread"][rows].tolist())) for run_of, rows in ((columns, mine), (table, its))]
        if max(threads) < 2:
            continue
        assert int((found[mine] != 0).sum()) == min(int(its.sum()), int(mine.sum()))


def test_a_needed_wait_of_a_turn_that_the_traced_run_did_not_take_is_not_left_out() -> None:
    """A loop took a third turn in the other run, and only its last wait was needed."""
    relies, used = int(Reason.NOTHING_RELIES), int(Reason.RESULT_USED)
    run = [(0, 1, 0, 1), (0, 1, 0, 1), (1, 2, 0, 1)]
    _, found = reasons(run, [(0, 1, relies, 1), (0, 1, relies, 1), (0, 1, used, 1), (1, 2, used, 1)])
    assert found.tolist() == [relies, used, used]


def test_what_is_chosen_by_chance_lasts_as_long_as_the_shortest_to_the_longest_ones() -> None:
    columns = traced([(1, 3, 0, 10), (2, 3, 0, 20), (1, 3, 0, 40), (2, 3, 0, 50), (1, 4, 0, 7), (2, 4, 0, 7)])
    chosen = np.isin(columns["duration"], (20, 40, 7))
    (chance,) = chosen_by_chance(columns, np.ones(6, bool), chosen)
    assert (chance.stack, chance.chosen, chance.of) == (3, 2, 4)
    assert (chance.least, chance.most) == (30 / 60, 90 / 60)


def test_nothing_is_chosen_by_chance_of_one_thread() -> None:
    columns = traced([(1, 3, 0, 10), (1, 3, 0, 20), (2, 4, 0, 20), (2, 4, 0, 20)])
    assert chosen_by_chance(columns, np.ones(4, bool), columns["duration"] == 10) == []
    assert chosen_by_chance(columns, np.ones(4, bool), np.zeros(4, bool)) == []


def test_tasks_are_found_under_other_stacks_of_their_runtime_where_all_have_one_reason() -> None:
    """Task 0 has stacks 3 and 4, task 1 has stacks 5 and 6; the other run has each on the other stack."""
    relies, used = int(Reason.NOTHING_RELIES), int(Reason.RESULT_USED)
    columns = traced([(1, 3, 0, 1), (2, 3, 0, 1), (1, 5, 0, 1), (2, 5, 0, 1)])
    table = judged([(1, 4, relies, 1), (2, 4, relies, 1), (1, 6, relies, 1), (2, 6, used, 1)])
    waits = np.ones(4, bool)
    rows = rows_of_waits(align([table], columns), table, waits)
    assert rows.tolist() == [-1] * 4
    task = np.array([-1, -1, -1, 0, 0, 1, 1])
    rows = rows_of_tasks(table, rows, task[table["stack"]], columns, task[columns["stack"]], waits)
    assert columns["stack"][rows[:2]].tolist() == [3, 3] and len(set(rows[:2].tolist())) == 2
    assert rows[2:].tolist() == [-1, -1]


def test_a_task_is_what_its_runtime_calls() -> None:
    names = ("libcudart.so.13", "app", "libgomp.so.1", "libgomp-plugin-nvptx.so.1", "libgomp-a34b3233.so.1")
    modules = [Module(path=f"/lib/{name}", build_id=f"{number:02x}") for number, name in enumerate(names)]

    def stack(*frames: tuple[int, int]) -> Stack:
        return Stack(key="0" * 32, frames=[Frame(module=module, offset=offset) for module, offset in frames])

    here = [
        stack((0, 1), (1, 5), (2, 7), (1, 9)),
        stack((0, 1), (1, 6), (2, 7)),
        stack((0, 1), (1, 5), (1, 9)),
        stack((3, 1), (2, 7), (1, 5)),
        stack((2, 7), (1, 5)),
    ]
    there = [stack((0, 1), (1, 6), (4, 8)), stack((0, 1), (1, 5), (2, 3), (1, 4))]
    first, second = numbered_tasks((here, modules), (there, modules))
    assert first.tolist() == [0, 1, -1, -1, -1]
    assert second.tolist() == [1, 0]
