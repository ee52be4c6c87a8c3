"""Findings of small runs with what their calls do on the GPU, so that they can be replayed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from ffm.model.device import Action, DeviceWork
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents.benefit import Benefit
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results
from tests.model.timelines import simple_device_work
from tests.results.loop_findings import loop_findings, loop_timeline


def stored(findings: Findings, folder: Path) -> Results:
    """Write results into a folder, and return them as read from there."""
    write_results(findings, folder)
    return open_results(folder)


def measured(timeline: Timeline | None = None) -> Findings:
    """The loop of `loop_findings`, with what its calls do on the GPU."""
    table = loop_timeline() if timeline is None else timeline
    return dataclasses.replace(loop_findings(table), work=simple_device_work(table), probes_s=0.001)


def replayed(benefit: Benefit | None) -> tuple[float, float, float]:
    assert benefit is not None
    assert benefit.replay_s is not None and benefit.low_s is not None and benefit.high_s is not None
    return benefit.low_s, benefit.replay_s, benefit.high_s


def several_ranks(ranks: int) -> Findings:
    """The same loop in each of several processes at once."""
    one = loop_timeline()
    columns = {field.name: np.tile(getattr(one, field.name), ranks) for field in dataclasses.fields(Timeline)}
    columns["thread"] = np.repeat(np.arange(ranks, dtype=np.int32), len(one))
    table = Timeline(**columns)
    simple = simple_device_work(one)
    work = DeviceWork(
        action=np.tile(simple.action, ranks),
        stream=np.concatenate([np.where(simple.stream >= 0, rank, -1) for rank in range(ranks)]).astype(np.int32),
        event=np.tile(simple.event, ranks),
        partner=np.tile(simple.partner, ranks),
        copied=np.tile(simple.copied, ranks),
        measured=np.tile(simple.measured, ranks),
        process_of_thread=np.arange(ranks, dtype=np.int32),
        legacy=np.arange(ranks, dtype=np.int32),
        stream_process=np.arange(ranks, dtype=np.int32),
        events=0,
    )
    wall_s = float((one.duration + one.gap).sum()) / 1e9
    return dataclasses.replace(loop_findings(table), work=work, wall_s=wall_s)


def two_streams() -> Findings:
    """On each of two streams a kernel of 10 ms, each awaited; then 10 ms of CPU work, and a wait that stays. The other
    waits are unnecessary.
    """
    ms = 1_000_000
    launch, synchronization = int(Kind.LAUNCH), int(Kind.SYNCHRONIZATION)
    kind = np.array([launch, synchronization] * 2 + [synchronization], np.uint8)
    wait = np.array([0, 10, 0, 10, 0]) * ms
    table = Timeline(
        thread=np.zeros(5, np.int32),
        start=np.array([0, 0, 10, 10, 30]) * ms,
        duration=wait,
        wait=wait,
        gap=np.array([0, 0, 0, 10, 0]) * ms,
        site=np.array([0, 1, 0, 1, 2], np.int32),
        kind=kind,
        problem=np.where(wait > 0, Problem.UNNECESSARY_SYNCHRONIZATION, 0).astype(np.uint8),
        first_use=np.zeros(5, np.int64),
        occurrences=np.ones(5, np.int64),
    )
    work = dataclasses.replace(
        simple_device_work(table),
        action=np.array([Action.ENQUEUE, Action.WAIT_STREAM] * 2 + [Action.WAIT_CONTEXT], np.uint8),
        stream=np.array([0, 0, 1, 1, -1], np.int32),
        measured=np.array([10 * ms, -1, 10 * ms, -1, -1]),
        legacy=np.full(1, -1, np.int32),
        stream_process=np.zeros(2, np.int32),
        independent=np.ones(2, np.bool_),
    )
    return dataclasses.replace(loop_findings(table), wall_s=0.03, work=work, probes_s=0.0)
