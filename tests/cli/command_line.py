"""Runs the command line in this process, and creates small results folders for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ffm.cli.main import main
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.vocabulary import Because
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import write_results

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str


class CommandLine:
    """Calls `ffm` with arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capture = capture

    def __call__(self, *arguments: str | Path) -> Answer:
        self.monkeypatch.setattr(sys, "argv", ["ffm", *map(str, arguments)])
        self.capture.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        output, errors = self.capture.readouterr()
        return Answer(int(exit_.value.code or 0), output, errors)


def write_small_results(folder: Path, *, empty_stack: bool = False) -> None:
    """Results of a made-up program: 100 times two unneeded frees and a needed synchronization, 10 ms in all.

    `empty_stack` adds a fourth stack without frames and calls.
    """
    times = 100
    site = np.tile(np.array([0, 1, 2], np.int32), times)
    rows = len(site)
    unneeded = np.where(site < 2, int(Problem.UNNECESSARY_SYNCHRONIZATION), 0).astype(np.uint8)
    duration = np.full(rows, SECOND // 50_000, np.int64)
    gap = np.full(rows, SECOND // 75_000, np.int64)
    timeline = Timeline(
        thread=np.zeros(rows, np.int32),
        start=np.cumsum(duration + gap) - duration - gap,
        duration=duration,
        wait=duration // 2,
        gap=gap,
        site=site,
        kind=np.where(site < 2, int(Kind.FREE), int(Kind.SYNCHRONIZATION)).astype(np.uint8),
        problem=unneeded,
        first_use=np.zeros(rows, np.int64),
        occurrences=np.ones(rows, np.int64),
    )
    calls = [
        ("cudaFree", "cuMemFree_v2", 10),
        ("cudaFree", "cuMemFree_v2", 11),
        ("cudaDeviceSynchronize", "cuCtxS", 12),
    ]
    stacks = [
        Stack(
            key=f"{line:032x}",
            frames=[
                Frame(module=1, offset=64 + line, function=call),
                Frame(module=0, offset=line, function="solve", file="/src/solve.cu", line=line),
            ],
        )
        for call, _, line in calls
    ]
    verdicts = [
        Verdict(kind="unnecessary", because=Because.NOTHING_RELIES, occurrences=times),
        Verdict(kind="unnecessary", because=Because.NOTHING_RELIES, occurrences=times),
        Verdict(kind="required", because=Because.RESULT_USED, occurrences=times),
    ]
    findings = Findings(
        application="solve",
        command=["./solve"],
        wall_s=float((duration + gap).sum()) / SECOND,
        timeline=timeline,
        sites=[
            SiteDescription(stack=index, function=function, synchronization=[verdicts[index]])
            for index, (_, function, _) in enumerate(calls)
        ]
        + [SiteDescription(stack=3, function="")] * empty_stack,
        stacks=stacks + [Stack(key="0" * 32, frames=[])] * empty_stack,
        modules=[Module(path="/bin/solve", build_id="aa"), Module(path="/lib/libcudart.so", build_id="bb")],
    )
    write_results(findings, folder)
