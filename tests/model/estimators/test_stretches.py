"""Replays that take over what an earlier one found: they say what a replay of all rows says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action
from ffm.model.estimators import stretches
from ffm.model.estimators.replay import Replay
from ffm.model.estimators.simulation.state import Fix, State
from ffm.model.estimators.stretches import Course
from ffm.model.timeline import Kind
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, programs, traced


@contextmanager
def rows_in_a_stretch(rows: int) -> Iterator[None]:
    """Divide runs into stretches of so few rows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stretches, "LEAST_ROWS", rows)
        yield


def replay_of(calls: list[Call], usual: int = 0, seed: int | None = None) -> Replay:
    """A replay that is given the GPU's times: others in the fast and slow timelines, and random latencies of waits."""
    timeline, work, gpu = traced(calls)
    works = (gpu, gpu + gpu // 7, gpu - gpu // 5)
    likely, slow, fast = (given_gpu_times(timeline, work, each).likely for each in works)
    if seed is not None:
        later = np.random.default_rng(seed).integers(0, 30_000, len(calls))
        likely, slow, fast = (
            dataclasses.replace(times, latency=np.where(times.latency >= 0, times.latency + later, times.latency))
            for times in (likely, slow, fast)
        )
    inference = given_gpu_times(timeline, work, gpu)
    return Replay(
        timeline,
        work,
        dataclasses.replace(inference, likely=likely, slow=slow, fast=fast, latency_ns=usual, waking_ns=usual // 2),
    )


def nearly_the_same(data: st.DataObject, rows: int) -> list[NDArray[np.bool_]]:
    """Draw fixes most of which differ in few rows."""
    some = np.array([data.draw(st.booleans()) for _ in range(rows)], bool)
    fixes = [some]
    for _ in range(data.draw(st.integers(1, 4))):
        other = data.draw(st.sampled_from(fixes)).copy()
        for row in data.draw(st.lists(st.integers(0, max(rows - 1, 0)), max_size=2)) if rows else []:
            other[row] = not other[row]
        fixes.append(other)
    return fixes


@given(
    st.sampled_from([1, 2, 4]).flatmap(lambda streams: programs(streams=streams, misplaced=True, max_size=40)),
    st.sampled_from([0, 3_000]),
    st.integers(0, 3),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
@settings(max_examples=examples(400), deadline=None)
def test_what_fixes_have_in_common_is_replayed_to_the_same_numbers(
    calls: list[Call], usual: int, seed: int, rows: int, jump: bool, data: st.DataObject
) -> None:
    fixes = nearly_the_same(data, len(calls))
    alone = []
    for fix in fixes:
        replay = replay_of(calls, usual, seed)
        replay._passes.jump &= jump
        alone.append((replay.selected(fix), replay.without(fix)))
    with rows_in_a_stretch(rows):
        replay = replay_of(calls, usual, seed)
        replay._passes.jump &= jump
        assert [(replay.selected(fix), replay.without(fix)) for fix in fixes] == alone


def turn(stream: int) -> list[Call]:
    """A launch and a wait for it that is not needed, then both with one that is."""
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, own=1_000, gpu=20_000, gap=2_000, stream=stream)
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=500, gap=9_000)
    return [launch, dataclasses.replace(wait, problem=SYNC), launch, wait]


def visited(monkeypatch: pytest.MonkeyPatch, replay: Replay, rows: NDArray[np.bool_]) -> list[int]:
    """Return the ends of the stretches that a replay visits."""
    ends: list[int] = []
    follow = Course.follow

    def counted(course: Course, way: int, state: State, visit: Callable[[Fix, int], None], reach: int) -> None:
        def noted(part: Fix, until: int) -> None:
            ends.append(until)
            visit(part, until)

        follow(course, way, state, noted, reach)

    with monkeypatch.context() as patched:
        patched.setattr(Course, "follow", counted)
        replay.selected(rows)
    return ends


def test_only_stretches_near_a_difference_are_visited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = turn(0) * 30
    with rows_in_a_stretch(4):
        replay = replay_of(calls)
    replay._passes.jump = False
    rows = np.array([bool(call.problem) for call in calls], bool)
    assert len(visited(monkeypatch, replay, rows)) == 4 * 30
    rows[41] = False
    assert set(visited(monkeypatch, replay, rows)) <= {44, 48}


def test_what_was_over_long_ago_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = turn(1) + turn(2) * 29
    with rows_in_a_stretch(4):
        replay = replay_of(calls)
    rows = np.zeros(len(calls), bool)
    rows[41] = True
    whole = 4  # passes that find what ran at once as measured: one for each timeline of the GPU, one without kernels
    assert len(visited(monkeypatch, replay, rows)) == 4 * 30 + whole
    rows[85] = True
    assert set(visited(monkeypatch, replay, rows)) <= {88, 92}
