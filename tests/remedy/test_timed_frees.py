"""Frees whose waits a program needs for timing are completed when it reads a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import Comparison, compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import Correction, Planned
from ffm.remedy.selection import plan
from ffm.report.remedies.outputs import compare_outputs
from ffm.results.documents.analysis import Analysis
from ffm.results.folder.identity import read_latest
from ffm.results.folder.paths import ResultsFolder
from tests.conftest import Ffm
from tests.remedy.applying import PROGRAMS, every_correction

TURNS = 12
"""Too few for the correction to be compared with the original calls, which might be what the last turn makes."""


@pytest.fixture(autouse=True)
def slow_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("kernel.use_buffer = 500\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


def compared(command: list[str], planned: list[Planned]) -> Comparison:
    """Run a program bare and corrected; it must not see a difference."""
    comparison = compare_runs(command, planned, runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    return comparison


def timed(planned: list[Planned]) -> list[Planned]:
    """Return the corrections of allocations and frees, as where reads of clocks may rely on the frees' waits."""
    names = [load_catalogue()[one.function].name for one in planned]
    return [
        replace(one, actions=one.actions | (constant("FFM_REMEDY_CLOCK") if name == "cuMemFree_v2" else 0), unit=0)
        for one, name in zip(planned, names, strict=True)
        if name in ("cuMemAlloc_v2", "cuMemFree_v2")
    ]


@pytest.mark.parametrize("how", ["clock_gettime", "gettimeofday", "chrono"])
def test_a_clock_is_read_when_the_work_before_a_free_is_over(
    build_program: Callable[[Path], Path], tmp_path: Path, how: str
) -> None:
    command = [str(build_program(PROGRAMS / "timed_frees.cu")), how, str(TURNS)]
    [process] = compared(command, timed(every_correction(command, tmp_path))).counted
    assert process.values["free_waits"] == TURNS
    assert process.values["waits_clocks"] > 0


def test_where_the_program_asks_the_kernel_itself_its_frees_wait(
    build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_frees_raw.cu")), "kernel", str(TURNS)]
    [process] = compared(command, timed(every_correction(command, tmp_path))).counted
    assert process.values["free_waits"] == 0
    assert process.values["waits_unseen"] == process.values["frees"] == TURNS


@pytest.mark.thorough
def test_a_site_whose_last_free_is_timed_is_corrected(
    build_program: Callable[[Path], Path], ffm: Ffm, tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_frees.cu")), "chrono", str(TURNS)]
    results = tmp_path / "results"
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", *command)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    planned = plan(read_latest(Analysis, ResultsFolder(results), "analysis"), {Correction.HOIST})
    [process] = compared(command, planned).counted
    assert process.values["free_waits"] == TURNS
    assert process.values["waits_clocks"] > 0
