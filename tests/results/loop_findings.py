"""The findings of a small loop without GPU work: five calls an iteration, three of them with problems."""

from __future__ import annotations

import hashlib

import numpy as np

from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.vocabulary import Because
from ffm.stages.analysis.findings import Findings, SiteDescription

ITERATIONS = 4
UNNECESSARY = Problem.UNNECESSARY_SYNCHRONIZATION
DUPLICATE = Problem.UNNECESSARY_TRANSFER

BODY = [
    # site, kind, milliseconds in the call, of which waiting, gap after it, problem
    (0, Kind.TRANSFER, 3, 2, 1, UNNECESSARY | DUPLICATE),
    (1, Kind.LAUNCH, 1, 0, 1, Problem.NONE),
    (2, Kind.FREE, 4, 3, 2, UNNECESSARY),
    (3, Kind.FREE, 2, 1, 5, UNNECESSARY),
    (4, Kind.SYNCHRONIZATION, 4, 4, 1, Problem.NONE),
]


def loop_timeline(iterations: int = ITERATIONS) -> Timeline:
    site, kind, duration, wait, gap, problem = np.array(BODY * iterations, np.int64).reshape(-1, 6).T
    duration, wait, gap = (column * 1_000_000 for column in (duration, wait, gap))
    return Timeline(
        thread=np.zeros(len(site), np.int32),
        start=np.cumsum(duration + gap) - duration - gap,
        duration=duration,
        wait=wait,
        gap=gap,
        site=site.astype(np.int32),
        kind=kind.astype(np.uint8),
        problem=problem.astype(np.uint8),
        first_use=np.zeros(len(site), np.int64),
        occurrences=np.ones(len(site), np.int64),
    )


def stack(call: str, caller: str, line: int) -> Stack:
    frames = [
        Frame(module=1, offset=8, function=f"cudart::{call}Internal"),
        Frame(module=1, offset=16, function=call),
        Frame(module=0, offset=line, function=caller, file="/home/user/solve.cu", line=line),
        Frame(module=0, offset=1, function="main", file="/home/user/main.cpp", line=7),
    ]
    return Stack(key=hashlib.md5(f"{call}{line}".encode()).hexdigest(), frames=frames)


def loop_findings(timeline: Timeline | None = None) -> Findings:
    timeline = timeline or loop_timeline()
    keep = Verdict(kind="conditionally unnecessary", because=Because.LATER_COVERS, occurrences=ITERATIONS, keep=4)
    return Findings(
        application="solve",
        command=["./solve", "4"],
        wall_s=float((timeline.duration + timeline.gap).sum()) / 1e9,
        timeline=timeline,
        sites=[
            SiteDescription(0, "cuMemcpyHtoD_v2", bytes=4096),
            SiteDescription(1, "cuLaunchKernel"),
            SiteDescription(2, "cuMemFree_v2"),
            SiteDescription(3, "cuMemFree_v2", synchronization=[keep]),
            SiteDescription(4, "cuCtxSynchronize"),
        ],
        stacks=[
            stack("cudaMemcpy", "void step<float>(int)", 10),
            stack("cudaLaunchKernel", "void step<float>(int)", 11),
            stack("cudaFree", "void step<float>(int)", 12),
            stack("cudaFree", "void step<double>(int)", 13),
            stack("cudaDeviceSynchronize", "main", 14),
        ],
        modules=[Module(path="/home/user/solve", build_id="ab"), Module(path="libcudart.so", build_id="")],
    )
