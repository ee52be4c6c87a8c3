"""The run as it would have been without the probes' own time, by replaying it."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ffm.model.device import Action
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.fitting import WAITED_NS
from ffm.model.timeline import Kind
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, live, programs, traced


@given(programs().filter(bool), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_without_the_probes_the_program_ran_as_if_there_were_none(calls: list[Call], data: st.DataObject) -> None:
    """The simulated program with a probe before each call; its timeline without probes equals the program without."""
    probe = [data.draw(st.integers(0, 50_000)) for _ in calls]
    probed = [
        dataclasses.replace(call, gap=call.gap + later)
        for call, later in zip(calls, [*probe[1:], 0][: len(calls)], strict=True)
    ]
    timeline, work, gpu = traced(probed)
    assume(((timeline.wait == 0) | (timeline.wait > WAITED_NS)).all())  # shorter ones do not count as waits
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    found = replay.without_probes(np.array([0, *probe[1:]]))
    expected = live(calls, [False] * len(calls))
    assert (found.start - found.start[0]).tolist() == [start - expected.start[0] for start in expected.start]
    assert found.duration.tolist() == expected.duration
    assert found.wait.tolist() == expected.wait


@given(programs(streams=4), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_probes_that_seem_longer_than_the_time_between_calls_turn_no_time_back(
    calls: list[Call], data: st.DataObject
) -> None:
    """What they cost is known on average only."""
    timeline, work, gpu = traced(calls)
    probe = np.array([data.draw(st.integers(0, 100_000)) for _ in calls], np.int64)
    found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).without_probes(probe)
    assert (np.diff(found.start) >= 0).all()
    assert (found.wait >= 0).all() and (found.gap >= 0).all()


def test_threads_are_not_moved_against_each_other_for_the_probes() -> None:
    timeline, work, gpu = traced([Call(Action.ENQUEUE, Kind.LAUNCH, own=5, gpu=10, gap=1000)] * 4)
    timeline = dataclasses.replace(timeline, thread=np.array([0, 0, 1, 1], np.int32))
    work = dataclasses.replace(work, process_of_thread=np.zeros(2, np.int32))
    found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).without_probes(np.full(4, 100))
    assert found.start.tolist() == timeline.start.tolist()
    assert found.gap.tolist() == [900, timeline.gap[1], 900, timeline.gap[3]]


def test_the_waits_of_several_threads_stay_as_measured_for_the_probes() -> None:
    """Calls that several threads make at once may reach the GPU in another order, and it then seems to work longer."""
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, own=5_000, gpu=10_000)
    timeline, work, gpu = traced([launch, Call(Action.WAIT_CONTEXT, SYNC, own=5_000)])
    timeline = dataclasses.replace(timeline, thread=np.array([0, 1], np.int32))
    work = dataclasses.replace(work, process_of_thread=np.zeros(2, np.int32))
    inference = given_gpu_times(timeline, work, gpu)
    longer = dataclasses.replace(inference.likely, gpu=100 * gpu)
    found = Replay(timeline, work, dataclasses.replace(inference, likely=longer)).without_probes(np.full(2, 100))
    assert found.wait.tolist() == timeline.wait.tolist()
    assert found.duration.tolist() == timeline.duration.tolist()
