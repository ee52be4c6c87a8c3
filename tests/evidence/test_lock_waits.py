"""Which threads waited for what others release, from what the collector records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ffm.evidence.threads.lock_waits import lock_waits_of_rows, recorded_lock_waits
from ffm.instrument.recording.layout import record_type
from ffm.results.columnar.columns import Columns


def recording(*waits: tuple[int, int, int, int]) -> Any:
    """Make a recording of (since, released, waiter, releaser)."""
    return SimpleNamespace(lock_waits=np.array(list(waits), record_type("ffm_lock_wait")))


def columns(*starts: tuple[int, int, list[int]]) -> Columns:
    """Make operations of 10 ns each of (process, thread, starts)."""
    rows = [(process, thread, start) for process, thread, times in starts for start in times]
    process, thread, start = np.array(rows, np.int64).T
    return {
        "process": process.astype(np.int32),
        "thread": thread.astype(np.int32),
        "start": start,
        "duration": np.full(len(rows), 10, np.int64),
    }


def test_a_wait_lies_after_the_rows_before_it() -> None:
    recorded = recorded_lock_waits([recording((250, 370, 0, 1)), recording((130, 160, 1, 0))])
    assert (recorded.process, recorded.waiter, recorded.releaser) == ([0, 1], [0, 1], [1, 0])
    table = columns((0, 0, [100, 200, 400]), (0, 1, [300]), (1, 0, [110]), (1, 1, [120]))
    waits = lock_waits_of_rows(recorded, table, np.array([0, 0, 0, 1, 2, 3], np.int32))
    assert waits.row.tolist() == [1, 5]
    assert waits.after.tolist() == [40, 0]
    assert waits.by.tolist() == [3, 4]
    assert waits.released.tolist() == [60, 40]


def test_waits_of_threads_without_earlier_rows_are_passed_over() -> None:
    recorded = recorded_lock_waits([recording((50, 370, 0, 1), (250, 290, 0, 1), (250, 370, 0, 7))])
    table = columns((0, 0, [100, 200, 400]), (0, 1, [300]))
    assert not len(lock_waits_of_rows(recorded, table, np.array([0, 0, 0, 1], np.int32)).row)


def test_waits_are_in_the_order_of_their_ends() -> None:
    recorded = recorded_lock_waits([recording((50, 370, 0, 1), (60, 290, 1, 0))])
    assert recorded.released == [290, 370]
