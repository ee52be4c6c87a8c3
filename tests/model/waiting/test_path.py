"""The graph of waits, and the critical path through it, on worked examples and on random programs."""

from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.compiled import compiled
from ffm.model.device import Action, DeviceWork, ThreadLives
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.searching import place_of
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting import graph_kernels, path_kernels, piece_kernels
from ffm.model.waiting.agreement import Moves, OnPath, agreement, moves_of
from ffm.model.waiting.graph import LATEST_LAUNCH_NS, Graph, Reason, Threads, build_graph
from ffm.model.waiting.path import (
    Owners,
    Part,
    Path,
    find_stretches,
    time_by_owner,
    time_by_part,
)
from tests.examples import examples
from tests.model.compiling import alone
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, Member, families, programs, traced, traced_together
from tests.model.whole_path import find_path

MS = 1_000_000


def launch(gpu: int, own: int = 0, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, own=own * MS, gpu=gpu * MS, gap=gap * MS, stream=stream)


def wait(gap: int = 0, action: Action = Action.WAIT_CONTEXT, stream: int = 1, event: int = -1) -> Call:
    return Call(action, Kind.SYNCHRONIZATION, gap=gap * MS, stream=stream, event=event)


def followed(calls: list[Call], late: int = 0) -> tuple[Timeline, Graph, Path]:
    """Return the path of a program with the true times of the GPU, as a profiler records them; its work begins `late`
    nanoseconds later than it could, and so ends the last wait.
    """
    timeline, work, gpu = traced(calls)
    graph = graph_of(timeline, work, gpu)
    if late:
        work = dataclasses.replace(work, measured=gpu, began=np.where(graph.works, graph.gpu_begin + late, -1))
        waits = timeline.wait > 0
        timeline = dataclasses.replace(
            timeline, duration=timeline.duration + late * waits, wait=timeline.wait + late * waits
        )
        graph = graph_of(timeline, work, gpu)
    return timeline, graph, find_path(timeline, work, graph)


def graph_of(timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64]) -> Graph:
    inference = given_gpu_times(timeline, work, gpu)
    return build_graph(timeline, work, inference, inference.likely)


def pieces(path: Path) -> list[tuple[int, str, int]]:
    """Return each piece's row, its part and its milliseconds."""
    lasting = (path.end - path.begin) // MS
    return list(zip(path.row.tolist(), (Part(part).name for part in path.part.tolist()), lasting.tolist(), strict=True))


def seconds(path: Path, part: Part) -> int:
    return int((path.end - path.begin)[path.part == part].sum())


def test_the_path_leaves_a_wait_for_the_work_that_ended_it() -> None:
    """The CPU prepares 2 ms, launches 6 ms of work in 1 ms, does 2 ms of its own, and waits for the other 4."""
    _, graph, path = followed([launch(1, gap=2), launch(6, own=1, gap=2), wait(gap=4)])
    assert graph.cause.tolist() == [-1, -1, 1]
    assert graph.waited.tolist() == [0, 0, 4 * MS]
    assert pieces(path) == [(0, "WORK", 2), (1, "CALL", 1), (1, "GPU", 6), (2, "WORK", 4)]


def test_work_that_was_queued_leads_to_the_work_before_it() -> None:
    _, graph, path = followed([launch(4), launch(5), wait()])
    assert graph.gpu_after.tolist() == [-1, 0, -1]
    assert Reason(graph.gpu_reason[1]) is Reason.STREAM
    assert pieces(path) == [(0, "GPU", 4), (1, "GPU", 5)]


def test_an_event_leads_to_the_work_before_it() -> None:
    """Stream 2 waits for the event after the work of stream 1."""
    record = Call(Action.RECORD_EVENT, Kind.OTHER, stream=1, event=0)
    after = Call(Action.STREAM_WAIT_EVENT, Kind.OTHER, stream=2, event=0)
    _, graph, path = followed([launch(4), record, after, launch(5, stream=2), wait()])
    assert graph.gpu_after[3] == 0
    assert Reason(graph.gpu_reason[3]) is Reason.EVENT
    assert [row for row, part, _ in pieces(path) if part == "GPU"] == [0, 3]


def test_the_default_stream_comes_after_all_others() -> None:
    _, graph, _ = followed([launch(4), launch(5, stream=0), wait()])
    assert graph.gpu_after[1] == 0
    assert Reason(graph.gpu_reason[1]) is Reason.LEGACY


def test_a_wait_for_an_event_does_not_lead_to_later_work() -> None:
    record = Call(Action.RECORD_EVENT, Kind.OTHER, stream=1, event=0)
    waiting = wait(gap=9, action=Action.WAIT_EVENT, event=0)
    _, graph, path = followed([launch(4), record, launch(5), waiting])
    assert graph.cause[3] == 0
    assert pieces(path) == [(0, "GPU", 4), (3, "WORK", 9)]


def test_a_wait_for_nothing_has_no_cause() -> None:
    """CASITA calls it late."""
    _, graph, path = followed([launch(1, gap=5), wait(gap=1)])
    assert graph.cause.tolist() == [-1, -1]
    assert seconds(path, Part.GPU) == 0


def test_a_kernel_that_the_cpu_does_not_wait_for_ends_the_run() -> None:
    _, _, path = followed([launch(1), launch(9, own=2)])
    assert pieces(path) == [(1, "CALL", 2), (1, "GPU", 9)]


def test_what_a_profiler_saw_between_launch_and_work_is_overhead() -> None:
    """The work begins 10 us after its launch returned."""
    _, graph, path = followed([launch(6, own=1), wait(gap=1)], late=10_000)
    assert graph.gpu_after[0] == -1
    assert seconds(path, Part.REST) == 10_000
    assert seconds(path, Part.CALL) == MS
    assert seconds(path, Part.GPU) == 6 * MS


def test_work_that_begins_long_after_its_launch_waited_for_something_unknown() -> None:
    """As in a trace that begins while the GPU is busy."""
    _, _, path = followed([launch(6), wait(gap=1)], late=LATEST_LAUNCH_NS + 1)
    assert seconds(path, Part.UNKNOWN) == LATEST_LAUNCH_NS + 1


def test_work_waits_for_another_stream_that_has_the_engine() -> None:
    """Nothing orders the streams, but the second work began when the first was over."""
    timeline, work, gpu = traced([launch(4), launch(5, stream=2), wait()])
    began = np.array([0, 4 * MS + 1_000, -1])
    work = dataclasses.replace(work, measured=gpu, began=began)
    graph = graph_of(timeline, work, gpu)
    assert graph.gpu_after[1] == 0
    assert Reason(graph.gpu_reason[1]) is Reason.ENGINE


def test_work_begins_beside_the_last_blocks_of_another_stream() -> None:
    """The second kernel began in the last 0.03 of 4 ms of the first: before, there was no room for it."""
    assert after_what(began=4 * MS - 30_000) == (0, Reason.ENGINE)


def test_work_beside_half_of_other_work_waited_for_something_else() -> None:
    assert after_what(began=2 * MS) == (-1, Reason.LAUNCH)


def test_the_gpu_may_run_first_what_was_launched_last() -> None:
    """Of two kernels that each fill the GPU, it began with the second."""
    timeline, work, gpu = traced([launch(5), launch(4, stream=2), wait()])
    began = np.array([4 * MS - 30_000, 0, -1])
    work = dataclasses.replace(work, measured=gpu, began=began, independent=np.array([False, False, True]))
    assert graph_of(timeline, work, gpu).gpu_after.tolist()[:2] == [1, -1]


def after_what(began: int) -> tuple[int, Reason]:
    """Return what the second of two kernels came after, which are on two streams, and when the first takes 4 ms."""
    timeline, work, gpu = traced([launch(4), launch(5, stream=2), wait()])
    work = dataclasses.replace(
        work, measured=gpu, began=np.array([0, began, -1]), independent=np.array([False, False, True])
    )
    graph = graph_of(timeline, work, gpu)
    return int(graph.gpu_after[1]), Reason(graph.gpu_reason[1])


def test_a_kernel_and_the_host_after_it_share_the_path() -> None:
    """Dietrich 2019, 6.5.1: twice a kernel of 0.6 s, 0.3 s of the CPU beside it, a wait, and 0.3 s of the CPU while the
    GPU is idle. To the end of the last wait these are 1.5 s, of them 1.2 on the GPU.
    """
    _, graph, path = followed([launch(600, gap=300), wait(gap=300), launch(600, gap=300), wait()])
    assert graph.waited.tolist() == [0, 300 * MS, 0, 300 * MS]
    assert path.length == 1500 * MS
    assert seconds(path, Part.GPU) == 1200 * MS
    assert pieces(path)[1] == (1, "WORK", 300)


def test_the_path_goes_through_the_thread_that_was_joined_last() -> None:
    """The main thread calls once, then lets two threads work; the second needs longer."""
    main = [Call(Action.NONE, Kind.OTHER, own=MS), Call(Action.NONE, Kind.OTHER, own=MS)]
    short = [Call(Action.NONE, Kind.OTHER, own=2 * MS)]
    long = [Call(Action.NONE, Kind.OTHER, own=2 * MS, gap=3 * MS), Call(Action.NONE, Kind.OTHER, own=2 * MS)]
    timeline, work, gpu = traced_together([Member(0, 0, main), Member(0, 0, short, 0, 0), Member(0, 0, long, 0, 0)])
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    path = find_path(timeline, work, graph_of(timeline, work, gpu), replay.threads)
    threads = timeline.thread[path.row].tolist()
    assert threads == [0, 2, 2, 2, 0, 0]
    assert path.length == 11 * MS


def test_the_path_goes_from_a_thread_to_the_call_after_which_it_was_started() -> None:
    """The main thread starts another one while it works itself, and joins it at its last call. Before that one's first
    call, it works for 2 ms.
    """
    main = [
        Call(Action.NONE, Kind.OTHER, own=MS, gap=3 * MS),
        Call(Action.NONE, Kind.OTHER, own=MS, gap=20 * MS),
        Call(Action.NONE, Kind.OTHER, own=MS),
    ]
    other = [Call(Action.NONE, Kind.OTHER, own=4 * MS, gap=9 * MS), Call(Action.NONE, Kind.OTHER, own=MS)]
    timeline, work, gpu = traced_together([Member(0, 0, main), Member(0, 4 * MS, other)])
    lives = ThreadLives(
        before=np.array([-1, 2 * MS]),
        parent=np.array([-1, 0], np.int32),
        started=np.array([-1, 1]),
        joined=np.array([-1, 2]),
    )
    work = dataclasses.replace(work, lives=lives)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    path = find_path(timeline, work, graph_of(timeline, work, gpu), replay.threads)
    assert [(int(timeline.thread[row]), part, lasting) for row, part, lasting in pieces(path)] == [
        (0, "CALL", 1),
        (0, "WORK", 1),
        (1, "START", 2),
        (1, "CALL", 4),
        (1, "WORK", 9),
        (1, "CALL", 1),
        (0, "WORK", 7),
        (0, "CALL", 1),
    ]


def test_the_path_ends_where_threads_are_said_to_have_started_each_other() -> None:
    work_of_both = [Call(Action.NONE, Kind.OTHER, own=MS), Call(Action.NONE, Kind.OTHER, own=MS, gap=MS)]
    timeline, work, gpu = traced_together([Member(0, 0, work_of_both), Member(0, MS, work_of_both)])
    lives = ThreadLives(
        before=np.array([0, MS]),
        parent=np.array([1, 0], np.int32),
        started=np.array([2, 0]),
        joined=np.array([-1, -1]),
    )
    work = dataclasses.replace(work, lives=lives)
    graph = graph_of(timeline, work, gpu)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    joins(find_path(timeline, work, graph, replay.threads), timeline, graph)


@given(families(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_the_path_covers_runs_whose_threads_were_recorded(members: list[Member], random: Random) -> None:
    timeline, work, gpu = traced_together(members)
    work = dataclasses.replace(work, lives=made_lives(timeline, work, random))
    graph = graph_of(timeline, work, gpu)
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    joins(find_path(timeline, work, graph, replay.threads), timeline, graph)


def made_lives(timeline: Timeline, work: DeviceWork, random: Random) -> ThreadLives:
    """Let some threads be started by earlier ones of their process, and joined by any other that calls later."""
    count = len(work.process_of_thread)
    begins = np.searchsorted(timeline.thread, np.arange(count + 1))
    end = timeline.start + timeline.duration
    lives = ThreadLives.unknown(count)
    for thread in range(1, count):
        same = [other for other in range(thread) if work.process_of_thread[other] == work.process_of_thread[thread]]
        if not same or begins[thread] == begins[thread + 1] or random.random() < 0.3:
            continue
        parent, joiner, before = random.choice(same), random.choice(same), random.randrange(5 * MS)
        of_parent = timeline.start[begins[parent] : begins[parent + 1]]
        lives.before[thread], lives.parent[thread] = before, parent
        born = timeline.start[begins[thread]] - before
        lives.started[thread] = begins[parent] + np.searchsorted(of_parent, born)
        of_joiner = timeline.start[begins[joiner] : begins[joiner + 1]]
        row = begins[joiner] + np.searchsorted(of_joiner, end[begins[thread + 1] - 1])
        if row < begins[joiner + 1] and random.random() < 0.7:
            lives.joined[thread] = row
    return lives


def test_the_path_of_a_thread_that_follows_another_goes_through_its_waits() -> None:
    """The first thread waits 4 ms for a kernel, then the second, which did nothing for 4 of its 5 ms, goes on."""
    leader = [launch(4), wait(gap=1)]
    follower = [Call(Action.NONE, Kind.OTHER, gap=5 * MS), Call(Action.NONE, Kind.OTHER, own=2 * MS)]
    timeline, work, gpu = traced_together([Member(0, 0, leader), Member(0, 0, follower)])
    follows = dataclasses.replace(Threads.unrelated(2), follows=np.array([-1, 0], np.int32))
    path = find_path(timeline, work, graph_of(timeline, work, gpu), follows)
    assert [(int(timeline.thread[row]), part, lasting) for row, part, lasting in pieces(path)] == [
        (0, "GPU", 4),
        (1, "WORK", 1),
        (1, "CALL", 2),
    ]


def joins(path: Path, timeline: Timeline, graph: Graph) -> None:
    """Assert that the pieces cover the run, each nanosecond once."""
    if not len(timeline):
        assert path.length == 0
        return
    over = max(int((timeline.start + timeline.duration + timeline.gap).max()), int(graph.gpu_end.max()))
    lasting = over - int(timeline.start.min())
    assert (path.begin[1:] == path.end[:-1]).all()
    assert (path.end > path.begin).all()
    assert path.length == lasting == int((path.end - path.begin).sum())
    if lasting:
        assert path.begin[0] == timeline.start.min()


@given(programs(streams=4))
def test_with_true_times_each_wait_has_its_cause_and_no_time_is_unexplained(calls: list[Call]) -> None:
    timeline, work, gpu = traced(calls)
    graph = graph_of(timeline, work, gpu)
    waits = timeline.wait > 0
    assert (graph.waited == timeline.wait).all()
    assert (graph.cause[waits] >= 0).all()
    path = find_path(timeline, work, graph)
    joins(path, timeline, graph)
    assert not np.isin(path.part, (Part.REST, Part.UNKNOWN)).any()


def owned(timeline: Timeline) -> Owners:
    """Give each call, each piece of GPU work, the CPU work after each row, and all before, to an owner of its own."""
    rows = np.arange(len(timeline), dtype=np.int32)
    count = len(timeline)
    return Owners(rows, rows + count, rows + 2 * count, 3 * count, 3 * count + 1)


def sums_of(path: Path, timeline: Timeline) -> tuple[list[int], list[int]]:
    """Return a path's nanoseconds by part, and by owner as `owned` has them."""
    owners, lasting = owned(timeline), path.end - path.begin
    owner = np.select(
        [path.part == Part.GPU, path.part == Part.WORK, path.part == Part.START],
        [owners.gpu[path.row], owners.after[path.row], np.full(len(path.row), owners.before)],
        owners.call[path.row],
    )
    on_transfer = (path.part == Part.GPU) & (timeline.kind[path.row] == Kind.TRANSFER)
    part = np.where(on_transfer, len(Part), path.part)
    sums = np.zeros(len(Part) + 1, np.int64), np.zeros(owners.count, np.int64)
    np.add.at(sums[0], part, lasting)
    np.add.at(sums[1], owner, lasting)
    return sums[0].tolist(), sums[1].tolist()


@given(st.data(), families())
def test_pieces_join_whatever_is_known_of_the_gpu(data: st.DataObject, members: list[Member]) -> None:
    """Also with wrong times of the GPU, and with threads that start each other."""
    timeline, work, gpu = traced_together(members)
    wrong = np.array([data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for _ in gpu])
    told = (gpu * wrong).astype(np.int64)
    for times in (infer_gpu_times(timeline, work, 5_000), given_gpu_times(timeline, work, told)):
        threads = Replay(timeline, work, times).threads
        paths, stretches = [], []
        for one in (times.likely, times.slow, times.fast):
            graph = build_graph(timeline, work, times, one)
            path = find_path(timeline, work, graph, threads)
            joins(path, timeline, graph)
            paths.append(path)
            stretches.append(find_stretches(timeline, work, graph, threads))
            by_part = time_by_part(timeline, work, graph, stretches[-1]).tolist()
            by_owner = time_by_owner(timeline, work, graph, stretches[-1], owned(timeline)).tolist()
            assert (by_part, by_owner) == sums_of(path, timeline)
        places = [Moves(path.begin, path.lane.astype(np.int32), int(path.end.max(initial=0))) for path in paths]
        whole = agreement(places)
        assert 0 <= whole <= 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ffm.model.waiting.agreement.COMPARED_AT_ONCE", 2)
            assert agreement(places) == whole
        assert agreement([moves_of(timeline, work, one) for one in stretches]) == whole
        assert agreement([OnPath(timeline, work, one) for one in stretches]) == whole
        assert agreement([places[0], places[0]]) == 1


@given(st.data(), programs(streams=4))
def test_pieces_join_whatever_a_profiler_recorded(data: st.DataObject, calls: list[Call]) -> None:
    timeline, work, gpu = traced(calls)
    late = np.array([data.draw(st.integers(0, 12)) * 10_000 for _ in gpu], np.int64)
    work = dataclasses.replace(work, measured=gpu, began=np.where(gpu > 0, timeline.start + late, -1))
    graph = graph_of(timeline, work, gpu)
    joins(find_path(timeline, work, graph), timeline, graph)
    after = np.flatnonzero(graph.gpu_after >= 0)
    assert (graph.gpu_end[graph.gpu_after[after]] <= graph.gpu_begin[after]).all()


@settings(max_examples=examples(20), deadline=None)
@given(families())
@pytest.mark.thorough
def test_compiled_passes_find_the_same(members: list[Member]) -> None:
    timeline, work, gpu = traced_together(members)
    graph = graph_of(timeline, work, gpu)
    path = find_path(timeline, work, graph)
    stretches = find_stretches(timeline, work, graph)
    owners = owned(timeline)
    owner = time_by_owner(timeline, work, graph, stretches, owners)
    kernels = {}
    names = ((graph_kernels, "link"), (path_kernels, "walk"), (piece_kernels, "cut"), (piece_kernels, "tally"))
    for module, name in names:
        kernels[module, name] = getattr(module, name)
        setattr(module, name, compiled(getattr(module, name)))
    try:
        with alone():
            again = graph_of(timeline, work, gpu)
            same = find_path(timeline, work, again)
            owner_again = time_by_owner(timeline, work, again, find_stretches(timeline, work, again), owners)
    finally:
        for (module, name), kernel in kernels.items():
            setattr(module, name, kernel)
    for field in dataclasses.fields(Graph):
        assert (getattr(graph, field.name) == getattr(again, field.name)).all()
    for field in dataclasses.fields(Path):
        assert (getattr(path, field.name) == getattr(same, field.name)).all()
    assert (owner == owner_again).all()


@given(st.lists(st.integers(-5, 30)), st.integers(-7, 33), st.data())
def test_a_search_finds_the_same_wherever_it_begins(values: list[int], value: int, data: st.DataObject) -> None:
    ascending = np.array(sorted(values), np.int64)
    near = data.draw(st.integers(0, len(values)))
    assert place_of(ascending, value, near) == np.searchsorted(ascending, value)
