"""What the run saves if parts of it become faster, against the same program simulated with faster parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulator import Call, Member, live, programs, traced, traced_together

from ffm.model.device import Action
from ffm.model.gpu_times import given_gpu_times
from ffm.model.replay import Replay
from ffm.model.timeline import Kind

MS = 1_000_000


def saved(calls: list[Call], cpu: list[float], gpu: list[float]) -> float:
    """Return the seconds that the replay says if CPU work and GPU work take these shares of their time."""
    timeline, work, times = traced(calls)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, times))
    less = (timeline.gap * (1 - np.array(cpu))).astype(np.int64)
    return replay.changed(less, np.array(gpu)).likely_s


@given(st.data(), programs(streams=3))
def test_the_replay_is_the_faster_program(data: st.DataObject, calls: list[Call]) -> None:
    shares = st.sampled_from([0.0, 0.5, 1.0])
    cpu, gpu = ([data.draw(shares) for _ in calls] for _ in range(2))
    faster = [
        dataclasses.replace(call, gap=int(call.gap * cpu[row]), gpu=int(call.gpu * gpu[row]))
        for row, call in enumerate(calls)
    ]
    nothing = [False] * len(calls)
    before, after = live(calls, nothing).end, live(faster, nothing).end
    assert saved(calls, cpu, gpu) == pytest.approx((before - after) / 1e9, abs=1e-12)


def test_a_faster_kernel_beside_slower_cpu_work_saves_nothing() -> None:
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, gpu=4 * MS, gap=6 * MS)
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)
    assert saved([launch, wait], [1, 1], [0.5, 1]) == 0
    assert saved([launch, wait], [0.5, 1], [1, 1]) == pytest.approx(0.002)


def test_who_follows_a_faster_thread_is_earlier_too() -> None:
    """One thread waits 0.4 ms for each kernel; the other goes on when that is over, and ends last."""
    ms = MS // 10
    leader = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=4 * ms),
        Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=6 * ms),
    ] * 20
    follower = [Call(Action.NONE, Kind.OTHER, own=ms, gap=9 * ms)] * 20
    timeline, work, gpu = traced_together([Member(0, 0, leader), Member(0, 4 * ms + 1000, follower)])
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    assert replay.threads.follows.tolist() == [-1, 0]
    faster = replay.changed(np.zeros(len(timeline), np.int64), np.where(gpu > 0, 0.5, 1.0))
    assert faster.likely_s == pytest.approx(20 * 0.0002, rel=0.1)


def test_the_last_cpu_work_counts() -> None:
    assert saved([Call(Action.NONE, Kind.OTHER, gap=6 * MS)], [0.5], [1]) == pytest.approx(0.003)
