"""Waits that end late by chance: what delayed the thread is not saved with the wait."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.lateness import late_from
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind, Timeline
from tests.examples import examples
from tests.model.estimators.test_laws import MICROSECOND, replay_of, rounding, subset
from tests.model.simulator import SYNC, Call, programs, traced

ROUNDS = 60
LATE = 2_000 * MICROSECOND


def loop(*, late: list[int], gap: int) -> tuple[Timeline, DeviceWork]:
    """A loop that launches 100 us of measured work, waits for it though it need not, and works on the CPU.

    Threads wake after 10 us, in the rounds of `late` after 2 ms more.
    """
    return late_to([], late=late, gap=gap)


def late_to(following: list[Call], *, late: list[int], gap: int) -> tuple[Timeline, DeviceWork]:
    """The same loop with further calls in each round, to whose waits the thread is never late."""
    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, own=5 * MICROSECOND, gpu=100 * MICROSECOND),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=gap, problem=SYNC),
        *following,
    ]
    timeline, work, gpu = traced(calls * ROUNDS)
    waking = np.where(timeline.wait > 0, 10 * MICROSECOND, 0)
    waking[1 :: len(calls)][late] += LATE
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + np.cumsum(waking) - waking,
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
        site=np.tile(np.arange(len(calls), dtype=np.int32), ROUNDS),
    )
    return timeline, dataclasses.replace(work, measured=np.where(gpu > 0, gpu, -1))


def replay_of_loop(*, late: list[int], gap: int) -> Replay:
    return replay_of(*loop(late=late, gap=gap))


def all_waits(replay: Replay) -> float:
    return replay.selected(np.ones(2 * ROUNDS, bool)).likely_s


@pytest.mark.parametrize("gap_us", [0, 50, 500])
def test_what_delays_a_thread_by_chance_is_not_saved(gap_us: int) -> None:
    """Whether the GPU is then the one that is never idle, or the CPU."""
    undisturbed = all_waits(replay_of_loop(late=[], gap=gap_us * MICROSECOND))
    disturbed = replay_of_loop(late=[10, 40], gap=gap_us * MICROSECOND)
    assert undisturbed > 0
    assert all_waits(disturbed) == pytest.approx(undisturbed, rel=0.01)
    # It may have been the wait's all the same.
    assert disturbed.selected(np.ones(2 * ROUNDS, bool)).high_s > undisturbed + 1.9 * LATE / 1e9


def test_what_delays_a_thread_may_be_saved_whatever_waits_next() -> None:
    """A download soon after the wait would show whether the GPU had been late. Nothing shows that it was."""
    download = Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=5 * MICROSECOND, gpu=2 * MICROSECOND)
    found = []
    for late in ([], [10, 40]):
        timeline, work = late_to([download], late=late, gap=50 * MICROSECOND)
        found.append(replay_of(timeline, work).selected(timeline.problem != 0))
    undisturbed, disturbed = found
    assert undisturbed.likely_s > 0
    assert disturbed.likely_s == pytest.approx(undisturbed.likely_s, rel=0.01)
    assert disturbed.low_s == pytest.approx(undisturbed.low_s, rel=0.01)
    assert disturbed.high_s == pytest.approx(undisturbed.high_s + 2 * LATE / 1e9, rel=0.01)


def test_what_delays_a_thread_each_time_it_sleeps_goes_with_the_waits() -> None:
    often = list(range(0, ROUNDS, 4))
    undisturbed = all_waits(replay_of_loop(late=[], gap=500 * MICROSECOND))
    assert all_waits(replay_of_loop(late=often, gap=500 * MICROSECOND)) > undisturbed + 0.9 * len(often) * LATE / 1e9


@pytest.mark.parametrize(("late", "chance"), [(0, False), (1, True), (2, False)])
def test_what_one_wait_in_twenty_has_is_chance(late: int, chance: bool) -> None:
    """The launches wait for nothing."""
    site, latency = np.array([0, 1] * 20, np.int32), np.array([-1, 10] * 20, np.int64)
    latency[1 : 2 * late : 2] = 40
    least = late_from(site, latency, 10)
    assert [bool((latency[site == number] >= least[number]).any()) for number in range(2)] == [False, chance]


@given(programs(streams=4, misplaced=True), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_fixing_more_never_saves_less_where_waits_are_late(calls: list[Call], data: st.DataObject) -> None:
    timeline, work, _ = traced(calls)
    waking = np.where(timeline.wait > 0, data.draw(st.integers(0, 40)) * MICROSECOND, 0)
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + np.cumsum(waking) - waking,
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
    )
    replay = replay_of(timeline, work)
    replay._passes.late.__dict__["by_chance"] = np.full(len(calls), data.draw(st.integers(1, 40)) * MICROSECOND)
    more = subset(data, np.ones(len(calls), bool))
    assert replay.selected(subset(data, more)).likely_s <= replay.selected(more).likely_s + rounding(replay)
