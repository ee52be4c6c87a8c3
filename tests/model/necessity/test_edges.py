"""What is judged of a portion of a run holds in the whole run."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.edges import Stretches, judgeable
from ffm.model.necessity.program import Operations, Role, Scope, Uses
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import needed_synchronizations
from tests.examples import examples
from tests.model.necessity.test_necessity import BLOCKING, FIRST, LEGACY, SECOND, Row, program, used

REMOVABLE = (Reason.NOTHING_RELIES, Reason.LATER_COVERS)


def stretch(begin: int, end: int, *, from_the_start: bool = False, to_the_end: bool = False) -> Stretches:
    times = np.array([begin], np.int64), np.array([end], np.int64)
    return Stretches(
        begin=times[0],
        settled=times[0],
        end=times[1],
        judged_begin=times[0],
        judged_end=times[1],
        from_the_start=np.array([from_the_start]),
        to_the_end=np.array([to_the_end]),
    )


def judged(*rows: Row, window: Stretches | None = None) -> list[int]:
    """Return the rows that are judged if all of a program is measured, of which more comes before and after."""
    operations = program(*rows)
    window = window or stretch(0, 10 * len(rows))
    found = judgeable(operations, window, np.ones(len(rows), np.bool_)) & operations.judged
    return np.flatnonzero(found).tolist()


def test_the_first_and_the_last_wait_for_everything_are_not_judged() -> None:
    assert judged(("device", LEGACY, 0), ("work", FIRST, 0), ("device", LEGACY, 0), ("device", LEGACY, 0)) == [2]


def test_a_wait_for_a_stream_lies_between_two_for_that_stream() -> None:
    rows = [("stream", FIRST, 0), ("stream", SECOND, 0), ("work", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0)]
    assert judged(*rows) == [3]


def test_events_between_streams_leave_only_waits_for_everything() -> None:
    rows = [("stream", FIRST, 0), ("order", FIRST, 0), ("stream", FIRST, 0), ("stream", FIRST, 0)]
    assert judged(*rows) == []


def test_waits_of_another_thread_do_not_help() -> None:
    assert judged(("device", LEGACY, 1), ("device", LEGACY, 0), ("device", LEGACY, 1)) == []


def test_nothing_comes_before_the_start_or_after_the_end_of_the_run() -> None:
    rows = (("device", LEGACY, 0), ("work", FIRST, 0), ("device", LEGACY, 0))
    assert judged(*rows, window=stretch(0, 30, from_the_start=True)) == [0]
    assert judged(*rows, window=stretch(0, 30, from_the_start=True, to_the_end=True)) == [0, 2]


def test_a_call_that_ends_after_the_stretch_is_not_judged() -> None:
    rows = (("device", LEGACY, 0), ("device", LEGACY, 0), ("device", LEGACY, 0))
    assert judged(*rows, window=stretch(0, 13, from_the_start=True, to_the_end=True)) == [0]


def part(operations: Operations, rows: NDArray[np.int64]) -> Operations:
    columns = {
        field.name: getattr(operations, field.name)[rows]
        for field in dataclasses.fields(operations)
        if field.name != "streams"
    }
    return dataclasses.replace(operations, **columns)


def credited(operations: Operations, uses: Uses) -> set[int]:
    """Return the uses that rely on a wait."""
    return set(needed_synchronizations(operations, uses).credited[:, 0].tolist())


ROWS = st.tuples(
    st.sampled_from(["work", "work", "stream", "device", "record", "order", "event"]),
    st.sampled_from([LEGACY, BLOCKING, FIRST, SECOND]),
    st.just(0),
)


@settings(max_examples=examples(200))
@given(st.lists(ROWS, min_size=4, max_size=24), st.data())
def test_without_what_a_portion_calls_unnecessary_all_uses_rely_on_a_wait_that_stays(
    rows: list[Row], data: st.DataObject
) -> None:
    operations = program(*rows)
    works = [row for row, (what, _, _) in enumerate(rows) if what == "work"]
    last = 10 * len(rows) + 5
    pairs = st.tuples(st.sampled_from(works or [0]), st.integers(0, last))
    chosen = data.draw(st.lists(pairs, max_size=6)) if works else []
    uses = used(*((row, max(time, 10 * row + 6), Role.RESULT) for row, time in chosen))
    first = data.draw(st.integers(0, len(rows) - 1))
    end = data.draw(st.integers(first + 1, len(rows)))

    inside = np.arange(first, end)
    seen = np.isin(uses.operation, inside) & ((uses.time < 10 * end) | (end == len(rows)))
    own = Uses(uses.operation[seen] - first, uses.time[seen], uses.role[seen], uses.thread[seen])
    measured = part(operations, inside)
    window = stretch(10 * first, 10 * end, from_the_start=first == 0, to_the_end=end == len(rows))
    reason = needed_synchronizations(measured, own).reason
    removed = inside[np.isin(reason, REMOVABLE) & judgeable(measured, window, np.ones(len(inside), np.bool_))]

    scope = operations.scope.copy()
    scope[removed] = Scope.NONE
    remaining = dataclasses.replace(operations, scope=scope, judged=operations.judged & (scope != Scope.NONE))
    assert credited(operations, uses) <= credited(remaining, uses)
