"""Threads that never call the driver: their number does not affect how long judging a wait takes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

from ffm.model.necessity.program import (
    NO_CLOCKS,
    Action,
    Handovers,
    Operations,
    Role,
    Scope,
    StreamKind,
    Streams,
    Uses,
)
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import Necessity, needed_synchronizations


def judged(waits: int, others: int) -> Necessity:
    """One thread does work and waits for it, so often. Each time one of the others, which it starts then, uses what the
    work wrote.
    """
    count = 2 * waits
    start = 10 * np.arange(count, dtype=np.int64)
    scope = np.tile(np.array([Scope.NONE, Scope.STREAM], np.uint8), waits)
    operations = Operations(
        start=start,
        end=start + 5,
        thread=np.zeros(count, np.int64),
        scope=scope,
        judged=scope != Scope.NONE,
        stream=np.zeros(count, np.int64),
        context=np.zeros(count, np.int64),
        event=np.full(count, -1, np.int64),
        action=np.tile(np.array([Action.WORK, Action.NOTHING], np.uint8), waits),
        streams=Streams(np.array([StreamKind.LEGACY], np.uint8), np.zeros(1, np.int64)),
    )
    started_at = operations.end[1::2] + 1
    reader = 1 + np.arange(waits) % others
    known = np.full((waits, others + 1), -1, np.int64)
    known[:, 0] = started_at
    uses = Uses(np.arange(0, count, 2), started_at + 1, np.full(waits, Role.RESULT, np.uint8), reader)
    return needed_synchronizations(operations, uses, NO_CLOCKS, Handovers(reader, started_at, known))


def steps(waits: int, others: int) -> int:
    """Return how many lines of the rules are executed."""
    executed = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        if "necessity" not in frame.f_code.co_filename:
            return None
        executed += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        judged(waits, others)
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("others", [6, 200])
def test_waits_for_what_other_threads_use_are_required(others: int) -> None:
    assert judged(6, others).reason[1::2].tolist() == [Reason.RESULT_USED] * 6


def test_a_wait_takes_as_many_steps_however_many_threads_never_call_the_driver() -> None:
    assert steps(12, 100) - steps(6, 100) == steps(12, 50) - steps(6, 50)
