"""Work that queues on the GPU: the pause before each piece, and streams that events or waits join."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.pauses import PAUSE_NS
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.graph import build_graph
from tests.model.simulator import SYNC, Call, traced

MICROSECOND = 1_000
PAUSE = 2 * MICROSECOND
WAIT = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=20 * MICROSECOND, problem=SYNC)


def launch(gpu: int, stream: int = 0) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu * MICROSECOND, stream=stream)


def record(stream: int, event: int = 0) -> Call:
    return Call(Action.RECORD_EVENT, Kind.OTHER, stream=stream, event=event)


def after(stream: int, event: int = 0) -> Call:
    return Call(Action.STREAM_WAIT_EVENT, Kind.OTHER, stream=stream, event=event)


def paused(calls: list[Call]) -> tuple[Timeline, DeviceWork]:
    """Return what a trace shows of kernels that pause for `PAUSE` before each that is queued."""
    timeline, work, gpu = traced(calls)
    late = np.zeros(len(calls), np.int64)
    queued = 0
    for row, call in enumerate(calls):
        if call.action == Action.ENQUEUE:
            queued += 1
        else:
            late[row], queued = max(queued - 1, 0) * PAUSE, 0
    waits = dataclasses.replace(
        timeline,
        start=timeline.start + np.cumsum(late) - late,
        duration=timeline.duration + late,
        wait=timeline.wait + late,
    )
    return waits, dataclasses.replace(work, measured=np.where(gpu > 0, gpu, -1))


def woken_late(timeline: Timeline, microseconds: list[int]) -> Timeline:
    """Return a timeline whose waits end later, each by so much."""
    late = np.zeros(len(timeline), np.int64)
    late[timeline.wait > 0] = np.array(microseconds) * MICROSECOND
    start = timeline.start + np.cumsum(late) - late
    return dataclasses.replace(timeline, start=start, duration=timeline.duration + late, wait=timeline.wait + late)


def test_measured_kernels_tell_how_long_the_gpu_pauses_between_them() -> None:
    timeline, work = paused([launch(100), WAIT] * 4 + [*[launch(100)] * 5, WAIT] * 4)
    work.measured[-6:] = -1
    timeline.site[-6:-1] = 99
    likely = infer_gpu_times(timeline, work).likely
    assert likely.pause == PAUSE
    assert likely.gpu[-6:-1].tolist() == [100 * MICROSECOND] * 5


def test_calls_that_left_the_gpu_idle_tell_nothing_of_its_pauses() -> None:
    slow_caller = dataclasses.replace(launch(100), gap=500 * MICROSECOND)
    timeline, work = paused([launch(100), WAIT] * 4 + [slow_caller, launch(100), WAIT] * 4)
    assert infer_gpu_times(timeline, work).likely.pause == PAUSE_NS


def test_threads_that_wake_up_at_any_time_tell_nothing_of_pauses() -> None:
    timeline, work = paused([launch(100), WAIT] * 4 + [launch(100), launch(100), WAIT] * 4)
    woken = woken_late(timeline, [0, 5, 5, 10, 10, 2, 30, 60])
    assert infer_gpu_times(woken, work).likely.pause == PAUSE_NS


def test_a_latency_that_some_waits_have_is_no_pause() -> None:
    """One wait of ten comes 25 us late, and each for two kernels 15 us: these may follow a longer sleep, too. Of many
    kernels, each pause takes too little of that to matter.
    """
    alone, two, many = [launch(100), WAIT], [launch(100), launch(100), WAIT], [*[launch(100)] * 50, WAIT]
    late = [*([0] * 9 + [25]) * 2, *[15] * 4]
    timeline, work = paused(alone * 20 + two * 4)
    assert infer_gpu_times(woken_late(timeline, late), work).likely.pause == PAUSE_NS
    timeline, work = paused(alone * 20 + many * 4)
    assert infer_gpu_times(woken_late(timeline, late), work).likely.pause == PAUSE + 15 * MICROSECOND // 49


def test_recorded_times_tell_the_pause_between_kernels() -> None:
    timeline, work = paused([*[launch(100)] * 5, WAIT] * 4)
    place = np.arange(len(timeline)) % 6
    turn = timeline.start[np.arange(len(timeline)) - place]
    began = np.where(place < 5, turn + place * (100 * MICROSECOND + PAUSE), -1)
    assert infer_gpu_times(timeline, dataclasses.replace(work, began=began)).likely.pause == PAUSE


def test_the_default_pause_is_no_work() -> None:
    timeline, work, _ = traced([*[launch(100)] * 5, WAIT])
    found = infer_gpu_times(timeline, work)
    assert found.likely.gpu.sum() == 500 * MICROSECOND - 4 * PAUSE_NS
    assert found.fast.gpu.sum() <= found.likely.gpu.sum() <= found.slow.gpu.sum() == 500 * MICROSECOND


def test_kernels_that_queue_because_a_wait_is_gone_pause() -> None:
    """Ten kernels of 100 us, each waited for, 20 us of the CPU between them. Without the waits, the GPU is idle only
    for the pauses.
    """
    timeline, work, gpu = traced([launch(100), WAIT] * 10)
    work = dataclasses.replace(work, measured=np.where(gpu > 0, gpu, -1))
    found = infer_gpu_times(timeline, work)
    assert found.likely.pause == PAUSE_NS
    removed = np.arange(len(timeline)) < len(timeline) - 1
    saved = Replay(timeline, work, found).selected(removed & (timeline.kind == Kind.SYNCHRONIZATION)).likely_s
    assert saved == pytest.approx(9 * (20 * MICROSECOND - PAUSE_NS) / 1e9)


def test_the_graph_begins_queued_work_after_the_pause() -> None:
    timeline, work, _ = traced([launch(100), launch(100), WAIT])
    found = infer_gpu_times(timeline, work)
    graph = build_graph(timeline, work, found, found.likely)
    assert graph.gpu_after[1] == 0
    assert graph.gpu_begin[1] - graph.gpu_end[0] == PAUSE_NS
    assert graph.gpu_end[1] == timeline.start[2] + timeline.wait[2]


def test_streams_that_an_event_joins_are_one_segment() -> None:
    """Of which stream the work is makes no difference, if each piece comes after the one before."""
    joined = [launch(300, 1), record(1), after(2), launch(200, 2), WAIT]
    assert sure_of(joined) == 500 * MICROSECOND - PAUSE_NS


def test_a_wait_for_the_last_event_is_for_all_work_before_it() -> None:
    waited = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=1, gap=20 * MICROSECOND, problem=SYNC)
    calls = [launch(300, 1), record(1), after(2), launch(200, 2), record(2, event=1), waited]
    assert sure_of(calls) == 500 * MICROSECOND - PAUSE_NS


def test_a_wait_for_an_earlier_event_is_not() -> None:
    waited = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=0, gap=20 * MICROSECOND, problem=SYNC)
    calls = [launch(300, 1), record(1), launch(200, 2), waited]
    assert sure_of(calls) < 500 * MICROSECOND - PAUSE_NS


def times_of(calls: list[Call], slower: int) -> list[int]:
    """Return how many microseconds each kernel took, as inferred where events timed it `slower` times as long."""
    timeline, work, gpu = traced(calls)
    found = infer_gpu_times(timeline, dataclasses.replace(work, measured=np.where(gpu > 0, gpu * slower, -1))).likely
    return [int(found.gpu[row]) // MICROSECOND for row, call in enumerate(calls) if call.action == Action.ENQUEUE]


def test_no_work_lasts_beyond_the_end_of_a_wait_for_an_event_after_it() -> None:
    """Whatever another run says of it, in which the GPU was slower."""
    waited = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=0, gap=20 * MICROSECOND, problem=SYNC)
    assert times_of([launch(300, 1), record(1), waited] * 3, 100) == [300] * 3


def test_work_behind_an_event_that_was_waited_for_begins_then() -> None:
    waited = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=0, gap=20 * MICROSECOND, problem=SYNC)
    one = [launch(300, 1), record(1), launch(200, 1), waited, WAIT]
    assert times_of(one * 3, 100) == [300, 200] * 3


def test_a_stream_waits_for_anothers_event_no_longer_than_the_cpu_did() -> None:
    waits = [Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=stream, gap=20_000) for stream in (1, 2)]
    one = [launch(300, 1), record(1), after(2), waits[0], launch(200, 2), waits[1]]
    assert times_of(one * 3, 100) == [300, 200] * 3


def test_a_wait_for_a_stream_without_work_is_for_no_work_of_the_default_stream() -> None:
    idle = Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=1)
    timeline, work, _ = traced([launch(300), idle, launch(300), WAIT] * 3)
    likely = infer_gpu_times(timeline, work).likely.gpu
    assert likely[::2].tolist() == [300 * MICROSECOND - PAUSE_NS // 2] * 6


def test_streams_side_by_side_are_no_segment() -> None:
    """Both kernels run at once: the wait shows neither how long the one took nor the other."""
    timeline, work, _ = traced([launch(300, 1), launch(200, 2), WAIT] * 4)
    found = infer_gpu_times(timeline, work)
    assert found.slow.gpu[::3].max() == 300 * MICROSECOND
    assert found.fast.gpu.sum() <= 4 * 500 * MICROSECOND <= found.slow.gpu.sum() + 4 * 200 * MICROSECOND


def test_after_a_long_pause_the_other_stream_is_done() -> None:
    """A kernel on another stream, 5 ms before: the wait of 100 us was not for that, nor does one tell of all others."""
    first = dataclasses.replace(launch(100, 1), gap=5_000 * MICROSECOND)
    timeline, work, _ = traced([first, launch(100, 2), WAIT])
    timeline = dataclasses.replace(timeline, site=np.array([7, 7, 8], np.int32))
    found = infer_gpu_times(timeline, work)
    assert found.likely.gpu[:2].tolist() == [100 * MICROSECOND] * 2
    assert found.fast.gpu[0] == 0
    assert found.slow.gpu[0] >= 5_000 * MICROSECOND


def sure_of(calls: list[Call]) -> int:
    """Return the nanoseconds of GPU work that three equal turns show each, in the likely timeline."""
    timeline, work, _ = traced(calls * 3)
    timeline = dataclasses.replace(timeline, site=np.tile(np.arange(len(calls), dtype=np.int32), 3))
    likely = infer_gpu_times(timeline, work).likely.gpu
    return int(likely.sum()) // 3
