"""What is to blame for waiting, on worked examples of CASITA's dissertation (Dietrich 2019) and on random programs."""

from __future__ import annotations

import pytest
from hypothesis import given

from ffm.model.device import Action
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind
from ffm.model.waiting.blame import Blame, find_blame, find_idlers
from ffm.model.waiting.graph import Graph, build_graph
from ffm.model.waiting.meetings import Meetings, joined_teams
from ffm.model.waiting.path import Part, cut_path
from ffm.model.waiting.patterns import find_patterns
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, Member, families, traced, traced_together

MS = 1_000_000


def launch(gpu: int, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu * MS, gap=gap * MS, stream=stream)


def wait(gap: int = 0, action: Action = Action.WAIT_CONTEXT, stream: int = 1) -> Call:
    return Call(action, Kind.SYNCHRONIZATION, gap=gap * MS, stream=stream)


def blamed(calls: list[Call]) -> tuple[Graph, Blame]:
    timeline, work, gpu = traced(calls)
    times = given_gpu_times(timeline, work, gpu)
    graph = build_graph(timeline, work, times, times.likely)
    return graph, find_blame(timeline, work, graph, Meetings.none())


def idle(calls: list[Call]) -> list[tuple[int, str, int]]:
    """Return each piece's row, its part and its milliseconds."""
    timeline, work, _ = traced(calls)
    graph, _ = blamed(calls)
    pieces = cut_path(timeline, work, graph, find_idlers(timeline, work, graph, Meetings.none()))
    parts = (Part(part).name for part in pieces.part.tolist())
    return list(zip(pieces.row.tolist(), parts, ((pieces.end - pieces.begin) // MS).tolist(), strict=True))


def test_kernels_are_blamed_for_waits_and_the_host_for_the_idle_gpu() -> None:
    """6.5.1: twice a kernel of 0.6 s, 0.3 s of the CPU beside it, a wait, and 0.3 s of the CPU (`blame_host`). The
    kernels are to blame for 0.3 s each. Figure 6.5 shares the 0.3 s of idle GPU in thirds, because CASITA walks past
    the wait to the launch before; 4.1.2 stops at the wait, so that all of it is that of `blame_host`.
    """
    calls = [launch(600, gap=300), wait(gap=300), launch(600, gap=300), wait(gap=300)]
    _, blame = blamed(calls)
    assert blame.work.tolist() == [300 * MS, 0, 300 * MS, 0]
    assert idle(calls) == [(1, "WORK", 300)]


def test_a_wait_is_shared_by_the_runtime_of_the_work() -> None:
    """Of 4 ms and 6 ms of work the CPU waits for 5."""
    _, blame = blamed([launch(4), launch(6, gap=5), wait()])
    assert blame.work.tolist() == [2 * MS, 3 * MS, 0]


def test_work_that_was_waited_for_before_is_not_blamed_again() -> None:
    _, blame = blamed([launch(4), wait(), launch(6), wait()])
    assert blame.work.tolist() == [4 * MS, 0, 6 * MS, 0]


def test_work_of_which_a_part_was_waited_for_before_is_blamed_for_the_rest() -> None:
    """Stream 2 is waited for first, for 4 ms; stream 1 then for 5 ms more."""
    _, blame = blamed([launch(9), launch(4, stream=2), wait(action=Action.WAIT_STREAM, stream=2), wait()])
    assert blame.work.tolist() == [5 * MS, 4 * MS, 0, 0]


@given(families())
def test_blame_adds_up_to_what_was_found(members: list[Member]) -> None:
    timeline, work, gpu = traced_together(members)
    times = given_gpu_times(timeline, work, gpu)
    graph = build_graph(timeline, work, times, times.likely)
    teams = joined_teams(timeline, Replay(timeline, work, times).threads)
    blame = find_blame(timeline, work, graph, teams)
    assert int(blame.work.sum()) == int(graph.waited.sum())
    assert (blame.work >= 0).all()
    assert not blame.work[~graph.works].any()
    found = find_patterns(timeline, work, graph, teams)
    idlers = find_idlers(timeline, work, graph, teams)
    assert int((idlers.end - idlers.begin).sum()) == sum(use.idle for use in found.gpu)
    assert blame.threads.blame.sum() + blame.threads.on_meeting.sum() == pytest.approx(found.imbalance.lasting)
