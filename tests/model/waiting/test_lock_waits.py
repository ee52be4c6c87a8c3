"""Waits for locks and the like in measured runs, where they lie between two calls: their path, blame and pattern."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import Action, DeviceWork, LockWaits
from ffm.model.estimators.faster import Faster
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.blame import find_idlers
from ffm.model.waiting.graph import build_graph
from ffm.model.waiting.meeting_blame import share_meetings
from ffm.model.waiting.meetings import Meetings, joined_teams, lock_meetings
from ffm.model.waiting.path import Part
from ffm.model.waiting.patterns import find_patterns
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, Member, families, traced_together
from tests.model.whole_path import find_path

MS = 1_000_000


def two_threads() -> tuple[Timeline, DeviceWork, LockWaits]:
    """A thread waits from 2 to 8 ms for a lock that another one, which works from 1 to 9, lets go then."""
    waiting = [Call(Action.NONE, Kind.OTHER, own=MS, gap=8 * MS), Call(Action.NONE, Kind.OTHER, own=2 * MS)]
    holding = [Call(Action.NONE, Kind.OTHER, own=MS, gap=8 * MS), Call(Action.NONE, Kind.OTHER, own=MS)]
    timeline, work, _ = traced_together([Member(0, 0, waiting), Member(0, 0, holding)])
    locks = LockWaits(*(np.array([one], np.int64) for one in (0, MS, 2, 7 * MS)))
    return timeline, replace(work, locks=locks), locks


def test_the_path_goes_on_in_the_thread_that_let_it_go() -> None:
    timeline, work, locks = two_threads()
    gpu = given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64))
    graph = build_graph(timeline, work, gpu, gpu.likely)
    path = find_path(timeline, work, graph, meetings=lock_meetings(timeline, locks))
    pieces = [
        (int(timeline.thread[row]), Part(part).name, (end - begin) // MS)
        for row, part, begin, end in zip(path.row, path.part, path.begin, path.end, strict=True)
    ]
    assert pieces == [(1, "CALL", 1), (1, "WORK", 7), (0, "WORK", 1), (0, "CALL", 2)]


def test_the_wait_is_blamed_on_what_the_other_thread_did_meanwhile() -> None:
    timeline, work, locks = two_threads()
    gpu = given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64))
    graph = build_graph(timeline, work, gpu, gpu.likely)
    met = lock_meetings(timeline, locks)
    shared = share_meetings(timeline, work, graph, met)
    assert shared.blame.tolist() == [6 * MS]
    assert shared.pieces.row.tolist() == [2]
    assert (shared.pieces.begin.tolist(), shared.pieces.end.tolist()) == ([2 * MS], [8 * MS])
    found = find_patterns(timeline, work, graph, met)
    assert (found.locks.count, found.locks.lasting) == (1, 6 * MS)
    assert (found.imbalance.count, found.imbalance.lasting) == (0, 0)


def test_the_gpu_is_idle_because_of_who_holds_the_lock() -> None:
    """A thread launches kernels of 1 ms at 0 and at 9 ms, between which it waits for the lock from 2 to 8."""
    waiting = [Call(Action.ENQUEUE, Kind.LAUNCH, own=MS, gpu=MS, gap=8 * MS, stream=0)] * 2
    holding = [Call(Action.NONE, Kind.OTHER, own=MS, gap=8 * MS), Call(Action.NONE, Kind.OTHER, own=MS)]
    timeline, work, gpu_ns = traced_together([Member(0, 0, waiting), Member(0, 0, holding)])
    locks = LockWaits(*(np.array([one], np.int64) for one in (0, MS, 2, 7 * MS)))
    gpu = given_gpu_times(timeline, work, gpu_ns)
    graph = build_graph(timeline, work, gpu, gpu.likely)
    idle = find_idlers(timeline, work, graph, lock_meetings(timeline, locks))
    blamed = zip(idle.where.tolist(), (idle.begin // MS).tolist(), (idle.end // MS).tolist(), strict=True)
    assert list(blamed) == [(1, 2, 8), (0, 8, 10)]


def test_of_a_lock_that_is_free_nobody_waits() -> None:
    """After a change, a thread may let a lock go before the other one wants it."""
    timeline, _, locks = two_threads()
    assert not len(lock_meetings(timeline, replace(locks, released=np.array([1]))).number)


def test_no_wait_lasts_beyond_the_cpu_work_after_its_row() -> None:
    timeline, _, locks = two_threads()
    met = lock_meetings(timeline, replace(locks, released=np.array([70 * MS])))
    assert met.came.tolist() == [2 * MS, 9 * MS]


@given(families(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_the_path_covers_each_nanosecond_and_all_waiting_is_blamed(members: list[Member], random: Random) -> None:
    timeline, work, gpu = traced_together(members)
    if not len(timeline):
        return
    locks = made_waits(timeline, random)
    work = replace(work, locks=locks)
    times = given_gpu_times(timeline, work, gpu)
    graph = build_graph(timeline, work, times, times.likely)
    threads = Replay(timeline, work, times).threads
    met = Meetings.joined([joined_teams(timeline, threads), lock_meetings(timeline, locks)])
    path = find_path(timeline, work, graph, threads, met)
    over = max(int((timeline.start + timeline.duration + timeline.gap).max()), int(graph.gpu_end.max()))
    assert (path.begin[1:] == path.end[:-1]).all()
    assert path.length == over - int(timeline.start.min()) == int((path.end - path.begin).sum())
    shared = share_meetings(timeline, work, graph, met)
    assert shared.blame.sum() + shared.on_meeting.sum() == pytest.approx(met.waited.sum(), abs=len(timeline) + 1)


def saved_ms(gaps: dict[int, int]) -> float:
    """Return what `two_threads` saves if so many milliseconds disappear after some rows."""
    timeline, work, _ = two_threads()
    replay = Replay(timeline, work, given_gpu_times(timeline, work, np.zeros(len(timeline), np.int64)))
    faster = Faster.nothing(len(timeline))
    for row, milliseconds in gaps.items():
        faster.gap[row] = milliseconds * MS
    return replay.changed(faster).likely_s * 1000


def test_a_thread_goes_on_sooner_when_the_other_one_lets_it() -> None:
    """The other one lets it go after seven of eight milliseconds of work, so of 4 that disappear 3.5 come before."""
    assert saved_ms({2: 4}) == pytest.approx(3.5)


def test_work_before_a_wait_only_makes_the_wait_longer() -> None:
    """Of the waiting thread's 2 ms of work one comes before the wait and one after it."""
    assert saved_ms({0: 1}) == pytest.approx(0.5)
    assert saved_ms({0: 2}) == pytest.approx(1.0)


def test_a_thread_waits_no_longer_once_it_is_let_go_before_it_asks() -> None:
    """Without its 8 ms of work, the other one lets go at once; the first goes on after a millisecond of its own."""
    assert saved_ms({2: 8}) == pytest.approx(6.0)


@given(families(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_speeding_up_nothing_changes_nothing_and_more_saves_no_less(members: list[Member], random: Random) -> None:
    timeline, work, gpu = traced_together(members)
    if not len(timeline):
        return
    work = replace(work, locks=made_waits(timeline, random))
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    assert replay.changed(Faster.nothing(len(timeline))).likely_s == 0
    share = np.array([random.random() for _ in range(len(timeline))])
    saved = []
    for factor in (0.3, 0.9):
        faster = replace(Faster.nothing(len(timeline)), gap=(factor * share * timeline.gap).astype(np.int64))
        saved.append(replay.changed(faster).likely_s)
    assert saved[0] <= saved[1] + 1e-9 * len(timeline)


def made_waits(timeline: Timeline, random: Random) -> LockWaits:
    """Return waits after random rows for what random rows of other threads let go."""
    rows = range(len(timeline))
    pairs = [(row, random.choice(rows)) for row in rows if random.random() < 0.5]
    pairs = [(row, by) for row, by in pairs if timeline.thread[row] != timeline.thread[by]]
    table = [(row, random.randrange(3 * MS), by, random.randrange(3 * MS)) for row, by in pairs]
    return LockWaits(*np.array(table, np.int64).reshape(-1, 4).T.copy())
