"""Uploads whose waits protect their source, and that a program may time, are over when it reads a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import Comparison, compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import Correction
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
    configuration.write_text("kernel.add_first = 500\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


def corrected(command: list[str], folder: Path) -> Comparison:
    """Run a program bare and with its uploads staged, as where it may time them; it must not see a difference."""
    planned = [
        replace(one, actions=one.actions | constant("FFM_REMEDY_CLOCK"))
        for one in every_correction(command, folder)
        if load_catalogue()[one.function].name == "cuMemcpyHtoD_v2"
    ]
    comparison = compare_runs(command, planned, runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    return comparison


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize("how", ["clock_gettime", "chrono"])
def test_a_clock_is_read_when_what_was_uploaded_is_there(
    build_program: Callable[[Path], Path], tmp_path: Path, how: str, memory: str
) -> None:
    command = [str(build_program(PROGRAMS / "timed_uploads.cu")), how, memory, str(TURNS)]
    [process] = corrected(command, tmp_path).counted
    assert process.values["uploads_staged"] == TURNS
    assert process.values["waits_clocks"] > 0


def test_where_the_program_asks_the_kernel_itself_its_uploads_wait(
    build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_uploads_raw.cu")), "kernel", "pinned", str(TURNS)]
    [process] = corrected(command, tmp_path).counted
    assert process.values["uploads_staged"] == 0
    assert process.values["waits_unseen"] == TURNS


def test_waits_that_protect_a_source_are_planned_as_timed(
    build_program: Callable[[Path], Path], ffm: Ffm, tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_uploads.cu")), "chrono", "pinned", str(TURNS)]
    results = tmp_path / "results"
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", *command)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    planned = plan(read_latest(Analysis, ResultsFolder(results), "analysis"), {Correction.ASYNCHRONOUS})
    comparison = compare_runs(command, planned, runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    [process] = comparison.counted
    assert process.values["uploads_staged"] == TURNS
    assert process.values["waits_clocks"] > 0
