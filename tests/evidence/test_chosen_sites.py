"""What must be watched to know everything about chosen waits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.chosen_sites import _covered_first
from ffm.model.necessity.program import Action, Operations, Scope, StreamKind, Streams


def operations(rows: list[tuple[int, Scope, Action, int]]) -> Operations:
    """Operations one after another, each with its thread, scope, action and stream; all streams are independent."""
    thread, scope, action, stream = (np.array(column) for column in zip(*rows, strict=True))
    count, streams = len(rows), int(stream.max()) + 1
    none = np.zeros(count, np.int64)
    return Operations(
        start=np.arange(count) * 10,
        end=np.arange(count) * 10 + 5,
        thread=thread,
        scope=scope.astype(np.uint8),
        judged=scope != Scope.NONE,
        stream=stream,
        context=none,
        event=none - 1,
        action=action.astype(np.uint8),
        streams=Streams(np.full(streams, StreamKind.INDEPENDENT, np.uint8), np.zeros(streams, np.int64)),
    )


def first(rows: list[tuple[int, Scope, Action, int]], chosen: set[int]) -> list[int]:
    among: NDArray[np.bool_] = np.isin(np.arange(len(rows)), list(chosen))
    return np.flatnonzero(_covered_first(operations(rows), among)).tolist()


WORK, WHOLE, STREAM = (
    (0, Scope.NONE, Action.WORK, 0),
    (0, Scope.CONTEXT, Action.NOTHING, 0),
    (0, Scope.STREAM, Action.NOTHING, 0),
)


def test_a_wait_needs_what_came_since_the_wait_before_it() -> None:
    rows = [WORK, WHOLE, WORK, WHOLE, WORK]
    assert first(rows, {1}) == [0]
    assert first(rows, {3}) == [2]
    assert first(rows, {1, 3}) == [0, 2]


def test_a_wait_for_another_stream_does_not_take_it_over() -> None:
    rows = [WORK, (0, Scope.STREAM, Action.NOTHING, 1), WHOLE]
    assert first(rows, {2}) == [0]
    assert first([WORK, STREAM, WHOLE], {2}) == []


def test_what_another_thread_waited_for_must_be_watched() -> None:
    rows = [WORK, WHOLE, (1, Scope.CONTEXT, Action.NOTHING, 0)]
    assert first(rows, {2}) == [0]


def test_a_transfer_that_waits_for_itself() -> None:
    both = (0, Scope.STREAM, Action.WORK, 0)
    assert first([both, both], {1}) == [1]
