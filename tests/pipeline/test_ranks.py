"""A program with several ranks under an MPI launcher: one collector and one recording for each."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.documents.notes import SeveralProcesses
from ffm.vgpu.paths import sample
from tests.conftest import Ffm

RANKS = 4
SECONDS = 300.0
"""Limit for each run, however few cores there are."""


def missing_launcher() -> str:
    """Return why programs with several ranks cannot run here; nothing if they can."""
    launcher = shutil.which("mpirun")
    if launcher is None:
        return "no mpirun here: install openmpi-bin to run programs of several ranks"
    told = subprocess.run(
        [launcher, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if "Open MPI" not in told.stdout:  # --oversubscribe is its own option
        return f"{launcher} is not Open MPI's: install openmpi-bin to run programs of several ranks"
    return ""


pytestmark = pytest.mark.skipif(bool(why := missing_launcher()), reason=why)


@pytest.fixture(scope="module")
def results(ffm: Ffm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All stages of `amg` with four ranks, however few cores there are."""
    folder = tmp_path_factory.mktemp("ranks") / "results"
    with pytest.MonkeyPatch.context() as patch:
        if os.geteuid() == 0:  # Open MPI refuses root otherwise
            patch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
            patch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        command = ["mpirun", "--oversubscribe", "-n", RANKS, sample("amg"), 2]
        for stage in ("baseline", "tracing", "memory", "sync-use"):
            limit = ["--timeout", SECONDS]
            done = ffm("stage", stage, "--results", folder, *limit, "--", *command, seconds=2 * SECONDS)
            assert done.code == 0, done.err
        assert ffm("stage", "analysis", "--results", folder).code == 0
    return folder


def test_each_rank_leaves_its_own_recording_in_order_of_ranks(results: Path) -> None:
    run = read_owned(Tracing, results / "tracing.json")[0].run
    assert run is not None
    assert [process.rank for process in run.processes] == list(range(RANKS))
    assert len({process.recording for process in run.processes}) == RANKS
    assert len({process.operations for process in run.processes}) == 1


def test_ranks_are_analysed_together_and_nothing_is_unmatched(results: Path) -> None:
    analysis = read_owned(Analysis, results / "analysis.json")[0]
    assert analysis.matching is not None and analysis.matching.unmatched_s == 0
    assert SeveralProcesses(processes=RANKS) in analysis.notes
    counts = [site.count for site in analysis.sites if site.function == "cuCtxSynchronize"]
    assert counts and all(count % RANKS == 0 for count in counts)
    assert analysis.everything is not None and analysis.everything.replay_s is not None
    assert analysis.everything.replay_s <= analysis.wall_s
