"""When the work of many streams ends: against a plain model, and with work that grows as the rows do."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.device import Action
from ffm.model.gpu_times import kernels, simulated_gpu, stream_ends
from ffm.model.gpu_times.simulated_gpu import Trace
from ffm.model.gpu_times.stream_ends import (
    forget_unnamed,
    latest,
    list_pending,
    ordered,
    set_end,
    stream_that_ends_last,
    streams_of,
    unlist_pending,
)

CHANGES = st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 30)), max_size=40)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=7), CHANGES)
def test_the_latest_end_is_that_of_all_streams_of_a_process(owners: list[int], changes: list[tuple[int, int]]) -> None:
    streams = streams_of(np.array(owners), 3)
    apart = [stream % 3 == 1 for stream in range(len(owners))]
    ends: dict[tuple[int, int], int] = {}
    for number, end in changes:
        stream = min(number, len(owners) - 1)
        process = owners[stream] if stream >= 0 else end % 3
        set_end(streams, process, stream, stream >= 0 and apart[stream], end)
        ends[process, stream] = end
    for process in range(3):
        mine = {stream: end for (owner, stream), end in ends.items() if owner == process}
        assert latest(streams, process) == max(mine.values(), default=0)
        together = [end for stream, end in mine.items() if stream < 0 or not apart[stream]]
        assert ordered(streams, process) == max(together, default=0)
        forget_unnamed(streams, process)
        named = {stream: end for stream, end in mine.items() if stream >= 0}
        assert latest(streams, process) == max(named.values(), default=0)
        if latest(streams, process):
            assert named[stream_that_ends_last(streams, streams.ends, process)] == max(named.values())


def test_work_that_nothing_has_waited_for_is_listed_once_and_by_order() -> None:
    streams, last = streams_of(np.array([0, 1, 0, 0]), 2), np.array([7, 7, 7, 7])
    for process, stream, apart in ((0, 0, False), (0, 2, True), (0, 0, False), (1, 1, False), (0, 3, False)):
        list_pending(streams, process, stream, apart)
    unlist_pending(streams, last, 0)
    assert last.tolist() == [-1, 7, 7, -1]
    assert not streams.is_pending[[0, 3]].any()
    assert streams.is_pending[[1, 2]].all()
    unlist_pending(streams, last, 1)
    assert last.tolist() == [-1, 7, -1, -1]


def steps_of(threads: int) -> float:
    """Return the executed lines for each row of a process whose threads launch on streams of their own, and wait."""
    rows = 2 * threads
    action = np.tile(np.array([Action.ENQUEUE, Action.WAIT_CONTEXT], np.uint8), threads)
    launches = action == Action.ENQUEUE
    thread = np.repeat(np.arange(threads, dtype=np.int32), 2)
    # In rounds: all threads launch, and then all wait, which each time is for all work.
    start = np.where(launches, thread * 20, threads * 20 + thread * 30).astype(np.int64)
    trace = Trace(
        order=np.argsort(start, kind="stable"),
        thread=thread,
        start=start,
        duration=np.where(launches, 10, 25).astype(np.int64),
        wait=np.where(launches, 0, 20).astype(np.int64),
        site=np.zeros(rows, np.int32),
        action=action,
        stream=np.where(launches, thread, -1).astype(np.int32),
        event=np.full(rows, -1, np.int32),
        copied=np.zeros(rows, np.int64),
        after_wait=np.zeros(0, np.int32),
        process_of_thread=np.zeros(threads, np.int32),
        legacy=np.full(1, -1, np.int32),
        apart=np.zeros(threads + 1, np.bool_),
        gpu_of_stream=np.zeros(threads + 1, np.int32),
        first_gpu=np.array([0, 1], np.int32),
        events=0,
    )
    short, long = np.empty((2, rows), np.int32), np.empty((2, 0), np.int64)
    fitted = kernels.Fitted(np.full(rows, 5000), *short, *long, np.zeros(1, np.bool_))
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename not in (kernels.__file__, simulated_gpu.__file__, stream_ends.__file__):
            return None
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        kernels.fit(trace, kernels.Rules(5, 2, np.full(rows, 30), np.full(1, 30), 0), fitted)
    finally:
        sys.settrace(before)
    return steps / rows


def test_ten_thousand_threads_take_hardly_more_work_for_each_row_than_a_hundred() -> None:
    """What is left is the depth of a tree: 14 for 7."""
    assert steps_of(10_000) < 2 * steps_of(100)
