"""Waits for one of a process's devices: what they wait for, in the graph, in the inferred GPU times and in replays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from ffm.model.device import IDLE, Action, DeviceWork, stream_of_device
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.pauses import PAUSE_NS
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.graph import build_graph
from tests.examples import examples
from tests.model.compiling import all_compiled
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, programs, traced

MS = 1_000_000


def launch(stream: int, gpu: int) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu * MS, stream=stream)


def wait(stream: int) -> Call:
    return Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=stream, problem=SYNC)


def on_own_devices(calls: list[Call], *, whole: bool = True) -> tuple[Timeline, DeviceWork, list[int]]:
    """Return a program each of whose streams is on a device of its own; if `whole`, it waits for devices in place of
    streams. Also the GPU's true times.
    """
    timeline, work, gpu = traced(calls)
    action = work.action
    if whole:
        action = np.where(action == Action.WAIT_STREAM, Action.WAIT_CONTEXT, action).astype(np.uint8)
    devices = np.arange(work.streams, dtype=np.int32)
    nothing = np.full(1, -1, np.int32)
    return timeline, dataclasses.replace(work, action=action, stream_device=devices, legacy=nothing), gpu.tolist()


TURNS = [launch(1, 5), launch(2, 20), wait(1), launch(1, 5), wait(1), wait(2)]
"""Two devices: 5 ms of work on the first twice, each waited for, beside 20 ms on the second."""


def test_a_wait_for_a_device_is_for_its_own_work() -> None:
    timeline, work, gpu = on_own_devices(TURNS)
    assert (timeline.wait // MS).tolist() == [0, 0, 5, 0, 5, 10]
    inference = given_gpu_times(timeline, work, np.array(gpu))
    graph = build_graph(timeline, work, inference, inference.likely)
    assert graph.cause.tolist() == [-1, -1, 0, -1, 3, 1]
    assert graph.waited.tolist() == timeline.wait.tolist()


def test_a_wait_for_a_device_bounds_no_work_of_another_one() -> None:
    timeline, work, gpu = on_own_devices(TURNS)
    gpu[3] -= PAUSE_NS  # that launch comes at the very moment in which its stream becomes idle: it could be queued
    assert infer_gpu_times(timeline, work).likely.gpu.tolist() == gpu


def test_a_wait_for_a_device_that_goes_moves_into_no_wait_for_another_one() -> None:
    """Without the first wait, the second one still waits for all 10 ms of its device, and nothing is won."""
    timeline, work, _ = on_own_devices(TURNS)
    replay = Replay(timeline, work, infer_gpu_times(timeline, work))
    removed = np.arange(len(timeline))
    assert replay.selected(removed == 2).likely_s == 0
    assert replay.selected(removed == 5).likely_s == 0.01


@given(programs(streams=3))
@settings(max_examples=examples(150), deadline=None)
def test_a_device_with_one_stream_is_waited_for_as_that_is(calls: list[Call]) -> None:
    check_alike(calls)


@given(programs(streams=3))
@settings(max_examples=examples(5), deadline=None)
@pytest.mark.thorough
def test_compiled_too(calls: list[Call]) -> None:
    with all_compiled():
        check_alike(calls)


def check_alike(calls: list[Call]) -> None:
    found = []
    for whole in (False, True):
        timeline, work, _ = on_own_devices(calls, whole=whole)
        inference = infer_gpu_times(timeline, work)
        graph = build_graph(timeline, work, inference, inference.likely)
        replay = Replay(timeline, work, inference)
        rows = np.arange(len(timeline))
        saved = [replay.selected(rows == row) for row in rows.tolist()] + [replay.selected(rows >= 0)]
        columns = [inference.likely.gpu, inference.slow.gpu, inference.fast.gpu, graph.cause, graph.waited]
        found.append(([column.tolist() for column in columns], saved))
    assert found[0] == found[1]


def test_a_stream_stands_for_its_device_where_the_process_has_several() -> None:
    stream_process, stream_device = np.array([0, 0, 0, 1]), np.array([0, 1, 1, 0])
    process, device = np.array([0, 0, 0, 0, 1, 2]), np.array([0, 1, 2, -1, 0, 0])
    assert stream_of_device(process, device, stream_process, stream_device).tolist() == [0, 1, IDLE, -1, -1, -1]


def test_devices_are_numbered_by_process() -> None:
    _, work, _ = traced([launch(3, 1)])
    processes, devices = np.array([2, 0, 2, 0], np.int32), np.array([1, 0, 0, 0], np.int32)
    legacy = np.full(3, -1, np.int32)
    work = dataclasses.replace(work, stream_process=processes, stream_device=devices, legacy=legacy)
    assert work.gpus.of_stream.tolist() == [3, 0, 2, 0, 0]
    assert work.gpus.first.tolist() == [0, 1, 2, 4]
