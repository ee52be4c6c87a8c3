"""Laws that estimates obey whatever a trace looks like: with late wake-ups, and with work that lasts longer than events
around it said.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork, Direction, Fills
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.groups.sequences import find_sequences
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents.analysis import PinnedMemory
from ffm.results.documents.benefit import Benefit
from ffm.results.estimates import Estimates
from ffm.results.pinning_costs import PINNED_ALONE
from ffm.results.variation import Variation
from tests.examples import examples
from tests.model.simulator import KINDS, SYNC, Call, Member, families, programs, traced, traced_together

MICROSECOND = 1_000
SECOND = 1_000_000_000


ENDS = {Action.WAIT_CONTEXT, Action.WAIT_STREAM}
"""Waits of their own, without work."""


def late(data: st.DataObject, calls: list[Call]) -> tuple[Timeline, DeviceWork]:
    """Trace a program whose thread wakes late."""
    timeline, work, gpu = traced(calls)
    waking = np.array(
        [data.draw(st.integers(0, 40)) * MICROSECOND if wait else 0 for wait in timeline.wait.tolist()], np.int64
    )
    before = np.concatenate(([0], np.cumsum(waking)[:-1])).astype(np.int64)
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + before,
        duration=timeline.duration + waking,
        wait=timeline.wait + waking,
        site=np.array([data.draw(st.integers(0, 3)) for _ in calls], np.int32),
    )
    return on_engines(data, timeline, timed(data, work, gpu))


def on_engines(data: st.DataObject, timeline: Timeline, work: DeviceWork) -> tuple[Timeline, DeviceWork]:
    """Let it be known which way copies go, and how much of the device kernels fill, or not. Some of what is enqueued
    without waiting is a copy, too.
    """
    if not data.draw(st.booleans()):
        return timeline, work
    ways = [Direction.NONE, Direction.TO_DEVICE, Direction.FROM_DEVICE]
    kind, direction = timeline.kind.copy(), np.full(len(timeline), Direction.NONE, np.uint8)
    for row, action in enumerate(work.action.tolist()):
        if action == Action.ENQUEUE:
            direction[row] = data.draw(st.sampled_from(ways))
            kind[row] = Kind.LAUNCH if direction[row] == Direction.NONE else Kind.TRANSFER
        elif action in (Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE):
            direction[row] = ways[1 + (action == Action.ENQUEUE_AND_WAIT)]
    fills = np.array([data.draw(st.sampled_from(Fills)) for _ in kind], np.uint8)
    return dataclasses.replace(timeline, kind=kind), dataclasses.replace(work, direction=direction, fills=fills)


def timed(data: st.DataObject, work: DeviceWork, gpu: NDArray[np.int64]) -> DeviceWork:
    """Let events measure all of the work's time, some of it, or none."""
    shares = {"all": [1.0], "some": [1.0, 0.7, 0.4, -1.0], "none": [-1.0]}[
        data.draw(st.sampled_from(["all", "some", "none"]))
    ]
    share = np.array([data.draw(st.sampled_from(shares)) for _ in gpu])
    enqueues = np.isin(work.action, (Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE))
    measured = np.where(enqueues & (share >= 0), gpu * share, -1).astype(np.int64)
    return dataclasses.replace(work, measured=measured)


def together(data: st.DataObject, members: list[Member]) -> tuple[Timeline, DeviceWork]:
    """Trace several threads. Some, all or none have sites in common."""
    timeline, work, gpu = traced_together(members)
    site = np.array([data.draw(st.integers(0, 3)) for _ in gpu], np.int32)
    site += 4 * data.draw(st.booleans()) * timeline.thread
    return on_engines(data, dataclasses.replace(timeline, site=site), timed(data, work, gpu))


def replay_of(timeline: Timeline, work: DeviceWork) -> Replay:
    return Replay(timeline, work, infer_gpu_times(timeline, work, 5 * MICROSECOND))


def covered(streams: int) -> st.SearchStrategy[tuple[Call, Call]]:
    """A wait, and directly after it one that covers the same work."""
    stream = st.integers(0, streams - 1)
    own = st.integers(0, 4).map(lambda value: 10 * value * MICROSECOND)

    def pair(first: int, second: int, lane: int, own: tuple[int, int]) -> tuple[Call, Call]:
        actions = [Action.WAIT_STREAM, Action.WAIT_CONTEXT]
        calls = [
            Call(actions[kind], KINDS[actions[kind]], own=time, stream=lane, problem=problem)
            for kind, time, problem in zip((min(first, second), second), own, (SYNC, Problem.NONE), strict=True)
        ]
        return calls[0], calls[1]

    return st.builds(pair, st.integers(0, 1), st.integers(0, 1), stream, st.tuples(own, own))


@given(programs(streams=4), programs(streams=4), covered(4), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_a_wait_saves_its_own_call_and_latency_if_the_next_one_covers_its_work(
    before: list[Call], after: list[Call], pair: tuple[Call, Call], data: st.DataObject
) -> None:
    calls = [*before, *pair, *after]
    timeline, work = late(data, calls)
    replay = replay_of(timeline, work)
    first = np.arange(len(calls)) == len(before)
    most = pair[0].own + replay.inference.latency_ns
    replayed = replay.selected(first)
    assert replayed.likely_s * SECOND <= most + 1
    assert replayed.low_s <= replayed.likely_s <= replayed.high_s


@given(programs(streams=4), programs(streams=4), covered(4), st.integers(0, 4), st.integers(0, 4), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_a_wait_before_a_download_saves_nothing_of_what_that_copies_behind_its_own(
    before: list[Call], after: list[Call], pair: tuple[Call, Call], sends: int, copies: int, data: st.DataObject
) -> None:
    """It saves its own call, and how late its thread wakes, and lets the GPU work while the download begins."""
    behind = 10 * copies * MICROSECOND
    download = Call(
        Action.ENQUEUE_AND_WAIT,
        Kind.TRANSFER,
        own=pair[1].own + behind,
        behind=behind,
        gpu=10 * sends * MICROSECOND,
        stream=pair[0].stream,
    )
    wait = dataclasses.replace(pair[0], action=Action.WAIT_STREAM)
    calls = [*before, wait, download, *after]
    timeline, work = late(data, calls)
    replay = replay_of(timeline, work)
    replayed = replay.selected(np.arange(len(calls)) == len(before))
    waking = timeline.wait[len(before)] - traced(calls)[0].wait[len(before)]
    most = wait.own + (download.own - behind) + max(replay.inference.latency_ns, waking)
    assert replayed.likely_s * SECOND <= most + 1
    assert replayed.low_s <= replayed.likely_s <= replayed.high_s


@given(families(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_downloads_to_pinned_memory_save_at_most_what_others_copy_behind_their_waits(
    members: list[Member], data: st.DataObject
) -> None:
    timeline, work = together(data, members)
    inference = infer_gpu_times(timeline, work, 5 * MICROSECOND)
    pinned, staged = (Replay(timeline, work, inference, copies=copies) for copies in (False, True))
    some = subset(data, (timeline.problem & SYNC) != 0)
    more = pinned.selected(some).likely_s - staged.selected(some).likely_s
    assert -rounding(pinned) <= more <= int(work.behind[some].sum()) / SECOND + rounding(pinned)


def alone(streams: int) -> st.SearchStrategy[list[Call]]:
    """Work of one stream while the others have none, a wait for it, and directly after it another one for the same."""
    microseconds = st.integers(0, 6).map(lambda value: 10 * value * MICROSECOND)
    waits = [Action.WAIT_CONTEXT, Action.WAIT_STREAM, Action.WAIT_EVENT]

    def calls(lane: int, gpu: int, gap: int, own: int, first: Action, second: Action) -> list[Call]:
        return [
            Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION),
            Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu, stream=lane),
            Call(Action.RECORD_EVENT, Kind.OTHER, gap=gap, stream=lane, event=0),
            Call(first, KINDS[first], own=own, stream=lane, event=0, problem=SYNC),
            Call(second, KINDS[second], stream=lane, event=0),
        ]

    lane = st.integers(0, streams - 1)
    return st.builds(calls, lane, *[microseconds] * 3, st.sampled_from(waits), st.sampled_from(waits))


@given(programs(streams=4), programs(streams=4), alone(4), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_it_does_whatever_the_two_wait_for_if_only_one_stream_has_work(
    before: list[Call], after: list[Call], pair: list[Call], data: st.DataObject
) -> None:
    calls = [*before, *pair, *after]
    timeline, work = late(data, calls)
    replay = replay_of(timeline, work)
    place = len(before) + len(pair) - 2
    first = np.arange(len(calls)) == place
    assert replay.selected(first).likely_s * SECOND <= calls[place].own + replay.inference.latency_ns + 1


def subset(data: st.DataObject, of: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return of & np.array([data.draw(st.booleans()) for _ in of], bool)


@given(programs(streams=4), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_no_fix_saves_more_than_the_run(calls: list[Call], data: st.DataObject) -> None:
    timeline, work = late(data, calls)
    some = subset(data, np.ones(len(calls), bool))
    end = int((timeline.start + timeline.duration + timeline.gap).max(initial=0))
    assert replay_of(timeline, work).selected(some).high_s * SECOND <= end + 1


def rounding(replay: Replay) -> float:
    """Seconds by which an estimate may contradict a law: a nanosecond for each row."""
    return len(replay.inference.likely.gpu) / SECOND


@given(programs(streams=4, misplaced=True), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_fixing_more_never_saves_less(calls: list[Call], data: st.DataObject) -> None:
    timeline, work = late(data, calls)
    replay = replay_of(timeline, work)
    more = subset(data, np.ones(len(calls), bool))
    assert replay.selected(subset(data, more)).likely_s <= replay.selected(more).likely_s + rounding(replay)


@given(families(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_fixing_more_never_saves_less_of_several_threads(members: list[Member], data: st.DataObject) -> None:
    timeline, work = together(data, members)
    replay = replay_of(timeline, work)
    more = subset(data, np.ones(len(timeline), bool))
    found = replay.selected(more)
    assert replay.selected(subset(data, more)).likely_s <= found.likely_s + rounding(replay)
    assert found.low_s <= found.likely_s <= found.high_s
    end = int((timeline.start + timeline.duration + timeline.gap).max())
    assert found.high_s * SECOND <= end + 1


def memory_to_pin(sites: int) -> st.SearchStrategy[PinnedMemory]:
    """Memory that up to 60 us must be spent on before the waits of some sites may go."""
    users = st.lists(st.integers(0, sites - 1), min_size=1, max_size=2, unique=True)
    cost = st.integers(0, 6).map(lambda value: 10 * value * MICROSECOND / SECOND)
    return st.builds(PinnedMemory, sites=users, bytes=st.just(4096), cost_s=cost)


@given(families(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_groups_save_at_least_what_their_members_save_and_at_most_everything(
    members: list[Member], data: st.DataObject
) -> None:
    """Through what all views ask: sites, folds of sites, sequences, and parts of them."""
    timeline, work = together(data, members)
    wall_s = float((timeline.start + timeline.duration + timeline.gap).max()) / SECOND
    sites = int(timeline.site.max()) + 1
    pinning = data.draw(st.lists(memory_to_pin(min(sites, PINNED_ALONE)), max_size=3))
    inference = infer_gpu_times(timeline, work, 5 * MICROSECOND)
    estimates = Estimates(timeline, work, np.zeros(sites, np.int64), wall_s, lambda: inference, pinning=pinning)
    assert estimates.replay is not None
    least = rounding(estimates.replay)

    def seconds(benefit: Benefit) -> float:
        assert benefit.replay_s is not None
        return benefit.replay_s

    def grow(parts: list[float], whole: float) -> None:
        assert max(parts, default=0.0) <= whole + least

    everything = seconds(estimates.of_everything())
    assert everything <= wall_s
    points = [seconds(point) for point in estimates.of_sites([[site] for site in range(sites)])]
    fold = np.array([data.draw(st.integers(0, 1)) for _ in range(sites)])
    folds = [np.flatnonzero(fold == number).tolist() for number in range(2)]
    for fold_sites, benefit in zip(folds, estimates.of_sites(folds), strict=True):
        grow([points[site] for site in fold_sites], seconds(benefit))
        grow([seconds(benefit)], everything)
    sequences, membership = find_sequences(timeline, sites)
    for number, sequence in enumerate(sequences):
        lines = len(sequence.lines)
        whole = seconds(estimates.of_rows(membership.rows_of(number, 0, lines - 1)))
        parts = [seconds(estimates.of_rows(membership.rows_of(number, line, line))) for line in range(lines)]
        grow(parts, whole)
        grow([whole], everything)


@given(families(), st.floats(1, 5), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_of_a_bare_run_that_is_faster_the_same_share_is_saved(
    members: list[Member], slower: float, data: st.DataObject
) -> None:
    timeline, work = together(data, members)
    traced_s = float((timeline.start + timeline.duration + timeline.gap).max()) / SECOND
    bare_s = traced_s / slower
    inference = infer_gpu_times(timeline, work, 5 * MICROSECOND)
    copies = np.zeros(int(timeline.site.max()) + 1, np.int64)
    differs = Variation(run_s=traced_s - bare_s, compared_s=bare_s or 1.0, slower=slower)
    bare = Estimates(timeline, work, copies, bare_s, lambda: inference, differs).of_everything()
    traced = Estimates(timeline, work, copies, traced_s, lambda: inference).of_everything()
    assert bare.replay_s is not None and traced.replay_s is not None
    assert abs(bare.replay_s * traced_s - traced.replay_s * bare_s) <= 1e-9 * traced_s
    assert bare.low_s is not None and bare.high_s is not None
    assert bare.low_s <= bare.replay_s + 1e-12 <= bare.high_s + 2e-12
