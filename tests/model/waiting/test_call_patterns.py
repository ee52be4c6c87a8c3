"""Patterns of calls that follow each other: polling, synchronous offload, consecutive transfers; figures by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.model.compiled import compiled
from ffm.model.device import Action, DeviceWork, Direction
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting import call_pattern_kernels
from ffm.model.waiting.call_patterns import consecutive_transfers, offloads, polling, unfinished_queries
from ffm.model.waiting.graph import Graph, build_graph
from tests.model.given_times import given_gpu_times
from tests.model.simulator import LEGACY, NON_BLOCKING, Call, Member, traced, traced_together

US = 1000

UP, DOWN, OTHER, NONE = Direction.TO_DEVICE, Direction.FROM_DEVICE, Direction.OTHER, Direction.NONE


def kernel(gpu: int, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, own=3 * US, gpu=gpu * US, gap=gap * US, stream=stream)


def copy(gpu: int, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.TRANSFER, own=5 * US, gpu=gpu * US, gap=gap * US, stream=stream)


def download(gpu: int, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=2 * US, gpu=gpu * US, stream=stream)


def wait(stream: int | None = None) -> Call:
    if stream is None:
        return Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=US)
    return Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, own=US, stream=stream)


def query(took: int) -> Call:
    return Call(Action.NONE, Kind.OTHER, own=took * US)


def run_of(calls: list[Call]) -> tuple[Timeline, DeviceWork, Graph]:
    timeline, work, gpu = traced(calls)
    inference = given_gpu_times(timeline, work, gpu)
    return timeline, work, build_graph(timeline, work, inference, inference.likely)


def asked(*objects: int) -> NDArray[np.int32]:
    """Return queries: object k found unfinished as k + 1, found done as -(k + 1), and 0 for no query."""
    given = np.array(objects, np.int64)
    return unfinished_queries(np.abs(given) - 1, given > 0)


def polled(calls: list[Call], *objects: int) -> tuple[int, int]:
    timeline, work, _ = run_of(calls)
    return polling(timeline, dataclasses.replace(work, asked=asked(*objects)))


def test_a_loop_of_queries_is_one_wait_and_lasts_as_long_as_the_failed_ones() -> None:
    assert polled([kernel(100), query(7), query(9), query(4)], 0, 1, 1, -1) == (1, 16 * US)


def test_a_query_that_succeeds_at_once_is_no_polling() -> None:
    assert polled([kernel(1, gap=50), query(7)], 0, -1) == (0, 0)


def test_loops_on_several_objects_are_counted_apart() -> None:
    calls = [kernel(100), query(7), query(9), query(4), query(6)]
    assert polled(calls, 0, 1, 2, 1, -2) == (2, (7 + 9 + 4) * US)


def test_after_a_success_and_after_a_wait_another_loop_begins() -> None:
    assert polled([kernel(100), query(7), query(9), query(4)], 0, 1, -1, 1) == (2, 11 * US)
    assert polled([kernel(100), query(7), wait(), query(4)], 0, 1, 0, 1) == (2, 11 * US)


def test_without_records_of_queries_there_is_no_polling() -> None:
    timeline, work, _ = run_of([kernel(100), query(7)])
    assert polling(timeline, work) == (0, 0)


def test_a_kernel_that_is_waited_for_at_once_is_synchronous_offload() -> None:
    assert offloads(*run_of([kernel(100), wait()])) == (1, 100 * US)


def test_a_download_alone_is_synchronous_offload_and_so_is_one_behind_its_kernel() -> None:
    assert offloads(*run_of([download(40)])) == (1, 40 * US)
    assert offloads(*run_of([kernel(100), download(40)])) == (1, 140 * US)


@pytest.mark.parametrize(
    "calls",
    [
        [kernel(100), kernel(50), wait()],
        [kernel(100), query(10), wait()],
        [kernel(100), kernel(50, stream=2), wait()],
        [kernel(1, gap=50), wait()],
        [wait()],
    ],
    ids=["two kernels", "another call", "another stream", "work that was over", "no work"],
)
def test_what_is_no_synchronous_offload(calls: list[Call]) -> None:
    assert offloads(*run_of(calls)) == (0, 0)


def test_only_work_that_the_wait_is_for_counts() -> None:
    others = [kernel(500, stream=NON_BLOCKING), kernel(100), wait(stream=1)]
    assert offloads(*run_of(others)) == (1, 100 * US)


def test_the_legacy_stream_does_not_wait_for_streams_that_it_does_not_order() -> None:
    aside = kernel(500, stream=NON_BLOCKING)
    assert offloads(*run_of([aside, download(40, stream=LEGACY)])) == (1, 40 * US)
    assert offloads(*run_of([aside, download(40, stream=LEGACY), wait()])) == (1, 40 * US)
    assert offloads(*run_of([kernel(100), aside, download(40, stream=LEGACY)])) == (0, 0)
    assert offloads(*run_of([kernel(100), download(40, stream=LEGACY)])) == (1, 140 * US)


def test_what_was_waited_for_counts_no_more() -> None:
    assert offloads(*run_of([kernel(100), wait(stream=1), kernel(30), wait(), download(20)])) == (3, 150 * US)


def test_an_event_between_kernel_and_wait_is_passed_over() -> None:
    record = Call(Action.RECORD_EVENT, Kind.OTHER, own=US, stream=1, event=0)
    event = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, own=US, event=0)
    assert offloads(*run_of([kernel(100), record, event])) == (1, 100 * US)
    assert offloads(*run_of([kernel(50), kernel(100), record, event])) == (0, 0)


def test_work_of_another_process_is_not_waited_for() -> None:
    members = [Member(0, 0, [kernel(900, gap=900)]), Member(1, 0, [kernel(100), wait()])]
    timeline, work, gpu = traced_together(members)
    inference = given_gpu_times(timeline, work, gpu)
    graph = build_graph(timeline, work, inference, inference.likely)
    assert offloads(timeline, work, graph) == (1, 100 * US)


def test_synchronous_offload_is_the_same_compiled() -> None:
    timeline, work, graph = run_of([kernel(100), wait(), kernel(5, stream=2), download(40), kernel(8), wait(1)])
    rows = call_pattern_kernels.Rows(
        timeline.thread, work.action, work.stream, work.event, graph.gpu_begin, graph.gpu_end, graph.cause,
        work.process_of_thread, work.legacy, work.apart,
    )  # fmt: skip
    order = np.arange(len(timeline))
    found = compiled(call_pattern_kernels.offloads)(order, rows, work.streams, work.events)
    assert found == call_pattern_kernels.offloads(order, rows, work.streams, work.events) == (3, 148 * US)


def joined(calls: list[Call], *directions: Direction) -> tuple[int, int]:
    timeline, work, graph = run_of(calls)
    work = dataclasses.replace(work, direction=np.array(directions, np.uint8))
    return consecutive_transfers(timeline, work, graph)


def test_of_three_copies_in_a_row_two_could_be_joined_to_the_first() -> None:
    """20 and 30 ns on the GPU, and 5 ns of each call."""
    assert joined([copy(10), copy(20), copy(30), wait()], UP, UP, UP, NONE) == (2, (20 + 30 + 2 * 5) * US)


def test_time_in_which_the_call_waits_for_the_copy_counts_once() -> None:
    assert joined([download(10), download(20)], DOWN, DOWN) == (1, (20 + 2) * US)


@pytest.mark.parametrize(
    ("calls", "directions"),
    [
        ([copy(10), copy(20), wait()], (UP, DOWN, NONE)),
        ([copy(10), copy(20), wait()], (OTHER, OTHER, NONE)),
        ([copy(10), kernel(5), copy(20), wait()], (UP, NONE, UP, NONE)),
        ([kernel(90, stream=2), copy(10), copy(20), wait()], (NONE, UP, UP, NONE)),
        ([copy(10), kernel(90, stream=2), copy(20), wait()], (UP, NONE, UP, NONE)),
    ],
    ids=["other directions", "within the GPU", "a kernel between", "beside a kernel", "the second beside a kernel"],
)
def test_what_are_no_consecutive_transfers(calls: list[Call], directions: tuple[Direction, ...]) -> None:
    assert joined(calls, *directions) == (0, 0)


def test_between_consecutive_transfers_their_thread_waits_for_nobody() -> None:
    """As CASITA does not join transfers around a message, whether that had to wait or not."""
    timeline, work, graph = run_of([copy(10), query(4), copy(20), wait()])
    told = dataclasses.replace(
        work, direction=np.array([UP, NONE, UP, NONE], np.uint8), awaits=np.full(4, -1, np.int32)
    )
    assert consecutive_transfers(timeline, told, graph) == (0, 0)
    alone = dataclasses.replace(told, awaits=None)
    assert consecutive_transfers(timeline, alone, graph) == (1, 25 * US)


def test_consecutive_transfers_are_the_same_compiled_and_known_to_be_out_of_order() -> None:
    timeline, _, graph = run_of([copy(10), copy(20), kernel(4), copy(30), download(6), download(7), wait()])
    direction = np.array([UP, UP, NONE, UP, DOWN, DOWN, NONE], np.uint8)
    works = call_pattern_kernels.Works(
        timeline.thread, timeline.duration, timeline.wait, timeline.kind, direction, graph.gpu_begin, graph.gpu_end,
        np.zeros(0, np.int64),
    )  # fmt: skip
    rows = np.flatnonzero(graph.works)
    find = call_pattern_kernels.consecutive_transfers
    assert find(rows, works) == compiled(find)(rows, works)
    assert find(rows, works)[0] == 2
    assert find(rows, works)[2]
    assert not find(rows[::-1].copy(), works)[2]
