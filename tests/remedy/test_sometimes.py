"""Corrections of a running program that do not pay off are taken back, and calls wait whenever they are needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import compare_runs
from ffm.report.remedies.outputs import compare_outputs
from tests.conftest import Ffm
from tests.remedy.applying import every_correction

SOURCE = Path(__file__).parent / "programs" / "sometimes.cu"


@pytest.fixture
def program(build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("kernel.count_up = 500\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))
    return build_program(SOURCE)


def test_a_correction_that_costs_time_goes_back_in_the_running_program(program: Path, tmp_path: Path) -> None:
    turns, tries = 1000, 8
    command = [str(program), "downloads", str(turns)]
    planned = every_correction(command, tmp_path, tried=True)
    download = next(one for one in planned if load_catalogue()[one.function].name == "cuMemcpyDtoH_v2")
    for _ in range(tries):  # other programs may disturb the first comparisons of a run, and later ones are rare
        comparison = compare_runs(command, [download], runs=1, files=[], timeout_s=60)
        assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
        [process] = comparison.counted
        [tally], [trial] = process.tallies, process.trials
        assert tally.calls == tally.corrected + tally.original == turns
        if not trial.corrects:
            assert trial.slower is not None and trial.slower > 0
            if tally.original > turns / 2:
                break
    else:
        pytest.fail("in no run did most calls go back to how they were")


def test_frees_that_are_needed_now_and_then_wait_then_and_no_other_does(
    program: Path, ffm: Ffm, tmp_path: Path
) -> None:
    results, turns, every = tmp_path / "results", 400, 200
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", program, "frees", turns, every)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    done = ffm("apply-remedy", "--cudaFree-hoist", "--runs", 1, "--json", "--results", results)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["differences"] == []
    [free] = [site for site in answer["sites"] if "cudaFree-hoist" in site["remedies"] and site["calls"] == turns]
    assert free["corrected"] + free["original"] == turns
    assert answer["removed"]["frees"] == free["corrected"] > 0
    assert answer["fallbacks"]["deliveries_awaited"] > 0
