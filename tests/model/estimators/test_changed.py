"""What the run saves if parts of it become faster, against the same program simulated with faster parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.device import Action
from ffm.model.estimators.faster import Faster
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, Member, live, programs, traced, traced_together

MS = 1_000_000


ORDERS = (Action.RECORD_EVENT, Action.STREAM_WAIT_EVENT)


def saved(
    calls: list[Call],
    cpu: list[float],
    gpu: list[float],
    own: list[float] | None = None,
    gone: list[bool] | None = None,
) -> float:
    """Return the seconds that the replay says if CPU work, GPU work and calls take these shares of their time."""
    timeline, work, times = traced(calls)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, times))
    rows = len(calls)
    calling = timeline.duration - timeline.wait
    less = np.zeros(rows, np.int64) if own is None else calling - (calling * np.array(own)).astype(np.int64)
    gap = timeline.gap - (timeline.gap * np.array(cpu)).astype(np.int64)
    without = np.zeros(rows, bool) if gone is None else np.array(gone)
    faster = Faster(less, gap, np.array(gpu), without)
    likely_s = replay.changed(faster).likely_s
    assert replay.for_likely_changes().likely_change(faster) == replay.likely_change(faster) == likely_s
    return likely_s


@given(st.data(), programs(streams=4))
def test_the_replay_is_the_faster_program(data: st.DataObject, calls: list[Call]) -> None:
    shares = st.sampled_from([0.0, 0.5, 1.0])
    cpu, gpu, own = ([data.draw(shares) for _ in calls] for _ in range(3))
    faster = [
        dataclasses.replace(
            call, gap=int(call.gap * cpu[row]), gpu=int(call.gpu * gpu[row]), own=int(call.own * own[row])
        )
        for row, call in enumerate(calls)
    ]
    nothing = [False] * len(calls)
    before, after = live(calls, nothing).end, live(faster, nothing).end
    assert saved(calls, cpu, gpu, own) == pytest.approx((before - after) / 1e9, abs=1e-12)


@given(st.data(), programs(streams=4))
def test_the_replay_is_the_program_without_some_calls(data: st.DataObject, calls: list[Call]) -> None:
    gone = [call.action not in ORDERS and data.draw(st.booleans()) for call in calls]
    left = [
        dataclasses.replace(call, action=Action.NONE, own=0, gpu=0) if gone[row] else call
        for row, call in enumerate(calls)
    ]
    nothing, all_of = [False] * len(calls), [1.0] * len(calls)
    before, after = live(calls, nothing).end, live(left, nothing).end
    assert saved(calls, all_of, all_of, gone=gone) == pytest.approx(max(before - after, 0) / 1e9, abs=1e-12)


def test_a_copy_that_is_gone_delays_no_work_behind_it() -> None:
    """An upload takes the CPU 8 ms before the GPU gets it; then a kernel of 2 ms is launched and waited for."""
    upload = Call(Action.WAIT_AND_ENQUEUE, Kind.TRANSFER, own=8 * MS, gpu=MS)
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, gpu=2 * MS)
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)
    assert saved([upload, launch, wait], [1, 1, 1], [0, 1, 1], gone=[True, False, False]) == pytest.approx(0.009)


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
    half = dataclasses.replace(Faster.nothing(len(timeline)), gpu=np.where(gpu > 0, 0.5, 1.0))
    faster = replay.changed(half)
    assert faster.likely_s == pytest.approx(20 * 0.0002, rel=0.1)


def test_the_last_cpu_work_counts() -> None:
    assert saved([Call(Action.NONE, Kind.OTHER, gap=6 * MS)], [0.5], [1]) == pytest.approx(0.003)


def test_a_faster_part_saves_at_most_what_it_takes_less() -> None:
    """A kernel of 4 ms, awaited for 5; then CPU work of 6 ms."""
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, gpu=4 * MS)
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=MS, gap=6 * MS)
    timeline, work, times = traced([launch, wait])
    replay = Replay(timeline, work, given_gpu_times(timeline, work, times))
    nothing = Faster.nothing(2)
    changes = {
        0.002: dataclasses.replace(nothing, gpu=np.array([0.5, 1.0])),
        0.003: dataclasses.replace(nothing, gap=np.array([0, 3 * MS])),
        0.001: dataclasses.replace(nothing, call=np.array([0, MS])),
        timeline.duration[1] / 1e9: dataclasses.replace(nothing, gone=np.array([False, True])),
        0.0005: dataclasses.replace(nothing, first=np.array([MS // 2])),
    }
    for less, faster in changes.items():
        assert replay.changed(faster).touched_s == pytest.approx(less)
