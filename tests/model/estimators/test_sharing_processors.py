"""Threads that share a processor: one of them runs while the other, whose wait is over, comes late."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.lateness import sharing_processors
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind, Timeline
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, Member, traced_together

MICROSECOND = 1_000
USUAL = MICROSECOND
TURNS, TASKS = 30, 10
MEANWHILE_S = TURNS * 30e-6
"""For how long the CPU works, instead of waiting, while its thread would come late."""


def task() -> list[Call]:
    """Work for the GPU, an unneeded wait of 10 us, and work for the CPU that lasts longer than that of the GPU."""
    return [
        Call(Action.ENQUEUE, Kind.LAUNCH, own=MICROSECOND, gpu=10 * MICROSECOND),
        Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=20 * MICROSECOND, problem=SYNC),
        Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=5 * MICROSECOND, gpu=MICROSECOND, gap=3 * MICROSECOND),
    ]


def on_stream(calls: list[Call], stream: int) -> list[Call]:
    return [dataclasses.replace(call, stream=stream) for call in calls]


def two_threads(begins: int, late: int, turns: int = TURNS) -> tuple[Timeline, DeviceWork, NDArray[np.int64]]:
    """Two threads with a stream each; every tenth unneeded wait of both ends late. The second one begins later."""
    calls = task() * (TASKS * turns)
    members = [Member(0, begin, on_stream(calls, stream)) for begin, stream in ((0, 1), (begins, 2))]
    timeline, work, gpu = traced_together(members)
    starved = np.zeros((2, len(calls)), np.int64)
    starved[:, 3 * TASKS - 2 :: 3 * TASKS] = late
    waking = np.where(timeline.wait > 0, USUAL, 0) + starved.ravel()
    first = np.searchsorted(timeline.thread, timeline.thread)
    later = np.cumsum(waking) - waking
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + later - later[first],
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
    )
    work = dataclasses.replace(work, legacy=np.full(1, -1, np.int32))
    return timeline, work, gpu


def turn_ns() -> int:
    """How long a thread runs until it is late."""
    timeline, _, _ = two_threads(0, 0, 2)
    return int(timeline.start[3 * TASKS] - timeline.start[0])


def likely_s(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64], rows: NDArray[np.bool_]) -> float:
    inference = dataclasses.replace(given_gpu_times(timeline, work, gpu), latency_ns=USUAL)
    return Replay(timeline, work, inference).selected(rows).likely_s


def shares(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64]) -> list[bool]:
    latency = given_gpu_times(timeline, work, gpu).likely.latency
    return [bool(one) for one in sharing_processors(timeline, work, latency, USUAL)]


def unneeded(timeline: Timeline, work: DeviceWork) -> NDArray[np.bool_]:
    return np.asarray((work.action == Action.WAIT_STREAM) & (timeline.problem != 0))


def saved_in_time_s() -> float:
    """Return what the waits save if none ends late."""
    timeline, work, gpu = two_threads(0, 0)
    return likely_s(timeline, work, gpu, unneeded(timeline, work))


def test_threads_that_share_a_processor_save_what_both_save() -> None:
    """While one of them is late, the other one runs for as long."""
    turn = turn_ns()
    run = two_threads(turn, turn)
    timeline, work, _ = run
    waits = unneeded(timeline, work)
    assert shares(*run) == [True]
    least, most = saved_in_time_s(), saved_in_time_s() + MEANWHILE_S
    assert 0.95 * 2 * least <= likely_s(*run, waits) <= 2 * most
    for thread in range(2):
        assert least <= likely_s(*run, waits & (timeline.thread == thread)) <= most


def test_threads_that_are_late_at_the_same_time_have_processors_of_their_own() -> None:
    turn = turn_ns()
    run = two_threads(turn // 4, turn)
    timeline, work, _ = run
    assert shares(*run) == [False]
    found = likely_s(*run, unneeded(timeline, work))
    assert saved_in_time_s() <= found <= saved_in_time_s() + MEANWHILE_S


def test_few_late_waits_show_nothing() -> None:
    turn = turn_ns()
    assert shares(*two_threads(turn, turn, turns=9)) == [False]
