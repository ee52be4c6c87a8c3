"""Replays of processes in which several threads call the driver: by hand, and by laws that must hold."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import fields
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork, LockWaits
from ffm.model.estimators.faster import Faster
from ffm.model.estimators.lateness import Starved, sharing_processors
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.fitting import visiting_order
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.timelines import Inference
from ffm.model.timeline import Kind, Timeline
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import LEGACY, SYNC, Call, Member, families, programs, traced, traced_together

MS = 1_000_000


def ends_of(replay: Replay, rows: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return by how many nanoseconds each thread ends earlier, in each pass that replays a fix of these rows."""
    found: list[NDArray[np.int64]] = []
    savings = replay._end.savings

    def noted(early: NDArray[np.int64]) -> tuple[float, float, float]:
        found.append(early.copy())
        return savings(early)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replay._end, "savings", noted)
        replay.selected(rows)
    return found


def launch(own: int = 0, gpu: int = 0, gap: int = 0, stream: int = 0) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, own * MS, gpu * MS, gap * MS, stream)


def download(own: int = 0, gpu: int = 0, gap: int = 0, stream: int = 0) -> Call:
    return Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own * MS, gpu * MS, gap * MS, stream)


def exact(members: list[Member]) -> Replay:
    timeline, work, gpu = traced_together(members)
    return Replay(timeline, work, given_gpu_times(timeline, work, gpu))


def test_a_thread_that_joins_none_stays_late_after_a_join_of_others() -> None:
    """After it has joined a thread, 30 ms of its download disappear, and it waits longer for a kernel of 100 ms."""
    main = [launch(gap=10), launch(gpu=100), download(own=30), launch(gap=5)]
    replay = exact([Member(0, 0, main), Member(0, MS, [launch(own=4, stream=3)], within=0, after=0)])
    call = np.array([0, 0, 30 * MS, 0, 0], np.int64)
    assert replay.changed(dataclasses.replace(Faster.nothing(5), call=call)).likely_s == 0


def test_what_a_thread_enqueues_at_the_end_of_a_long_call_no_wait_before_that_is_for() -> None:
    """One thread takes 50 ms to launch a kernel. Meanwhile, another one waits for the device, which is idle."""
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=MS)
    timeline, work, gpu = traced_together(
        [Member(0, 0, [launch(own=50, gpu=20, stream=1)]), Member(0, 10 * MS, [wait, wait])]
    )
    assert visiting_order(timeline, work).tolist() == [1, 2, 0]
    assert given_gpu_times(timeline, work, gpu).likely.gpu.tolist() == [20 * MS, 0, 0]


def test_what_overlaps_does_not_make_threads_later_with_each_turn() -> None:
    """One thread takes 50 ms to launch a kernel. 5 ms before the end, another one waits for the device, which is idle.
    8 ms after that, it lets the first one go on. The last of its waits is not needed.

    Were that wait for the kernel, it would last 5 ms longer. So would the next one, and the first thread goes on later
    by as much in each turn.
    """
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=MS, gap=59 * MS)
    turns = 20
    timeline, work, gpu = traced_together(
        [
            Member(0, 0, [launch(own=50, gap=10, stream=1)] * turns),
            Member(0, 45 * MS, [wait] * (turns - 1) + [dataclasses.replace(wait, problem=SYNC)]),
        ]
    )
    launches = np.arange(turns, dtype=np.int64)
    at_once = np.zeros(turns, np.int64)
    locks = LockWaits(row=launches, after=at_once, by=launches + turns, released=at_once + 8 * MS)
    work = dataclasses.replace(work, locks=locks)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    for early in ends_of(replay, np.arange(2 * turns) == 2 * turns - 1):
        assert early.tolist() == [0, MS]


@dataclasses.dataclass(frozen=True)
class Run:
    timeline: Timeline
    work: DeviceWork
    inference: Inference

    @property
    def replay(self) -> Replay:
        return Replay(self.timeline, self.work, self.inference)


def run_of(members: list[Member], seed: int) -> Run:
    """A run in which threads wake late, and let each other go on, by chance; sites are shared."""
    random = Random(seed)
    timeline, work, _ = traced_together(members)
    waking = np.array([random.choice([0, 0, 5_000, 40_000, MS]) if wait else 0 for wait in timeline.wait.tolist()])
    later = np.zeros(len(timeline), np.int64)
    for thread in range(len(members)):
        mine = timeline.thread == thread
        later[mine] = np.cumsum(waking[mine]) - waking[mine]
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + later,
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
        site=np.array([random.randrange(4) for _ in range(len(timeline))], np.int32),
    )
    work = dataclasses.replace(work, locks=lock_waits(timeline, random))
    return Run(timeline, work, infer_gpu_times(timeline, work, 5_000))


def lock_waits(timeline: Timeline, random: Random) -> LockWaits:
    """Let gaps end when a row of another thread is over that ends meanwhile, by chance."""
    end = timeline.start + timeline.duration
    waits = []
    for row, by in itertools.product(range(len(timeline)), repeat=2):
        other = timeline.thread[row] != timeline.thread[by]
        if other and end[row] < end[by] <= end[row] + timeline.gap[row] and random.random() < 0.5:
            waits.append((row, 0, by, 0))
    return LockWaits(*np.array(waits, np.int64).reshape(-1, 4).T.copy())


def of_one_process(members: list[Member]) -> list[Member]:
    return [dataclasses.replace(member, process=0) for member in members]


def on_a_stream_of_its_own(calls: list[Call]) -> list[Call]:
    whole = (Action.WAIT_CONTEXT, Action.WAIT_STREAM)
    return [dataclasses.replace(call, action=Action.WAIT_STREAM) if call.action in whole else call for call in calls]


def apart(members: list[Member]) -> list[Member]:
    """Give each thread a stream and events of its own."""
    events = 1 + max(call.event for member in members for call in member.calls)

    def own(number: int, call: Call) -> Call:
        event = call.event if call.event < 0 else number * events + call.event
        return dataclasses.replace(call, stream=LEGACY + 1 + number, event=event)

    return [
        dataclasses.replace(member, calls=[own(number, call) for call in on_a_stream_of_its_own(member.calls)])
        for number, member in enumerate(members)
    ]


def subset(data: st.DataObject, of: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.logical_and(of, [data.draw(st.booleans()) for _ in of])


@given(families().map(of_one_process), st.integers(0, 1 << 16), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_no_thread_ends_later_than_it_did(members: list[Member], seed: int, data: st.DataObject) -> None:
    """Not even if what removed waits waited for, and how late they woke, recurs at others."""
    assume(len(members) > 1)
    run = run_of(members, seed)
    for early in ends_of(run.replay, subset(data, np.ones(len(run.timeline), bool))):
        assert early.min() >= 0


@given(families().map(of_one_process).map(apart), st.integers(0, 1 << 16), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_removing_more_never_saves_less(members: list[Member], seed: int, data: st.DataObject) -> None:
    """Unless threads share a stream: work that comes earlier then delays another thread's."""
    run = run_of(members, seed)
    more = subset(data, np.ones(len(run.timeline), bool))
    less = run.replay.selected(subset(data, more))
    found = run.replay.selected(more)
    assert less.likely_s <= found.likely_s + len(more) / 1e9
    assert found.low_s <= found.likely_s <= found.high_s


def copies(calls: list[Call], begins: list[int], seed: int) -> tuple[Run, NDArray[np.bool_]]:
    """Return a run of threads that do the same on a stream each, and which rows are the first one's."""
    random = np.random.default_rng(seed)
    timeline, work, gpu = traced(calls)
    waking = np.where(timeline.wait > 0, random.integers(0, 30_000, len(calls)), 0)
    later = np.cumsum(waking) - waking
    count, rows = len(begins), len(calls)
    thread = np.repeat(np.arange(count, dtype=np.int32), rows)
    columns = {field.name: np.tile(getattr(timeline, field.name), count) for field in fields(Timeline)}
    columns["thread"] = thread
    columns["start"] += np.tile(later, count) + np.repeat(np.array(begins, np.int64), rows)
    columns["duration"] += np.tile(waking, count)
    columns["wait"] += np.tile(waking, count)
    together = dataclasses.replace(
        work,
        action=np.tile(work.action, count),
        stream=np.where(np.tile(work.stream, count) >= 0, thread, -1).astype(np.int32),
        event=np.tile(work.event, count),
        partner=np.tile(work.partner, count),
        copied=np.tile(work.copied, count),
        after_wait=np.tile(work.behind, count),
        measured=np.full(count * rows, -1, np.int64),
        process_of_thread=np.zeros(count, np.int32),
        legacy=np.full(1, -1, np.int32),
        stream_process=np.zeros(count, np.int32),
        independent=np.ones(count, bool),
    )
    made = Timeline(**columns)
    inference = dataclasses.replace(given_gpu_times(made, together, np.tile(gpu, count)), latency_ns=4_000)
    return Run(made, together, inference), thread == 0


def shares_processors(run: Run) -> bool:
    latency, usual = run.inference.likely.latency, run.inference.latency_ns
    nothing = np.zeros(len(run.timeline), np.int64)
    return bool(sharing_processors(run.timeline, run.work, latency, usual, Starved(nothing, nothing)).any())


@given(
    programs(max_size=20).map(on_a_stream_of_its_own).filter(bool),
    st.lists(st.integers(0, 300_000), min_size=2, max_size=4),
    st.integers(0, 1 << 16),
    st.data(),
)
@settings(max_examples=examples(150), deadline=None)
def test_copies_of_a_program_save_together_what_it_saves_alone(
    calls: list[Call], begins: list[int], seed: int, data: st.DataObject
) -> None:
    fixed = subset(data, np.ones(len(calls), bool))
    alone, _ = copies(calls, begins[:1], seed)
    together, _ = copies(calls, begins, seed)
    assume(not shares_processors(together))
    expected, found = alone.replay.selected(fixed), together.replay.selected(np.tile(fixed, len(begins)))
    assert found.likely_s == expected.likely_s
    assert found.high_s == expected.high_s
    assert found.low_s >= expected.low_s


def renumbered(run: Run, new: NDArray[np.int64]) -> tuple[Run, NDArray[np.int64]]:
    """Return the run with each thread's number changed, and which row each of its rows was."""
    rows = np.argsort(new[run.timeline.thread], kind="stable")
    was = np.argsort(new)
    timeline = Timeline(**{field.name: getattr(run.timeline, field.name)[rows] for field in fields(Timeline)})
    timeline = dataclasses.replace(timeline, thread=new[timeline.thread].astype(np.int32))
    place = np.argsort(rows)
    locks = run.work.locks
    assert locks is not None
    by_row = ("action", "stream", "event", "copied", "after_wait", "measured")
    work = dataclasses.replace(
        run.work,
        **{name: getattr(run.work, name)[rows] for name in by_row},
        process_of_thread=run.work.process_of_thread[was],
        locks=dataclasses.replace(locks, row=place[locks.row], by=place[locks.by]),
    )
    return Run(timeline, work, infer_gpu_times(timeline, work, 5_000)), rows


@given(families().map(of_one_process), st.integers(0, 1 << 16), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_the_numbers_of_threads_do_not_matter(members: list[Member], seed: int, data: st.DataObject) -> None:
    """But for calls at the same time, and for which of several threads is taken for the one that started another."""
    apart = [dataclasses.replace(member, begins=member.begins + (1 << number)) for number, member in enumerate(members)]
    run = run_of(apart, seed)
    new = np.array(data.draw(st.permutations(range(len(members)))), np.int64)
    other, rows = renumbered(run, new)
    before, after = run.replay, other.replay
    family, again = before._passes._related, after._passes._related
    assume((again.parent[new] == np.where(family.parent >= 0, new[family.parent], -1)).all())
    assume((again.follows[new] == np.where(family.follows >= 0, new[family.follows], -1)).all())
    assume((rows[other.inference.order] == run.inference.order).all())
    some = subset(data, np.ones(len(rows), bool))
    assert after.selected(some[rows]) == before.selected(some)


def test_a_removed_wait_of_one_thread_leaves_the_next_to_another_stream() -> None:
    """Two threads wait for kernels of their own, 5 ms late: for the first without need, for the second one again."""
    calls = [launch(gpu=10), Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, problem=SYNC), launch(gap=1)]
    calls += [Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION)]
    alone, _ = copies(calls, [0], 1)
    together, _ = copies(calls, [0, 3 * MS], 1)
    fixed = np.array([bool(call.problem) for call in calls])
    expected, found = alone.replay.selected(fixed), together.replay.selected(np.tile(fixed, 2))
    assert (found.low_s, found.likely_s, found.high_s) == (expected.low_s, expected.likely_s, expected.high_s)
