"""Patterns of waiting, on the worked examples of CASITA's dissertation (Dietrich 2019) and on small programs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ffm.model.device import Action
from ffm.model.timeline import Kind
from ffm.model.waiting.blame import find_idlers
from ffm.model.waiting.graph import build_graph
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.patterns import GpuUse, Pattern, Patterns, find_patterns
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, traced

MS = 1_000_000


def patterns(calls: list[Call], began: list[int] | None = None) -> Patterns:
    """Return the patterns of a program with the true times of the GPU; `began` as a profiler records it."""
    timeline, work, gpu = traced(calls)
    if began is not None:
        work = dataclasses.replace(work, measured=gpu, began=np.array(began, np.int64))
    inference = given_gpu_times(timeline, work, gpu)
    return find_patterns(timeline, work, build_graph(timeline, work, inference, inference.likely), Meetings.none())


def kernel(gpu: int, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu, gap=gap, stream=stream)


def copy(gpu: int, gap: int = 0, stream: int = 1) -> Call:
    return Call(Action.ENQUEUE, Kind.TRANSFER, gpu=gpu, gap=gap, stream=stream)


def wait(gap: int = 0) -> Call:
    return Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=1, gap=gap)


def test_a_kernel_0_3_s_too_long_and_0_3_s_of_the_host_too_much() -> None:
    """6.5.1: twice a kernel of 0.6 s, 0.3 s of the CPU beside it, a wait, and 0.3 s of the CPU while the GPU is idle.
    Each wait lasts 0.3 s; between the kernels the GPU is idle for 0.3 s.
    """
    once = [kernel(600 * MS, 300 * MS), dataclasses.replace(wait(300 * MS), own=0)]
    found = patterns([*once, *once])
    assert found.early == Pattern(2, 600 * MS)
    assert found.early_on_kernels == 600 * MS
    assert found.late == Pattern(0, 0)
    [gpu] = found.gpu
    assert (gpu.lasting, gpu.idle, gpu.compute_idle) == (1500 * MS, 300 * MS, 300 * MS)


def test_unhidden_transfers_are_compute_idle_less_idle() -> None:
    """Appendix, Listing 2: compute idle 3535.520363 s, idle 3292.222629 s, so that transfers alone are 243.297734 s."""
    idle, alone = 3_292_222_629_000, 243_297_734_000
    [gpu] = patterns([kernel(MS, idle + MS), copy(alone), kernel(MS), wait()]).gpu
    assert gpu.idle == idle
    assert gpu.compute_idle == 3_535_520_363_000
    assert gpu.unhidden == alone


def test_hidden_and_unhidden_transfers_are_all_transfers() -> None:
    """Appendix, Listing 1: compute idle 6869.02 s, idle 6812.46 s; with 322.95 s of overlap, 379.51 s of transfers."""
    second = 1_000_000_000
    idle, alone, beside = 681_246 * second // 100, 5656 * second // 100, 32_295 * second // 100
    both = [kernel(beside, stream=1), copy(beside, stream=2)]
    [gpu] = patterns([*both, wait(idle), copy(alone), kernel(MS), wait()]).gpu
    assert abs(gpu.idle - idle) <= 1  # the wait's own nanosecond
    assert gpu.compute_idle - gpu.idle == gpu.unhidden == alone
    assert gpu.copy_overlap == beside
    assert gpu.unhidden + gpu.copy_overlap == 37_951 * second // 100


def test_the_startup_delay_is_the_mean_times_the_kernels() -> None:
    """Appendix, Listing 2: 0.927433 ms for each of 448,712 kernels are 416.15 s; here for some of them."""
    kernels, delay = 40, 927_433
    launch = Call(Action.ENQUEUE, Kind.LAUNCH, own=delay, gpu=1000, gap=1000, stream=1)
    calls = [launch] * kernels
    timeline, _, _ = traced(calls)
    found = patterns(calls, (timeline.start + delay).tolist()).launch_delay
    assert found == Pattern(kernels, kernels * delay)
    assert round(found.lasting / kernels * 448_712 / 1e9, 2) == 416.15


def test_a_wait_for_work_that_is_over_is_late() -> None:
    found = patterns([kernel(MS, 5 * MS), wait()])
    assert found.early == Pattern(0, 0)
    assert found.late == Pattern(1, 1)


def test_a_kernel_behind_a_transfer_is_delayed_by_it() -> None:
    found = patterns([copy(3 * MS), kernel(MS), wait()])
    assert found.late_transfer == Pattern(1, 3 * MS)


def test_a_transfer_beside_a_kernel_delays_nothing() -> None:
    found = patterns([kernel(9 * MS, stream=2), copy(3 * MS), kernel(MS), wait()])
    assert found.late_transfer == Pattern(0, 0)
    assert found.gpu[0].copy_overlap == 3 * MS


def test_a_process_without_gpu_work_has_no_idle_gpu() -> None:
    assert patterns([wait()]).gpu == []


def test_idle_is_told_for_each_process() -> None:
    assert patterns([kernel(MS), wait()]).gpu == [GpuUse(0, None, MS, 0, 0, 0)]


def test_idle_is_told_for_each_device() -> None:
    """Two devices work in turn for 2 ms each, three times: each is idle while the other one works."""
    calls = [kernel(2 * MS, stream=1), wait(), kernel(2 * MS, stream=2), wait()] * 3
    timeline, work, gpu = traced(calls)
    work = dataclasses.replace(work, stream_device=np.array([0, 0, 1], np.int32))
    inference = given_gpu_times(timeline, work, gpu)
    graph = build_graph(timeline, work, inference, inference.likely)
    first, second = find_patterns(timeline, work, graph, Meetings.none()).gpu
    assert (first.device, second.device) == (0, 1)
    for one in (first, second):
        assert one.lasting == pytest.approx(10 * MS, abs=10)
        assert one.idle == one.compute_idle == pytest.approx(4 * MS, abs=10)
    idle = find_idlers(timeline, work, graph, Meetings.none())
    assert (idle.end - idle.begin).sum() == first.idle + second.idle
