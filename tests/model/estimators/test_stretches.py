"""Replays that take over what an earlier one found: they say what a replay of all rows says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action
from ffm.model.estimators import stretches
from ffm.model.estimators.replay import Replay
from ffm.model.estimators.simulation.state import Fix
from ffm.model.estimators.stretches import Course
from ffm.model.timeline import Kind
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, programs, traced

BEGIN = 1_000
"""Nanoseconds: when a run's first call begins. Stretches are not compared if that is 0."""


@contextmanager
def rows_in_a_stretch(rows: int) -> Iterator[None]:
    """Divide runs into stretches of so few rows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stretches, "LEAST_ROWS", rows)
        yield


def replay_of(calls: list[Call], latency: int = 0) -> Replay:
    """A replay that is given the GPU's times, with different ones in the fast and slow timelines."""
    timeline, work, gpu = traced(calls)
    timeline = dataclasses.replace(timeline, start=timeline.start + BEGIN)
    works = (gpu, gpu + gpu // 7, gpu - gpu // 5)
    likely, slow, fast = (given_gpu_times(timeline, work, each).likely for each in works)
    inference = given_gpu_times(timeline, work, gpu)
    return Replay(
        timeline, work, dataclasses.replace(inference, likely=likely, slow=slow, fast=fast, latency_ns=latency)
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
    st.sampled_from([1, 2]).flatmap(lambda streams: programs(streams=streams, misplaced=True, max_size=40)),
    st.sampled_from([0, 3_000]),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
@settings(max_examples=examples(400), deadline=None)
def test_what_fixes_have_in_common_is_replayed_to_the_same_numbers(
    calls: list[Call], latency: int, rows: int, jump: bool, data: st.DataObject
) -> None:
    fixes = nearly_the_same(data, len(calls))
    alone = []
    for fix in fixes:
        replay = replay_of(calls, latency)
        replay._jump &= jump
        alone.append((replay.selected(fix), replay.without(fix)))
    with rows_in_a_stretch(rows):
        replay = replay_of(calls, latency)
        replay._jump &= jump
        assert [(replay.selected(fix), replay.without(fix)) for fix in fixes] == alone


def turn() -> list[Call]:
    """A launch and a wait for it that is not needed, then both with one that is."""
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, own=1_000, gpu=20_000, gap=2_000)
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=500, gap=9_000)
    return [launch, dataclasses.replace(wait, problem=SYNC), launch, wait]


def test_only_stretches_near_a_difference_are_visited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    visited: list[int] = []
    follow = Course.follow

    def counted(course: Course, way: int, state: object, visit: object) -> None:
        def noted(part: Fix, until: int) -> None:
            visited.append(until)
            visit(part, until)  # type: ignore[operator]

        follow(course, way, state, noted)  # type: ignore[arg-type]

    monkeypatch.setattr(Course, "follow", counted)
    replay_of(turn() * 30)
    with rows_in_a_stretch(4):
        replay = replay_of(turn() * 30)
        replay._jump = False
        rows = np.array([bool(call.problem) for call in turn() * 30], bool)
        replay.selected(rows)
        assert len(visited) == 4 * 30
        visited.clear()
        rows[41] = False
        replay.selected(rows)
        assert set(visited) <= {44, 48}
