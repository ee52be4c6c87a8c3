"""The replay of runs in which threads and processes wait for each other, as a profiler recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.estimators.faster import Faster
from ffm.model.estimators.replay import Replay
from tests.model.given_times import given_gpu_times
from tests.model.meeting_ranks import BOTH, COMES, FOLLOWS, WAITS, At, Did, live, measured

NS = 1e-9


def saves(ranks: Sequence[Sequence[Did]], less: dict[tuple[int, int], int]) -> float:
    """Return the nanoseconds that the run saves if ranks work so much less before their calls."""
    timeline, work = measured(ranks)
    first = np.cumsum([0, *(len(rank) for rank in ranks)])
    gap, before = np.zeros(len(timeline), np.int64), np.zeros(len(ranks), np.int64)
    for (rank, place), time in less.items():
        if place > 0:
            gap[first[rank] + place - 1] = time
        else:
            before[rank] = time
    faster = dataclasses.replace(Faster.nothing(len(timeline)), gap=gap, first=before)
    replayed = Replay(timeline, work, given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64))).changed(
        faster
    )
    assert replayed.low_s == replayed.likely_s == replayed.high_s
    return replayed.likely_s / NS


def rank(*calls: Did) -> list[Did]:
    """Return what a rank does after its first call, which meets nobody."""
    return [Did(0, 0), *calls]


def test_a_rank_that_makes_its_first_call_sooner_is_waited_for_less() -> None:
    """They come at 10 and 30 to their first call. Of 25 ns that the later one begins sooner, 20 count."""
    ranks = [[Did(10, 1, barrier(0))], [Did(30, 1, barrier(0)), Did(5)]]
    assert saves(ranks, {(1, 0): 12}) == pytest.approx(12)
    assert saves(ranks, {(1, 0): 25}) == pytest.approx(20)
    assert saves(ranks, {(0, 0): 10}) == 0


def barrier(number: int) -> tuple[At]:
    """Return that a row takes part in a collective operation."""
    return (At(number, BOTH),)


THREE = [
    rank(Did(10, 1, barrier(0)), Did(5)),
    rank(Did(20, 1, barrier(0)), Did(5)),
    rank(Did(30, 1, barrier(0)), Did(5)),
]


def test_at_a_barrier_all_wait_for_whoever_then_comes_last() -> None:
    """They come at 10, 20 and 30. If the last one comes at 15, all wait for the second, until 20."""
    assert saves(THREE, {(2, 1): 6}) == pytest.approx(6)
    assert saves(THREE, {(2, 1): 15}) == pytest.approx(10)
    assert saves(THREE, {(2, 1): 15, (1, 1): 8}) == pytest.approx(15)


def test_whom_nobody_waits_for_saves_nothing() -> None:
    assert saves(THREE, {(0, 1): 10, (1, 1): 20}) == 0


def test_what_a_rank_saves_after_the_barrier_is_lost_at_the_next_one() -> None:
    ranks = [[*one, Did(number, 1, barrier(1))] for number, one in enumerate(THREE)]
    assert saves(ranks, {(0, 2): 5, (2, 3): 1}) == pytest.approx(1)


def message(number: int) -> tuple[tuple[At], tuple[At]]:
    """Return what a send that waits for nobody and its receive do."""
    return (At(number, COMES),), (At(number, WAITS),)


def test_a_receiver_waits_for_its_sender_and_not_the_other_way_round() -> None:
    """The receive begins at 10, the send at 30. Of 20 ns that the sender saves, 20 count; of 25, still 20."""
    send, receive = message(0)
    ranks = [rank(Did(30, 1, send)), rank(Did(10, 1, receive), Did(40))]
    assert saves(ranks, {(0, 1): 20}) == pytest.approx(20)
    assert saves(ranks, {(0, 1): 25}) == pytest.approx(20)
    assert saves(ranks, {(1, 1): 10}) == 0


def test_a_receiver_that_did_not_wait_does_once_it_is_faster() -> None:
    """The receive begins at 30, the send at 10: with 30 ns less, the receiver waits for 10."""
    send, receive = message(0)
    ranks = [rank(Did(10, 1, send)), rank(Did(30, 1, receive))]
    assert saves(ranks, {(1, 1): 30}) == pytest.approx(20)


def test_one_call_waits_for_all_of_its_messages() -> None:
    """Messages come at 20 and 30. If the later one comes at 5, the call waits for the other, until 20."""
    (one, first), (other, second) = message(0), message(1)
    ranks = [rank(Did(20, 1, one)), rank(Did(30, 1, other)), rank(Did(3, 1, (*first, *second)), Did(9))]
    assert saves(ranks, {(1, 1): 25}) == pytest.approx(10)


def test_a_send_that_waited_for_its_receiver_still_does() -> None:
    """The send begins at 10, the receive at 30, or with 25 ns less at 5: the send is over at 11."""
    ranks = [rank(Did(10, 1, barrier(0)), Did(7)), rank(Did(30, 1, barrier(0)))]
    assert saves(ranks, {(1, 1): 25}) == pytest.approx(20)


def test_a_late_rank_delays_others_through_a_chain_of_messages() -> None:
    """Rank 0 sends at 50 to rank 1, which sends at once to rank 2, which works for 5 more. All but 10 of the 50 are
    waited for on the way: rank 2 comes at 10.
    """
    (one, first), (other, second) = message(0), message(1)
    ranks = [
        rank(Did(50, 1, one)),
        rank(Did(2, 1, first), Did(0, 1, other)),
        rank(Did(10, 1, second), Did(5)),
    ]
    assert live(ranks).end == 50 + 1 + 1 + 5 + 1
    assert saves(ranks, {(0, 1): 30}) == pytest.approx(30)
    assert saves(ranks, {(0, 1): 50}) == pytest.approx(41)


def test_the_order_in_which_threads_get_a_lock_stays() -> None:
    """Thread 0 lets go at 30 what thread 1 requests at 20. With 28 ns less it lets go at 2, and nobody waits."""
    release, acquire = message(0)
    ranks = [rank(Did(30, 0, release)), rank(Did(20, 0, acquire), Did(15))]
    assert saves(ranks, {(0, 1): 28}) == pytest.approx(10)


def test_threads_of_a_team_begin_when_it_does() -> None:
    """The team forks at 30, its other thread begins 2 ns later and works for 40; all meet at its end. What that thread
    did before is no work: it was idle.
    """
    led = Did(0, 0, (At(0, FOLLOWS),), after=2)
    ranks = [
        rank(Did(30, 0, (At(0, COMES),)), Did(10, 1, barrier(1)), Did(3)),
        rank(led, Did(40, 1, barrier(1))),
    ]
    assert live(ranks).end == 30 + 2 + 40 + 1 + 3 + 1
    assert saves(ranks, {(0, 1): 20}) == pytest.approx(20)
    assert saves(ranks, {(1, 2): 15}) == pytest.approx(15)
    assert saves(ranks, {(1, 2): 35}) == pytest.approx(32)
    assert saves(ranks, {(1, 1): 30}) == 0


def test_the_root_of_a_broadcast_does_not_wait_for_those_that_came_after_it_left() -> None:
    """The root calls at 10 and is over at 11; the other comes at 30."""
    ranks = [rank(Did(10, 1, (At(0, COMES),)), Did(50)), rank(Did(30, 1, barrier(0)))]
    timeline, work = measured(ranks)
    encounters = work.encounters
    assert encounters is not None
    told = dataclasses.replace(encounters, role=np.full(len(encounters.row), int(BOTH), np.uint8))
    work = dataclasses.replace(work, encounters=told)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64)))
    gap = np.zeros(len(timeline), np.int64)
    gap[1] = 20  # after the root's call
    less = dataclasses.replace(Faster.nothing(len(timeline)), gap=gap)
    assert replay.changed(less).likely_s / NS == pytest.approx(20)


def test_a_call_that_is_gone_lets_nobody_wait() -> None:
    """Without the barrier, the last rank and the run end as before; without its work as well, all end early."""
    timeline, work = measured(THREE)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64)))
    gone = np.array([0, 1, 0] * 3, bool)
    without = dataclasses.replace(Faster.nothing(len(timeline)), gone=gone)
    assert replay.changed(without).likely_s / NS == pytest.approx(1)  # the call's own time
    gap = np.array([0, 0, 0, 0, 0, 0, 30, 0, 0], np.int64)
    assert replay.changed(dataclasses.replace(without, gap=gap)).likely_s / NS == pytest.approx(11)


@st.composite
def programs(draw: st.DrawFn) -> list[list[Did]]:
    """Ranks that meet in an order that all agree on, so that nobody waits for ever."""
    count = draw(st.integers(2, 4))
    time = st.integers(1, 30)
    ranks = [[Did(draw(time))] for _ in range(count)]
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["all", "message", "rendezvous", "team"]))
        members = draw(st.permutations(range(count)))
        if kind == "all":
            members = members[: draw(st.integers(2, count))]
            for one in members:
                ranks[one].append(Did(draw(time), draw(time), barrier(number)))
            continue
        roles = {"message": (COMES, WAITS), "rendezvous": (BOTH, BOTH), "team": (COMES, FOLLOWS)}[kind]
        for one, role in zip(members[:2], roles, strict=True):
            ranks[one].append(Did(draw(time), draw(time), (At(number, role),), after=draw(time)))
    return as_seen(ranks)


def as_seen(ranks: list[list[Did]]) -> list[list[Did]]:
    """Let threads that follow others do so as late as they did: a thread that was still busy may seem to be idle."""
    lived = live(ranks)
    forked = {
        at.number: lived.begun[number][place]
        for number, one in enumerate(ranks)
        for place, did in enumerate(one)
        for at in did.at
        if at.role == COMES
    }
    return [
        [
            dataclasses.replace(did, after=lived.begun[number][place] - forked[did.at[0].number])
            if any(at.role & FOLLOWS for at in did.at)
            else did
            for place, did in enumerate(one)
        ]
        for number, one in enumerate(ranks)
    ]


@settings(max_examples=150, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_replays_agree_with_ranks_that_wait_for_each_other_again(ranks: list[list[Did]], random: Random) -> None:
    """By an independent simulator; and no change makes the run longer, or saves more than it takes away."""
    less = {
        (number, place): random.randint(0, did.work)
        for number, one in enumerate(ranks)
        for place, did in enumerate(one)
        if random.random() < 0.5 and not any(at.role & FOLLOWS for at in did.at)
    }
    faster = [
        [dataclasses.replace(did, work=did.work - less.get((number, place), 0)) for place, did in enumerate(one)]
        for number, one in enumerate(ranks)
    ]
    saved = saves(ranks, less)
    assert saved == pytest.approx(live(ranks).end - live(faster).end)
    assert -1e-6 <= saved <= sum(less.values()) + 1e-6
    assert saves(ranks, {}) == 0
