"""Worked examples of who relies on which synchronization."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ffm.model.necessity.program import (
    Action,
    Clocks,
    Comparison,
    Handovers,
    Operations,
    Role,
    Scope,
    StreamKind,
    Streams,
    Uses,
)
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import Necessity, needed_synchronizations, uses_after_clocks, uses_after_questions
from ffm.model.necessity.state import FIRST_ROOM

LEGACY, BLOCKING, FIRST, SECOND = 0, 1, 2, 3
STREAMS = Streams(
    np.array([StreamKind.LEGACY, StreamKind.BLOCKING, StreamKind.INDEPENDENT, StreamKind.INDEPENDENT], np.uint8),
    np.zeros(4, np.int64),
)

Row = tuple[str, int, int]
"""What is done, on which stream, by which thread."""


def program(*rows: Row) -> Operations:
    """Operations ten nanoseconds apart that last five.

    Rows: work, hold, record, order, device, stream, event, elapsed.
    """
    count = len(rows)
    what = [row[0] for row in rows]
    scopes = {"device": Scope.CONTEXT, "stream": Scope.STREAM, "event": Scope.EVENT, "private": Scope.PRIVATE}
    actions = {"work": Action.WORK, "hold": Action.HOLD, "record": Action.RECORD, "order": Action.WAIT_EVENT}
    start = 10 * np.arange(count, dtype=np.int64)
    return Operations(
        start=start,
        end=start + 5,
        thread=np.array([row[2] for row in rows], np.int64),
        scope=np.array([scopes.get(name, Scope.NONE) for name in what], np.uint8),
        judged=np.array([name in scopes for name in what], bool),
        stream=np.array([row[1] for row in rows], np.int64),
        context=np.zeros(count, np.int64),
        event=np.array([0 if name in ("record", "order", "event") else -1 for name in what], np.int64),
        action=np.array([actions.get(name, Action.NOTHING) for name in what], np.uint8),
        streams=STREAMS,
    )


def used(*uses: tuple[int, int, Role], thread: int = 0) -> Uses:
    return Uses(
        np.array([use[0] for use in uses], np.int64),
        np.array([use[1] for use in uses], np.int64),
        np.array([use[2] for use in uses], np.uint8),
        np.full(len(uses), thread, np.int64),
    )


def clock_reads(*reads: tuple[int, int, Comparison], counters: tuple[tuple[int, int, Comparison], ...] = ()) -> Clocks:
    """Return reads of clocks, and of the processor's counter, as (thread, time, comparison)."""
    rows = sorted([*((*read, False) for read in reads), *((*read, True) for read in counters)], key=lambda row: row[1])
    thread, time, comparison, counter = (np.array(column) for column in zip(*rows, strict=True))
    return Clocks(thread, time, comparison.astype(np.uint8), counter.astype(np.bool_))


def reasons(found: Necessity) -> list[Reason]:
    return [Reason(value) for value in found.reason.tolist() if value]


def test_the_last_wait_before_a_use_is_needed_and_earlier_ones_only_without_it() -> None:
    found = needed_synchronizations(
        program(("work", FIRST, 0), ("stream", FIRST, 0), ("device", LEGACY, 0)), used((0, 40, Role.RESULT))
    )
    assert reasons(found) == [Reason.LATER_COVERS, Reason.RESULT_USED]
    assert found.keep.tolist() == [-1, 2, -1]


def test_a_use_before_a_wait_does_not_rely_on_it() -> None:
    found = needed_synchronizations(program(("work", FIRST, 0), ("stream", FIRST, 0)), used((0, 7, Role.RESULT)))
    assert reasons(found) == [Reason.NOTHING_RELIES]


def test_a_thread_that_waited_for_its_own_work_relies_on_no_other() -> None:
    operations = program(("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 1))
    found = needed_synchronizations(operations, used((0, 40, Role.RESULT)))
    assert reasons(found) == [Reason.RESULT_USED, Reason.NOTHING_RELIES]


def test_a_wait_may_cover_the_work_of_another_thread_only_by_chance() -> None:
    """Thread 1 waits twice, reads, and learns of the work in between: its first wait may come too early."""
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 1), ("stream", FIRST, 1), ("stream", FIRST, 1)]
    access = used((0, 60, Role.RESULT), thread=1)
    last_alone = [Reason.LATER_COVERS, Reason.LATER_COVERS, Reason.RESULT_USED]
    assert reasons(needed_synchronizations(program(*rows), access)) == [Reason.HANDED_OVER] * 3
    for told, expected in ((8, last_alone), (18, last_alone), (38, [Reason.HANDED_OVER] * 3)):
        known = Handovers(np.array([1]), np.array([told]), np.array([[7, 0]]))
        assert reasons(needed_synchronizations(program(*rows), access, handovers=known)) == expected


def test_a_wait_that_must_stay_is_enough_for_what_is_used_later() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0)]
    found = needed_synchronizations(program(*rows), used((0, 26, Role.RESULT), (1, 50, Role.RESULT)))
    assert reasons(found) == [Reason.RESULT_USED, Reason.NOTHING_RELIES]


def test_what_an_earlier_wait_covers_does_not_hide_what_a_later_one_does() -> None:
    """The first wait stays for work 1, so that it is enough for work 0, which is used after the other waits."""
    rows: list[Row] = [
        ("work", FIRST, 0), ("work", FIRST, 0), ("stream", FIRST, 0),
        ("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0),
    ]  # fmt: skip
    accesses = used((1, 26, Role.RESULT), (0, 60, Role.RESULT), (3, 80, Role.RESULT))
    found = needed_synchronizations(program(*rows), accesses)
    assert reasons(found) == [Reason.RESULT_USED, Reason.LATER_COVERS, Reason.RESULT_USED]
    assert found.keep.tolist() == [-1, -1, -1, -1, 5, -1]


def test_a_wait_for_an_old_event_does_not_hide_the_one_that_covers() -> None:
    rows: list[Row] = [("record", FIRST, 0), ("work", FIRST, 0), ("stream", FIRST, 0), ("event", FIRST, 0)]
    found = needed_synchronizations(program(*rows), used((1, 60, Role.RESULT)))
    assert reasons(found) == [Reason.RESULT_USED, Reason.NOTHING_RELIES]


def test_a_wait_orders_independent_streams() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("work", SECOND, 0)]
    assert reasons(needed_synchronizations(program(*rows), used())) == [Reason.ORDERS_STREAMS]


def test_a_wait_orders_no_work_of_streams_that_share_no_memory() -> None:
    """Work of stream 0, then of 1, which has no memory in common with it, then of 2, which has with both."""
    apart = np.zeros((3, 3), np.bool_)
    apart[0, 1] = apart[1, 0] = True
    streams = Streams(np.full(3, StreamKind.INDEPENDENT, np.uint8), np.zeros(3, np.int64), apart)
    rows: list[Row] = [("work", 0, 0), ("stream", 0, 0), ("work", 1, 0), ("stream", 1, 0), ("work", 2, 0)]
    without = replace(program(*rows[:4]), streams=streams)
    behind = replace(program(*rows), streams=streams)
    assert reasons(needed_synchronizations(without, used())) == [Reason.NOTHING_RELIES] * 2
    assert reasons(needed_synchronizations(behind, used())) == [Reason.ORDERS_STREAMS] * 2


def test_a_wait_may_come_before_the_cpu_lets_held_work_go() -> None:
    """The CPU can hold work back with a value in memory, or with a host function that waits for a semaphore."""
    rows: list[Row] = [("work", FIRST, 0), ("hold", SECOND, 0), ("work", SECOND, 0), ("stream", FIRST, 0)]
    again: list[Row] = [*rows, ("stream", FIRST, 0)]
    assert reasons(needed_synchronizations(program(*rows), used())) == [Reason.ORDERS_STREAMS]
    assert reasons(needed_synchronizations(program(*again), used())) == [Reason.ORDERS_STREAMS, Reason.NOTHING_RELIES]


def test_work_that_somebody_has_waited_for_is_no_longer_held() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("hold", SECOND, 0), ("stream", SECOND, 1), ("stream", FIRST, 0)]
    assert reasons(needed_synchronizations(program(*rows), used())) == [Reason.NOTHING_RELIES, Reason.NOTHING_RELIES]


def test_what_comes_before_held_work_on_the_gpu_needs_no_wait() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("record", FIRST, 0), ("order", SECOND, 0), ("hold", SECOND, 0),
                       ("stream", FIRST, 0)]  # fmt: skip
    assert reasons(needed_synchronizations(program(*rows), used())) == [Reason.NOTHING_RELIES]
    same: list[Row] = [("work", FIRST, 0), ("hold", FIRST, 0), ("work", FIRST, 0), ("stream", FIRST, 0)]
    assert reasons(needed_synchronizations(program(*same), used())) == [Reason.NOTHING_RELIES]


def test_an_event_orders_streams_without_a_wait() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("record", FIRST, 0), ("device", LEGACY, 0), ("order", SECOND, 0),
                       ("work", SECOND, 0)]  # fmt: skip
    assert reasons(needed_synchronizations(program(*rows), used())) == [Reason.NOTHING_RELIES]


def test_the_legacy_stream_is_ordered_with_blocking_streams_alone() -> None:
    for stream, expected in ((BLOCKING, Reason.NOTHING_RELIES), (FIRST, Reason.ORDERS_STREAMS)):
        rows: list[Row] = [("work", stream, 0), ("stream", stream, 0), ("work", LEGACY, 0)]
        assert reasons(needed_synchronizations(program(*rows), used())) == [expected]


def test_memory_that_could_not_be_watched_needs_the_first_wait() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0)]
    found = needed_synchronizations(program(*rows), used((0, 0, Role.UNWATCHED)))
    assert reasons(found) == [Reason.NOT_WATCHED, Reason.NOTHING_RELIES]


def test_memory_that_is_given_up_needs_the_last_wait_before() -> None:
    """What is used later may rely on that wait too, and needs none that follow."""
    rows = program(("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0))
    between = int(rows.end[2] + rows.start[3]) // 2
    found = needed_synchronizations(rows, used((0, between, Role.GIVEN_UP)))
    assert reasons(found) == [Reason.LATER_COVERS, Reason.NOT_WATCHED, Reason.NOTHING_RELIES]


def test_what_may_come_at_any_time_may_come_before_the_first_use_that_was_seen() -> None:
    rows = program(("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0))
    for surer, reason in ((Role.UNWATCHED, Reason.NOT_WATCHED), (Role.HOST_FUNCTION, Reason.HOST_FUNCTION)):
        found = needed_synchronizations(rows, used((0, 0, surer), (0, 500, Role.RESULT)))
        assert found.reason.tolist()[1:] == [reason, Reason.NOTHING_RELIES]


def test_work_that_another_process_may_use_needs_the_first_wait() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0)]
    found = needed_synchronizations(program(*rows), used((0, 0, Role.SHARED)))
    assert reasons(found) == [Reason.SHARED_MEMORY, Reason.NOTHING_RELIES]


def test_what_this_process_relies_on_itself_is_not_there_for_another() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("work", SECOND, 0), ("stream", SECOND, 0)]
    shared = ((0, 0, Role.SHARED), (2, 0, Role.SHARED))
    assert reasons(needed_synchronizations(program(*rows), used(*shared))) == [
        Reason.ORDERS_STREAMS,
        Reason.SHARED_MEMORY,
    ]
    for surer, reason in ((Role.UNWATCHED, Reason.NOT_WATCHED), (Role.HOST_FUNCTION, Reason.HOST_FUNCTION)):
        found = needed_synchronizations(program(*rows), used(*shared, (2, 0, surer)))
        assert reasons(found) == [Reason.ORDERS_STREAMS, reason]


def test_a_wait_that_another_process_may_need_is_not_only_timing() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0)]
    clocks = clock_reads((0, 30, Comparison.COMPARED))
    found = needed_synchronizations(program(*rows), used((0, 0, Role.SHARED)), clocks)
    assert reasons(found) == [Reason.SHARED_MEMORY]


def test_a_clock_on_both_sides_needs_the_wait_between() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0)]
    for comparison, expected in (
        (Comparison.COMPARED, Reason.HOST_TIMER),
        (Comparison.MAYBE_COMPARED, Reason.MAYBE_TIMER),
        (Comparison.NOT_COMPARED, Reason.NOTHING_RELIES),
    ):
        clocks = clock_reads((0, 30, comparison))
        assert reasons(needed_synchronizations(program(*rows), used(), clocks)) == [expected]


def test_a_wait_is_needed_only_for_timing_if_nothing_else_relies_on_it() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("work", SECOND, 0), ("stream", SECOND, 0)]
    clocks = clock_reads((0, 18, Comparison.COMPARED), (0, 38, Comparison.COMPARED))
    found = needed_synchronizations(program(*rows), used(), clocks)
    assert reasons(found) == [Reason.ORDERS_STREAMS, Reason.HOST_TIMER]


def test_a_timer_that_reads_the_processors_counter_is_told_apart_if_it_reads_first() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0)]
    clock, counter = (0, 31, Comparison.COMPARED), (0, 30, Comparison.COMPARED)
    assert reasons(needed_synchronizations(program(*rows), used(), clock_reads(clock, counters=(counter,)))) == [
        Reason.COUNTER_TIMER
    ]
    assert reasons(needed_synchronizations(program(*rows), used(), clock_reads(counter, counters=(clock,)))) == [
        Reason.HOST_TIMER
    ]


def test_a_clock_read_by_another_thread_may_time_a_wait() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0)]
    clocks = clock_reads((1, 30, Comparison.COMPARED))
    assert reasons(needed_synchronizations(program(*rows), used(), clocks)) == [Reason.MAYBE_TIMER]


def test_a_use_comes_after_the_clock_that_its_thread_reads_between_the_wait_and_it() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0)]  # the wait ends at 15
    uses = used((0, 20, Role.RESULT), (0, 40, Role.RESULT))
    credited = np.array([[0, 1], [1, 1]])

    def after(thread: int, time: int, comparison: Comparison = Comparison.COMPARED) -> list[bool]:
        clocks = clock_reads((thread, time, comparison))
        found: list[bool] = uses_after_clocks(credited, program(*rows), uses, clocks).tolist()
        return found

    assert after(0, 17) == after(0, 17, Comparison.MAYBE_COMPARED) == [True, True]
    assert after(0, 30) == [False, True]
    assert after(0, 12) == after(0, 50) == [False, False]
    assert after(1, 17) == after(0, 17, Comparison.NOT_COMPARED) == [False, False]


@pytest.mark.parametrize("role", [Role.TIMING, Role.ANSWER])
def test_a_use_comes_after_what_the_program_asks_about_the_work_of_the_same_wait(role: Role) -> None:
    credited = np.array([[0, 1], [1, 1], [2, 1], [3, 4]])
    uses = used((0, 20, Role.RESULT), (0, 40, Role.RESULT), (0, 30, role), (3, 50, Role.RESULT))
    assert uses_after_questions(credited, uses).tolist() == [False, True, False, False]


def test_a_private_wait_is_always_needed() -> None:
    assert reasons(needed_synchronizations(program(("private", LEGACY, 0)), used())) == [Reason.PRIVATE_CALL]


HANDED: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("work", FIRST, 0), ("stream", FIRST, 0)]
"""A thread waits for two results, one after the other."""


def test_another_thread_that_may_come_after_any_wait_comes_after_the_first() -> None:
    found = needed_synchronizations(program(*HANDED), used((0, 40, Role.RESULT), thread=1))
    assert reasons(found) == [Reason.HANDED_OVER, Reason.NOTHING_RELIES]


def test_a_thread_that_is_ordered_behind_a_wait_relies_on_that_alone() -> None:
    for upto, expected in (
        (36, [Reason.LATER_COVERS, Reason.RESULT_USED]),
        (16, [Reason.RESULT_USED, Reason.NOTHING_RELIES]),
    ):
        known = Handovers(np.array([1]), np.array([38]), np.array([[upto, 0]]))
        found = needed_synchronizations(program(*HANDED), used((0, 40, Role.RESULT), thread=1), handovers=known)
        assert reasons(found) == expected


def test_a_thread_that_waits_for_the_work_of_another_may_rely_on_either() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 1)]
    found = needed_synchronizations(program(*rows), used((0, 40, Role.RESULT), thread=1))
    assert reasons(found) == [Reason.HANDED_OVER, Reason.NOTHING_RELIES, Reason.HANDED_OVER]


def test_a_thread_may_rely_on_more_waits_of_several_threads_than_a_table_has_room_for() -> None:
    """The waits of the first thread fill the room for needs to its last row; the second thread's is the next."""
    waits: list[Row] = [("stream", FIRST, 0)] * (FIRST_ROOM - 1)
    rows: list[Row] = [("work", FIRST, 2), *waits, ("stream", FIRST, 1)]
    found = needed_synchronizations(program(*rows), used((0, 10 * len(rows), Role.RESULT), thread=3))
    assert reasons(found) == [Reason.HANDED_OVER] * (len(waits) + 1)


def test_work_of_another_thread_may_come_after_any_wait_that_was_the_first_for_some_work() -> None:
    rows: list[Row] = [*HANDED, ("stream", FIRST, 0), ("work", SECOND, 1)]
    ordered, again = Reason.ORDERS_STREAMS, Reason.NOTHING_RELIES
    assert reasons(needed_synchronizations(program(*rows), used()))[:2] == [ordered, ordered]
    for upto, expected in (
        (46, [again, Reason.LATER_COVERS, ordered]),
        (36, [again, ordered, again]),
        (16, [ordered, ordered, again]),
    ):
        known = Handovers(np.array([1]), np.array([48]), np.array([[upto, 0]]))
        assert reasons(needed_synchronizations(program(*rows), used(), handovers=known)) == expected


def test_a_second_thread_that_uses_a_result_may_rely_on_an_earlier_wait_than_the_first_one() -> None:
    first, second = used((0, 40, Role.RESULT)), used((0, 50, Role.RESULT), thread=1)
    both = Uses(*(np.concatenate(pair) for pair in zip(
        (first.operation, first.time, first.role, first.thread),
        (second.operation, second.time, second.role, second.thread),
        strict=True,
    )))  # fmt: skip
    assert reasons(needed_synchronizations(program(*HANDED), first)) == [Reason.LATER_COVERS, Reason.RESULT_USED]
    assert reasons(needed_synchronizations(program(*HANDED), both)) == [Reason.RESULT_USED, Reason.NOTHING_RELIES]


def test_nothing_is_known_of_a_thread_that_handed_nothing_over() -> None:
    rows: list[Row] = [("work", FIRST, 0), ("stream", FIRST, 2), ("stream", FIRST, 2)]
    known = Handovers(np.array([1]), np.array([38]), np.array([[36, 0]]))
    found = needed_synchronizations(program(*rows), used((0, 40, Role.RESULT), thread=1), handovers=known)
    assert reasons(found) == [Reason.HANDED_OVER, Reason.HANDED_OVER]
