"""Waits that a program needs only for timing are completed when it reads a clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import Planned
from ffm.report.remedies.outputs import compare_outputs
from tests.conftest import Ffm
from tests.remedy.applying import PROGRAMS, every_correction

TURNS = 50
UNTRIED_TURNS = 12
"""Too few for the correction to be compared with the original calls, which might be what the last turn makes."""


@pytest.fixture(autouse=True)
def slow_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("kernel.count_up = 500\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


@pytest.fixture
def program(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAMS / "timed.cu")


def waits(planned: list[Planned], *, timed: bool) -> list[Planned]:
    """Return the corrections that remove waits, as of waits that reads of clocks rely on or not."""
    chosen = [one for one in planned if load_catalogue()[one.function].name == "cuCtxSynchronize"]
    return [replace(one, actions=one.actions | (constant("FFM_REMEDY_CLOCK") if timed else 0)) for one in chosen]


@pytest.mark.parametrize("how", ["clock_gettime", "gettimeofday", "chrono"])
def test_a_clock_is_read_when_what_was_waited_for_is_over(program: Path, tmp_path: Path, how: str) -> None:
    command = [str(program), how, str(TURNS)]
    planned = every_correction(command, tmp_path)
    comparison = compare_runs(command, waits(planned, timed=True), runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    [process] = comparison.counted
    assert process.values["synchronizations"] == sum(tally.calls for tally in process.tallies) > TURNS
    assert process.values["waits_clocks"] > 0
    [forgetful] = compare_runs(command, waits(planned, timed=False), runs=1, files=[], timeout_s=60).counted
    assert forgetful.values["synchronizations"] > TURNS
    assert forgetful.values["waits_clocks"] == 0


def test_where_the_program_asks_the_kernel_itself_its_waits_stay(
    build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_raw.cu")), "kernel", str(TURNS)]
    planned = waits(every_correction(command, tmp_path), timed=True)
    comparison = compare_runs(command, planned, runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    [process] = comparison.counted
    assert process.values["synchronizations"] == 0
    assert process.values["waits_unseen"] == sum(tally.calls for tally in process.tallies) > TURNS


@pytest.mark.thorough
def test_a_site_whose_last_wait_is_timed_is_corrected(program: Path, ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", program, "chrono", UNTRIED_TURNS)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    done = ffm("apply-remedy", "--skip-syncs", "--runs", 1, "--json", "--results", results)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["differences"] == []
    assert UNTRIED_TURNS in [site["calls"] for site in answer["sites"] if "skip-syncs" in site["remedies"]]
    assert answer["fallbacks"]["waits_clocks"] > 0
