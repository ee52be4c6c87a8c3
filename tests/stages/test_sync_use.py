"""What stage 4 records."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import Kind, load_catalogue
from ffm.stages.sync_use import functions_to_record

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
