"""Waits of several threads for one stream, of which one is over before another that began earlier."""

from __future__ import annotations

import dataclasses
import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import overtaken_waits
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.gpu_times.fitting import trace_of
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.timelines import GpuTimes
from ffm.model.timeline import Kind, Timeline
from tests.examples import examples
from tests.model.simulator import NON_BLOCKING, Call, Member, families, traced_together

MICROSECOND = 1_000
COVERING = {Action.ENQUEUE_AND_WAIT, Action.SET_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.WAIT_STREAM}


def download(stream: int) -> Call:
    return Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=MICROSECOND, gpu=2 * MICROSECOND, stream=stream)


def woken_late(timeline: Timeline, late: np.ndarray) -> Timeline:
    """Return a timeline whose waits end later, each by so many nanoseconds; the rest of their threads moves along."""
    later = np.cumsum(late) - late
    first = np.searchsorted(timeline.thread, timeline.thread)
    return dataclasses.replace(
        timeline,
        start=timeline.start + later - later[first],
        duration=timeline.duration + late,
        wait=timeline.wait + late,
    )


def two_downloads(streams: tuple[int, int]) -> tuple[Timeline, DeviceWork]:
    """Two threads download, one 20 us after the other, and the first wakes 500 us late."""
    timeline, work, _ = traced_together(
        [Member(0, 20 * MICROSECOND * number, [download(stream)]) for number, stream in enumerate(streams)]
    )
    return woken_late(timeline, np.array([500, 0]) * MICROSECOND), work


@pytest.mark.parametrize("which", ["likely", "slow", "fast"])
def test_work_is_over_when_a_later_wait_for_its_stream_is(which: str) -> None:
    timeline, work = two_downloads((0, 0))
    times: GpuTimes = getattr(infer_gpu_times(timeline, work), which)
    assert times.gpu[0] <= 22 * MICROSECOND
    assert times.latency[0] >= 480 * MICROSECOND


def test_the_end_of_a_wait_for_another_stream_shows_nothing() -> None:
    timeline, work = two_downloads((NON_BLOCKING, NON_BLOCKING + 1))
    assert infer_gpu_times(timeline, work).slow.gpu[0] == 502 * MICROSECOND


def ends_of_waits(timeline: Timeline, work: DeviceWork) -> np.ndarray:
    first = np.isin(work.action, [Action.WAIT_AND_ENQUEUE, Action.WAIT_CONTEXT, Action.WAIT_STREAM])
    return timeline.start + timeline.wait + np.where(first, 0, own_before_wait(timeline, work, slice(None)))


@given(families(), st.integers(0, 1 << 16))
@settings(max_examples=examples(80), deadline=None)
def test_no_wait_is_explained_by_work_beyond_the_end_of_a_later_one(members: list[Member], seed: int) -> None:
    """Compared with each pair of waits, one by one."""
    random = Random(seed)
    timeline, work, _ = traced_together(members)
    late = [random.choice([0, 5_000, MICROSECOND * 1_000]) if wait else 0 for wait in timeline.wait.tolist()]
    timeline = woken_late(timeline, np.array(late, np.int64))
    inference = infer_gpu_times(timeline, work, 5_000)
    order = inference.order if len(inference.order) else np.arange(len(timeline))
    shown = overtaken_waits.waits_shown(trace_of(timeline, work, inference.order))
    ends, process = ends_of_waits(timeline, work), work.process_of_thread[timeline.thread]
    for first, second in itertools.combinations(order.tolist(), 2):
        covers = work.action[second] == Action.WAIT_CONTEXT or (
            work.action[second] in COVERING and work.stream[second] == work.stream[first]
        )
        kinds = {int(Action.WAIT_CONTEXT), *COVERING}
        if work.action[first] not in kinds or process[first] != process[second] or not covers:
            continue
        if work.action[first] == Action.WAIT_CONTEXT and work.action[second] != Action.WAIT_CONTEXT:
            continue
        assert shown[first] <= ends[second]
        for times in (inference.likely, inference.slow, inference.fast):
            assert times.latency[first] < 0 or times.latency[first] >= ends[first] - ends[second]
