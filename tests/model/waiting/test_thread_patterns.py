"""Which pattern a wait for another thread or process is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ffm.model.device import Role
from ffm.model.waiting.meetings import recorded_meetings
from ffm.model.waiting.thread_patterns import Reason, find_thread_waits
from tests.model.meeting_ranks import BOTH, COMES, WAITS, At, Did, measured


@pytest.mark.parametrize(
    ("early", "late", "one_process", "expected"),
    [
        (BOTH, BOTH, False, Reason.COLLECTIVE),
        (BOTH, BOTH, True, Reason.BARRIER),
        (WAITS, COMES, False, Reason.SENDER),
        (BOTH, WAITS, False, Reason.RECEIVER),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["", "without encounters"])
def test_a_wait_is_named_by_what_both_do_where_they_meet(
    early: Role, late: Role, one_process: bool, expected: Reason, known: bool
) -> None:
    """One comes after 5 ns and the other one after 30, to the second of three encounters of both."""
    ranks = [
        [Did(5, at=[At(1, early)]), Did(1, at=[At(2, COMES)])],
        [Did(2, at=[At(0, COMES)]), Did(27, at=[At(1, late)])],
    ]
    timeline, work = measured(ranks)
    begun = timeline.start[-1]
    # Of a sender, `measured` lets only the one wait that comes to receive: the profiler saw this one wait.
    duration = np.where(np.arange(len(timeline)) == 0, begun + 1 - timeline.start, timeline.duration)
    timeline = dataclasses.replace(timeline, duration=duration, wait=np.array([begun - 5, 0, 0, 0]))
    work = dataclasses.replace(
        work,
        awaits=np.array([3, -1, -1, -1], np.int32),
        process_of_thread=np.zeros(2, np.int32) if one_process else work.process_of_thread,
        encounters=work.encounters if known else None,
    )
    assert work.awaits is not None
    met = recorded_meetings(timeline, work.awaits, work.process_of_thread)
    found = find_thread_waits(timeline, work, met)
    if not known:
        expected = Reason.BARRIER if one_process else Reason.COLLECTIVE
    assert found.reason.tolist() == [expected]
    assert found.waited.sum() == met.waited.sum() == begun - 5
    assert found.of(expected) == (1, begun - 5)
