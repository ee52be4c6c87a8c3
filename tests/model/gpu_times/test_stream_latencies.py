"""How much longer waits last than the work of their streams, where several streams have work at once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Timeline
from tests.model.simulator import Call, Member, traced_together

MICROSECOND = 1_000
TASKS, GPU = 50, 30 * MICROSECOND
OF_MACHINE = 60 * MICROSECOND
"""What a wait for an idle GPU takes beyond its work on a busy machine."""


def two_streams(latency: int, measured: float) -> tuple[Timeline, DeviceWork]:
    """Two threads wait for a stream each, whose work always overlaps; events measured a share of it."""
    members = []
    for begin, stream in ((0, 1), (MICROSECOND // 2, 2)):
        calls = [
            Call(Action.ENQUEUE, Kind.LAUNCH, own=MICROSECOND, gpu=GPU, gap=2 * MICROSECOND, stream=stream),
            Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=MICROSECOND, stream=stream),
        ]
        members.append(Member(0, begin, calls * TASKS))
    timeline, work, gpu = traced_together(members)
    waking = np.where(timeline.wait > 0, latency, 0)
    first = np.searchsorted(timeline.thread, timeline.thread)
    later = np.cumsum(waking) - waking
    times = np.where((work.action == Action.ENQUEUE) & (np.arange(len(gpu)) % 100 < 100 * measured), gpu, -1)
    return (
        dataclasses.replace(
            timeline,
            start=timeline.start + later - later[first],
            duration=timeline.duration + waking,
            wait=timeline.wait + waking,
        ),
        dataclasses.replace(work, measured=times, independent=np.ones(work.streams, np.bool_)),
    )


@pytest.mark.parametrize("latency", [2 * MICROSECOND, 15 * MICROSECOND])
def test_the_usual_latency_is_what_waits_last_beyond_measured_work(latency: int) -> None:
    inference = infer_gpu_times(*two_streams(latency, measured=1.0), OF_MACHINE)
    assert inference.latency_ns == latency
    waits = inference.likely.latency >= 0
    assert (inference.likely.latency[waits] == latency).all()


def test_streams_whose_work_was_hardly_measured_tell_no_latency() -> None:
    seldom = infer_gpu_times(*two_streams(2 * MICROSECOND, measured=0.5), OF_MACHINE)
    assert seldom.latency_ns == infer_gpu_times(*two_streams(2 * MICROSECOND, measured=0.0), OF_MACHINE).latency_ns


def test_what_lasts_longer_than_waits_of_the_machine_do_is_no_latency() -> None:
    """Streams may keep the device from each other."""
    late = infer_gpu_times(*two_streams(2 * OF_MACHINE, measured=1.0), OF_MACHINE)
    assert late.latency_ns <= OF_MACHINE
