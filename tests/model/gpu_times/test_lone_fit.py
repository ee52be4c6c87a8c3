"""The fit of a run of one thread and one device says what the fit of any run says of it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import Action
from ffm.model.gpu_times import lone_fit
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.timelines import Inference
from tests.examples import examples
from tests.model.simulator import Call, programs, traced

RUNS = st.sampled_from([1, 2, 4]).flatmap(lambda streams: programs(streams=streams))


def times_of(found: Inference) -> list[list[int]]:
    """All columns of the three timelines."""
    timelines = (found.likely, found.slow, found.fast)
    return [getattr(times, name).tolist() for times in timelines for name in ("gpu", "left", "latency")]


@given(RUNS, st.sampled_from([0, 3_000]))
@settings(max_examples=examples(300), deadline=None)
def test_one_thread_and_device_are_fitted_as_any_are(calls: list[Call], latency: int) -> None:
    timeline, work, _ = traced(calls)
    lone = infer_gpu_times(timeline, work, latency)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lone_fit, "is_of_one_device", lambda trace: False)
        any_threads = infer_gpu_times(timeline, work, latency)
    assert times_of(lone) == times_of(any_threads)
    assert (lone.likely.explained, lone.likely.waited) == (any_threads.likely.explained, any_threads.likely.waited)


@given(RUNS, st.data())
@settings(max_examples=examples(100), deadline=None)
def test_the_work_of_a_launch_that_loads_its_code_is_inferred_as_any(calls: list[Call], data: st.DataObject) -> None:
    loading = [
        dataclasses.replace(call, action=Action.LOAD_AND_ENQUEUE)
        if call.action is Action.ENQUEUE and data.draw(st.booleans())
        else call
        for call in calls
    ]
    found, otherwise = (infer_gpu_times(*traced(run)[:2]) for run in (loading, calls))
    assert times_of(found) == times_of(otherwise)
