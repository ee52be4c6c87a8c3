"""Threads that share a processor: one of them runs while the other, whose wait is over, comes late."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork, LockWaits
from ffm.model.estimators.lateness import late_at_once, late_limit, sharing_processors, starved
from ffm.model.estimators.replay import Replay, Replayed
from ffm.model.timeline import Kind, Timeline
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, Member, families, traced_together

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


def two_threads(
    begins: int, late: int, turns: int = TURNS, *, between: bool = False
) -> tuple[Timeline, DeviceWork, NDArray[np.int64]]:
    """Two threads with a stream each; every tenth unneeded wait of both ends late. The second one begins later.

    Of two late waits, one ends in time if `between`, and the thread comes late to the call after it.
    """
    calls = task() * (TASKS * turns)
    members = [Member(0, begin, on_stream(calls, stream)) for begin, stream in ((0, 1), (begins, 2))]
    timeline, work, gpu = traced_together(members)
    behind = np.zeros((2, len(calls)), np.int64)
    behind[:, 3 * TASKS - 2 :: 3 * TASKS] = late
    after = np.zeros_like(behind)
    if between:
        after[:, 3 * TASKS - 2 :: 6 * TASKS] = late
    waking = np.where(timeline.wait > 0, USUAL, 0) + (behind - after).ravel()
    first = np.searchsorted(timeline.thread, timeline.thread)
    later = np.cumsum(waking + after.ravel()) - waking - after.ravel()
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + later - later[first],
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
        gap=timeline.gap + after.ravel(),
        site=np.arange(len(timeline), dtype=np.int32) % len(task()),
    )
    work = dataclasses.replace(work, legacy=np.full(1, -1, np.int32))
    return timeline, work, gpu


def turn_ns() -> int:
    """How long a thread runs until it is late."""
    timeline, _, _ = two_threads(0, 0, 2)
    return int(timeline.start[3 * TASKS] - timeline.start[0])


def replayed(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64], rows: NDArray[np.bool_]) -> Replayed:
    inference = dataclasses.replace(given_gpu_times(timeline, work, gpu), latency_ns=USUAL)
    return Replay(timeline, work, inference).selected(rows)


def likely_s(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64], rows: NDArray[np.bool_]) -> float:
    return replayed(timeline, work, gpu, rows).likely_s


def delayed(work: DeviceWork, *nanoseconds: int) -> DeviceWork:
    """Let it be known for how long each thread waited for a processor; -1 if it is not."""
    return dataclasses.replace(work, delayed=np.array(nanoseconds, np.int64))


def shares(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64]) -> list[bool]:
    latency = given_gpu_times(timeline, work, gpu).likely.latency
    late = np.where(latency > USUAL, latency - USUAL, 0)
    lacked = starved(timeline, work, late, late_limit(USUAL), np.zeros(len(timeline), np.int64))
    return [bool(one) for one in sharing_processors(timeline, work, latency, USUAL, lacked)]


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


@pytest.mark.parametrize("begins", [5, 10, 15, 20, 25])
def test_threads_that_go_on_one_right_after_the_other_do_not_save_what_they_were_late_by(begins: int) -> None:
    """Both wait again at once for what their removed waits were late by: neither goes on sooner for the other."""
    turn = turn_ns()
    timeline, work, gpu = two_threads(begins * MICROSECOND, turn)
    work = delayed(work, TURNS * turn, TURNS * turn)
    waits = unneeded(timeline, work)
    assert saved_in_time_s() <= likely_s(timeline, work, gpu, waits) <= 2 * (saved_in_time_s() + MEANWHILE_S)


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


@pytest.mark.parametrize(("part", "share"), [(0.0, False), (0.4, False), (0.6, True), (5.0, True)])
@pytest.mark.parametrize("begins", [0.25, 1.0])
def test_what_the_kernel_counted_tells_whether_threads_share_processors(
    begins: float, part: float, share: bool
) -> None:
    """Whether they are late in turn or not. Of the delay of a thread, as much counts as its waits were late."""
    turn = turn_ns()
    timeline, work, gpu = two_threads(int(begins * turn), turn)
    late = round(part * TURNS * turn)
    assert shares(timeline, delayed(work, late, late), gpu) == [share]


def test_threads_lose_their_processor_between_calls_as_well() -> None:
    """Half of the times. They did if the kernel counted at least half of all that they come late."""
    turn = turn_ns()
    timeline, work, gpu = two_threads(turn, turn, between=True)
    waits = unneeded(timeline, work)
    least, most = saved_in_time_s(), saved_in_time_s() + MEANWHILE_S
    all_counted = likely_s(timeline, delayed(work, *[TURNS * turn] * 2), gpu, waits)
    assert 0.95 * 2 * least <= all_counted <= 2 * most
    waits_counted = likely_s(timeline, delayed(work, *[int(0.45 * TURNS * turn)] * 2), gpu, waits)
    assert least <= waits_counted < 0.9 * all_counted


def test_what_takes_long_and_was_no_delay_is_work() -> None:
    turn = turn_ns()
    timeline, work, gpu = two_threads(turn, turn, between=True)
    latency = given_gpu_times(timeline, work, gpu).likely.latency
    late = np.where(latency > USUAL, latency - USUAL, 0)
    nowhere = np.zeros(len(timeline), np.int64)
    within, found = starved(timeline, delayed(work, TURNS * turn, 0), late, turn // 2, nowhere)
    assert not within.any()
    assert set(found.tolist()) == {0, turn}
    assert (found > 0).sum() == TURNS // 2
    assert not found[timeline.thread == 1].any()
    # Nor is what was a wait for another thread.
    assert not starved(timeline, delayed(work, TURNS * turn, 0), late, turn // 2, found).after.any()


def in_turn_with_one_that_polls(
    turns: int = TURNS, *, within: bool = False
) -> tuple[Timeline, DeviceWork, NDArray[np.int64], int]:
    """Two threads that have one processor in turn; also return how long a turn is.

    The second one never waits: it asks for the state of its work, and has no processor during the turns of the first
    one, within a call or after it. Both use the legacy default stream.
    """
    first, _, _ = traced_together([Member(0, 0, task() * TASKS * 2)])
    turn = int(first.start[3 * TASKS])
    *most, last = task() * TASKS
    runs = [*most, dataclasses.replace(last, gap=last.gap + turn)] * turns
    asks = [Call(Action.NONE, Kind.OTHER, own=MICROSECOND)] * (turn // MICROSECOND - 1)
    sets = Call(Action.ENQUEUE, Kind.LAUNCH, own=MICROSECOND + turn * within, gap=turn * (not within), gpu=MICROSECOND)
    members = [Member(0, 0, runs), Member(0, turn, [*asks, sets] * turns + asks)]
    timeline, work, gpu = traced_together(members)
    site = np.arange(len(timeline), dtype=np.int32) % len(task())
    polls = timeline.thread == 1
    site[polls] = len(task())
    site[np.flatnonzero(polls)[0]] = 0  # both run the same code, so that the last one to end counts
    return dataclasses.replace(timeline, site=site), work, gpu, turn


@pytest.mark.parametrize("within", [False, True])
def test_a_thread_that_never_waits_goes_on_as_early_as_the_one_that_had_its_processor(within: bool) -> None:
    timeline, work, gpu, turn = in_turn_with_one_that_polls(within=within)
    waits = unneeded(timeline, work)
    shared = delayed(work, TURNS * turn, TURNS * turn)
    assert shares(timeline, shared, gpu) == [True]
    alone = TURNS * TASKS * 10e-6
    assert likely_s(timeline, shared, gpu, waits) >= 0.9 * alone
    assert likely_s(timeline, delayed(work, 0, 0), gpu, waits) <= 0.1 * alone


def test_a_thread_that_another_one_lets_go_on_may_still_have_no_processor() -> None:
    """The first one lets the second one go on early in its last turn, and keeps the processor for that turn."""
    timeline, work, gpu, turn = in_turn_with_one_that_polls(turns=2)
    work = delayed(work, 2 * turn, 2 * turn)
    lets_go = np.flatnonzero((timeline.thread == 0) & (timeline.start > 2 * turn))[:1]
    loses = np.flatnonzero((timeline.thread == 1) & (timeline.gap >= turn))[:1]
    at_once = np.zeros(1, np.int64)
    behind_lock = dataclasses.replace(work, locks=LockWaits(row=loses, after=at_once, by=lets_go, released=at_once))
    waits = unneeded(timeline, work)
    assert likely_s(timeline, behind_lock, gpu, waits) == likely_s(timeline, work, gpu, waits) >= TASKS * 10e-6


def test_threads_of_which_nothing_was_counted_do_not_decide() -> None:
    turn = turn_ns()
    timeline, work, gpu = two_threads(turn // 4, turn)
    assert shares(timeline, delayed(work, -1, TURNS * turn), gpu) == [True]
    assert shares(timeline, delayed(work, -1, 0), gpu) == [False]
    assert shares(timeline, delayed(work, -1, -1), gpu) == [False]


def test_threads_that_never_waited_for_a_processor_save_what_they_save_alone() -> None:
    turn = turn_ns()
    timeline, work, gpu = two_threads(turn // 4, turn)
    waits = unneeded(timeline, work)
    alone = replayed(timeline, work, gpu, waits)
    assert shares(timeline, work, gpu) == [False]
    assert replayed(timeline, delayed(work, 0, 0), gpu, waits) == alone
    shared = replayed(timeline, delayed(work, TURNS * turn, TURNS * turn), gpu, waits)
    assert alone.likely_s < shared.likely_s <= shared.high_s
    assert shared.low_s == alone.low_s


@given(families(), st.integers(0, 1 << 40), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_no_more_is_saved_than_the_run_takes(members: list[Member], nanoseconds: int, data: st.DataObject) -> None:
    timeline, work, gpu = traced_together(members)
    late = np.array(data.draw(st.lists(st.sampled_from([0, 50]), min_size=len(timeline), max_size=len(timeline))))
    waking = np.where(timeline.wait > 0, USUAL + late * MICROSECOND, 0)
    first = np.searchsorted(timeline.thread, timeline.thread)
    later = np.cumsum(waking) - waking
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + later - later[first],
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
    )
    work = delayed(work, *[nanoseconds] * len(work.process_of_thread))
    found = replayed(timeline, work, gpu, timeline.problem != 0)
    over = timeline.start + timeline.duration
    assert 0 <= found.low_s <= found.likely_s <= found.high_s
    assert found.likely_s <= (over.max() - timeline.start.min()) / 1e9


def test_late_at_once_are_threads_of_which_none_gets_on() -> None:
    """Two threads are late for three quarters of a turn together, in each one; one alone never is."""
    turn = turn_ns()
    timeline, work, gpu = two_threads(turn // 4, turn)
    latency = given_gpu_times(timeline, work, gpu).likely.latency
    late = np.where(latency > USUAL, latency - USUAL, 0)
    [found] = late_at_once(timeline, work, late)
    assert found == pytest.approx(TURNS * turn * 0.75, rel=0.05)
    assert late_at_once(timeline, work, np.where(timeline.thread == 0, late, 0)).tolist() == [0]
