"""Downloads whose waits a program needs for timing are delivered when it reads a clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correct import Comparison, compare_runs
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import Planned
from ffm.report.remedies.outputs import compare_outputs
from tests.conftest import Ffm
from tests.remedy.applying import PROGRAMS, every_correction

TURNS = 50
"""Of 256 downloads that may be pending at a time."""
MUCH_WORK = 1_000_000
"""Takes the CPU longer than a kernel lasts: correcting the downloads then saves much more than it costs, on a busy
machine too.
"""


@pytest.fixture(autouse=True)
def slow_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text("kernel.count_up = 500\nkernel.fill = 20000\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))


@pytest.fixture
def program(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAMS / "timed_downloads.cu")


def downloads(planned: list[Planned]) -> list[Planned]:
    """Return the corrections that deliver downloads later, where reads of clocks may rely on their waits."""
    chosen = [one for one in planned if load_catalogue()[one.function].name == "cuMemcpyDtoH_v2"]
    return [replace(one, actions=one.actions | constant("FFM_REMEDY_CLOCK")) for one in chosen]


def corrected(command: list[str], folder: Path) -> Comparison:
    """Run a program bare and with its downloads delivered later; it must not see a difference."""
    planned = downloads(every_correction(command, folder))
    comparison = compare_runs(command, planned, runs=1, files=[], timeout_s=60)
    assert compare_outputs(comparison.bare, comparison.corrected) == ([], [])
    return comparison


@pytest.mark.parametrize("use", ["before", "after", "never", "alone"])
@pytest.mark.parametrize("how", ["clock_gettime", "gettimeofday", "chrono", "vdso", "thread"])
def test_a_clock_is_read_when_what_was_downloaded_is_there(program: Path, tmp_path: Path, how: str, use: str) -> None:
    [process] = corrected([str(program), how, use, str(TURNS)], tmp_path).counted
    assert process.values["downloads_staged"] == TURNS
    assert process.values["deliveries"] == TURNS
    if use in ("after", "never"):
        assert process.values["deliveries_clocks"] == TURNS


def test_a_thread_that_reads_a_clock_leaves_the_wait_to_others_too(program: Path, tmp_path: Path) -> None:
    [process] = corrected([str(program), "both", "never", "1"], tmp_path).counted
    assert process.values["downloads_staged"] == process.values["deliveries_clocks"] == 1


def test_events_tell_the_same_times(program: Path, tmp_path: Path) -> None:
    [process] = corrected([str(program), "events", "after", str(TURNS)], tmp_path).counted
    assert process.values["downloads_staged"] == TURNS


def test_where_the_program_asks_the_kernel_itself_its_downloads_stay(
    build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    command = [str(build_program(PROGRAMS / "timed_downloads_raw.cu")), "kernel", "never", str(TURNS)]
    [process] = corrected(command, tmp_path).counted
    assert process.values["downloads_staged"] == 0
    assert process.values["waits_unseen"] == TURNS


def test_a_site_whose_last_download_is_timed_is_corrected(program: Path, ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command = (program, "chrono", "never", TURNS, MUCH_WORK)
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", *command)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    done = ffm("apply-remedy", "--async-transfers", "--runs", 1, "--json", "--results", results)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["differences"] == []
    assert TURNS in [site["calls"] for site in answer["sites"] if "async-transfers" in site["remedies"]]
