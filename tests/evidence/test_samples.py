"""What other threads did between the calls of one, by samples."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ffm.evidence.samples import work_meanwhile
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.samples import Samples

CALLER, WORKER, HELPER = 0, 1, 2
CALLS = {
    "process": np.zeros(3, np.int64),
    "thread": np.full(3, CALLER, np.int64),
    "start": np.array([100, 200, 300], np.uint64),
    "duration": np.array([10, 10, 10], np.uint64),
}
"""The first thread is between calls from 110 to 200, from 210 to 300, and after 310."""


def meanwhile(*samples: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Return (row, sample, nanoseconds) of samples (thread, time, nanoseconds)."""
    thread, time, nanoseconds = np.array(samples, np.int64).T
    nothing = np.zeros(len(samples), np.int64)
    recording = SimpleNamespace(samples=Samples(thread, time, nothing, nanoseconds, nothing, []))
    found = work_meanwhile(cast(Recording, recording), 0, cast(Any, CALLS))
    return list(zip(found.row.tolist(), found.sample.tolist(), found.nanoseconds.tolist(), strict=True))


def test_work_of_other_threads_is_between_the_calls_around_it() -> None:
    assert meanwhile((WORKER, 150, 20), (WORKER, 290, 20)) == [(0, 0, 20), (1, 1, 20)]


def test_work_before_a_call_ended_does_not_count() -> None:
    assert meanwhile((WORKER, 120, 20)) == [(0, 0, 10)]


@pytest.mark.parametrize("time", [50, 105, 205, 350])
def test_work_in_calls_before_the_first_and_after_the_last_is_between_none(time: int) -> None:
    assert meanwhile((WORKER, time, 5)) == []


def test_time_in_which_several_worked_counts_once() -> None:
    assert meanwhile((WORKER, 150, 20), (HELPER, 150, 20)) == [(0, 0, 10), (0, 1, 10)]


def test_time_in_which_the_caller_worked_is_its_own() -> None:
    assert meanwhile((CALLER, 160, 20), (WORKER, 150, 20)) == [(0, 1, 10)]
