"""Laws of size: estimates grow with a run's times, and with what is fixed, at both ends of their intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.estimators import replay_passes
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times import fitting, inference, pauses, segment_lengths
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Problem, Timeline
from tests.examples import examples
from tests.model.estimators.test_laws import MICROSECOND, late, replay_of, rounding, subset, together
from tests.model.simulator import Call, Member, families, programs

LATENCY = 5 * MICROSECOND


def longer(factor: int, timeline: Timeline, work: DeviceWork) -> tuple[Timeline, DeviceWork]:
    """Let everything that a run does take that many times as long."""

    def times(column: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(column >= 0, factor * column, column)

    columns = {name: times(getattr(timeline, name)) for name in ("start", "duration", "wait", "gap", "first_use")}
    after_wait = None if work.after_wait is None else factor * work.after_wait
    slower = dataclasses.replace(work, measured=times(work.measured), after_wait=after_wait)
    return dataclasses.replace(timeline, **columns), slower


@contextmanager
def slower_machine(factor: int) -> Iterator[None]:
    """Let all that the model assumes of every machine take that many times as long."""
    assumed = (
        (inference, "WAKING_NS"),
        (segment_lengths, "WAKING_NS"),
        (pauses, "PAUSE_NS"),
        (fitting, "WAITED_NS"),
        (replay_passes, "WAITED_NS"),
        (segment_lengths, "WAITED_NS"),
        (inference, "SMALL_TRANSFER_NS"),
        (inference, "LEAST_SMALL_TRANSFER_NS"),
        (inference, "MOST_SMALL_TRANSFER_NS"),
    )
    with pytest.MonkeyPatch.context() as patched:
        for module, name in assumed:
            patched.setattr(module, name, factor * getattr(module, name))
        yield


@given(families(), st.sampled_from([2, 10]), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_slower_run_saves_as_much_more(members: list[Member], factor: int, data: st.DataObject) -> None:
    timeline, work = together(data, members)
    some = subset(data, np.ones(len(timeline), bool))
    slower = longer(factor, timeline, work)
    replay = Replay(timeline, work, infer_gpu_times(timeline, work, LATENCY))
    before = replay.selected(some)
    with slower_machine(factor):
        after = Replay(*slower, infer_gpu_times(*slower, factor * LATENCY)).selected(some)
    for name in ("low_s", "likely_s", "high_s"):
        assert abs(getattr(after, name) - factor * getattr(before, name)) <= 2 * factor * rounding(replay)


@given(programs(streams=4, misplaced=True), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_fixing_more_lowers_neither_end(calls: list[Call], data: st.DataObject) -> None:
    timeline, work = late(data, calls)
    replay = replay_of(timeline, work)
    more = subset(data, np.ones(len(calls), bool))
    fewer, found = replay.selected(subset(data, more)), replay.selected(more)
    assert fewer.low_s <= found.low_s + rounding(replay)
    assert fewer.high_s <= found.high_s + rounding(replay)


@given(families(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_fix_saves_at_most_what_it_touches_and_nothing_where_there_is_no_problem(
    members: list[Member], data: st.DataObject
) -> None:
    timeline, work = together(data, members)
    everything = np.ones(len(timeline), bool)
    replay = replay_of(timeline, work)
    found = replay.selected(subset(data, everything))
    assert found.likely_s <= found.touched_s + rounding(replay)
    sound = dataclasses.replace(timeline, problem=np.full(len(timeline), Problem.NONE, np.uint8))
    nothing = replay_of(sound, work).selected(everything)
    assert (nothing.low_s, nothing.likely_s, nothing.high_s) == (0.0, 0.0, 0.0)
