"""How long threads waited for a processor, from what the collector records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ffm.evidence.threads.processor_times import delayed_by_own, recorded_processor_times
from ffm.instrument.recording.layout import constant, record_type
from ffm.results.documents.measured import ProcessorTimes


def recording(*times: tuple[int, int, int, int, int, int]) -> Any:
    """Make a recording of (time, processor time of the process, ran, delayed, number, processors)."""
    layout = record_type("ffm_processor_time")
    return SimpleNamespace(processor_times=np.array([(*one, *[0] * (len(layout) - len(one))) for one in times], layout))


def opened(time: int, ran: int, processors: int) -> tuple[int, int, int, int, int, int]:
    return time, ran, 0, 0, constant("FFM_NO_THREAD"), processors


def test_what_threads_waited_counts_by_what_their_process_had() -> None:
    """The first process has three quarters of two processors from 100 to 200, and the second one all of one."""
    found = recorded_processor_times(
        [
            recording(opened(100, 1000, 2), (150, 1080, 40, 16, 1, 0), (200, 1150, 60, 20, 0, 0)),
            recording(opened(100, 0, 1), (200, 100, 90, 7, 0, 0)),
        ]
    )
    assert found.thread == [0, 1, 0]
    assert found.delayed == [20, 16, 7]
    assert found.own == pytest.approx([0.75, 0.75, 1.0])
    columns = {"process": np.array([0, 0, 0, 1]), "thread": np.array([0, 1, 4, 0])}
    assert delayed_by_own(found, columns, np.arange(4, dtype=np.int32)).tolist() == [15, 12, -1, 7]


def test_of_a_thread_the_last_record_counts() -> None:
    found = recorded_processor_times([recording(opened(0, 0, 1), (10, 5, 2, 3, 0, 0), (20, 20, 4, 8, 0, 0))])
    assert (found.delayed, found.own) == ([8], [1.0])


@pytest.mark.parametrize("times", [[], [opened(100, 1000, 2)]])
def test_a_process_without_records_of_threads_has_none(times: list[tuple[int, int, int, int, int, int]]) -> None:
    assert recorded_processor_times([recording(*times)]) == ProcessorTimes()
