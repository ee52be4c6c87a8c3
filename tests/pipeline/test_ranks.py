"""A program with several ranks under an MPI launcher: one collector and one recording for each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.documents.notes import SeveralProcesses
from ffm.vgpu.paths import sample
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "shaped.cu"
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


def _allow_root(patch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # Open MPI refuses root otherwise
        patch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        patch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


@pytest.fixture(scope="module")
def results(ffm: Ffm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All stages of `amg` with four ranks, however few cores there are."""
    folder = tmp_path_factory.mktemp("ranks") / "results"
    with pytest.MonkeyPatch.context() as patch:
        _allow_root(patch)
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


def test_the_path_of_ranks_that_starve_their_gpus_is_on_the_host(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table 6.3 of CASITA's dissertation (Dietrich 2019), run I-1, at a 2,000th of its times and with two ranks: the
    host is on the path for 883.9 s, of which 807.1 are to blame for the idle device, which works for 358.7 s. However
    busy the machine is, nothing takes less than that; but a thread that gets no processor after a launch is on the path
    in the place of the kernel.
    """
    turns, setup_s, host_s, kernels_s = 20, 76.8 / 2000, 807.1 / 2000, 358.7 / 2000
    (tmp_path / "gpu.vgpu").write_text(f"kernel.work = {kernels_s / turns * 1e6}\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))
    _allow_root(monkeypatch)
    program = [build_program(PROGRAM), turns, setup_s * 1e3, 0, host_s / turns * 1e3]
    done = ffm("check", "--quick", "mpirun", "--oversubscribe", "-n", 2, *program, folder=tmp_path, seconds=SECONDS)
    assert done.code in (0, 1), done.err
    view = orjson.loads(ffm("path", "--json", "--all", folder=tmp_path).out)
    [path] = tmp_path.rglob("analysis.json")
    explained = read_owned(Analysis, path)[0].explained
    assert explained is not None
    probes_s = explained.probes_s  # samples interrupt work that lasts until a clock says so, and are taken out of it
    calls_s = sum(row["total_s"] for row in view["regions"] if row["kind"] == "call")
    seconds = {share["name"]: share["seconds"] for share in view["shares"]}
    assert sum(seconds.values()) == pytest.approx(view["length_s"])
    assert seconds["CPU"] + probes_s >= setup_s + host_s
    assert seconds["kernels"] > 0
    assert view["length_s"] + probes_s >= setup_s + host_s + 0.95 * kernels_s
    assert [gpu["process"] for gpu in view["gpu"]] == [1, 2]
    between_s = host_s * (turns - 1) / turns
    for gpu in view["gpu"]:
        assert gpu["lasting_s"] + calls_s + probes_s >= kernels_s + between_s
        assert between_s - probes_s <= gpu["compute_idle_s"] < gpu["lasting_s"]
    blamed_s = sum(row["blamed_s"] for row in view["regions"] if row["kind"] == "CPU")
    assert blamed_s + probes_s >= 2 * between_s
    assert blamed_s <= sum(gpu["idle_s"] for gpu in view["gpu"]) + 1e-6
