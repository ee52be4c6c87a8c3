"""What stage 4 records."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.stages.sync_use import UNSEEN, functions_to_record, measured_before

RECORDS = "cuEventRecord"


def recorded_for(synchronization: str, used: str = "cuMemcpyDtoHAsync_v2") -> list[str]:
    numbers = {function.name: number for number, function in enumerate(load_catalogue().functions)}
    return functions_to_record(
        {
            "function": np.array([numbers[used]], np.int32),
            "synchronization_function": np.array([numbers[synchronization]], np.int32),
        }
    )


@pytest.mark.parametrize("synchronization", ["cuEventSynchronize", "cuEventQuery"])
def test_where_an_event_is_waited_for_its_records_are_recorded(synchronization: str) -> None:
    """Otherwise no wait is known to cover a launch, whose memory stays watched: each turn of a loop adds to it."""
    assert RECORDS in recorded_for(synchronization)


def test_where_launches_are_watched_what_orders_streams_is_recorded() -> None:
    """The same: a wait for one stream covers what the device orders before it. What ends a stream or an event ends
    what is known of its handle.
    """
    ordering = {RECORDS, "cuStreamWaitEvent", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuCtxDestroy_v2"}
    assert ordering <= set(recorded_for("cuStreamSynchronize", "cuLaunchKernel"))


def test_events_that_nothing_waits_for_are_not_recorded() -> None:
    recorded = recorded_for("cuStreamSynchronize")
    assert {"cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"} <= set(recorded)
    assert not {function.name for function in load_catalogue().of_kind(Kind.ORDER)} & set(recorded)


def test_a_use_that_was_not_watched_comes_as_late_as_the_watched_one_before_it() -> None:
    identity = {
        "process": np.zeros(7, np.int32),
        "thread": np.array([0, 0, 0, 0, 1, 0, 0], np.int32),
        "stack": np.array([5, 5, 5, 5, 5, 6, 6], np.int32),
        "occurrence": np.array([3, 0, 1, 2, 0, 0, 1], np.int64),
    }
    first_use = np.array([UNSEEN, 40, UNSEEN, 70, UNSEEN, UNSEEN, 90], np.int64)
    assert measured_before(identity, first_use).tolist() == [70, 40, 40, 70, UNSEEN, 90, 90]


def test_no_use_takes_its_time_from_another_where_there_is_none() -> None:
    identity = {name: np.empty(0, np.int64) for name in ("process", "thread", "stack", "occurrence")}
    assert measured_before(identity, np.empty(0, np.int64)).tolist() == []
