"""How long steps of `benchmarks/scale.py` take that no command does alone, beside sorting as many numbers: reading the
recordings of a run, and choosing what `ffm apply-remedy` corrects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from replaying import processor_s

from ffm.instrument.recording.chunks import TABLES
from ffm.instrument.recording.reader import read_recordings
from ffm.remedy.plan_file import Correction
from ffm.remedy.selection import plan
from ffm.remedy.worth import worthwhile_in
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.stages.registry import MEASURING_STAGES

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """What one step took, of the processor."""

    step: str
    calls: int
    """Driver calls of the run."""
    rows: int
    """Records that are read, or operations of the results."""
    nanoseconds: float
    """For a row."""
    sorts: float
    """Its seconds divided by those that NumPy's sort of as many random 64-bit numbers takes in turn with it."""


def measure_steps(calls: int, results: Path) -> list[Step]:
    """Time each step on the results of a run with `calls` calls; the median of a few rounds counts."""
    steps = []
    for stage in MEASURING_STAGES:
        folder = ResultsFolder(results).recordings(stage)
        read = read_recordings(folder)  # compiles what is needed
        rows = sum(len(getattr(recording, name)) for recording in read for name in TABLES)
        steps.append(_step(f"reading {stage}", calls, rows, functools.partial(read_recordings, folder)))
    rows = len(open_results(results).timeline)

    def choose() -> None:
        opened = open_results(results)
        worthwhile_in(opened, plan(opened.document, list(Correction)))

    choose()
    return [*steps, _step("apply-remedy: choosing", calls, rows, choose)]


def _step(name: str, calls: int, rows: int, step: Callable[[], Any]) -> Step:
    numbers = np.random.default_rng(rows).integers(0, 1 << 62, max(rows, 1))
    times = [(processor_s(step), processor_s(lambda: np.sort(numbers))) for _ in range(ROUNDS)]
    seconds, sorting = (median(each) for each in zip(*times, strict=True))
    return Step(name, calls, rows, seconds / max(rows, 1) * 1e9, seconds / sorting)
