"""ffm is asked to end while the program runs: no process remains, recordings are kept, one line says so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ffm.instrument.recording.reader import read_recordings
from ffm.results.folder.lock import LOCK_FILE, holder
from tests.conftest import ROOT, Begin, Begun, Ffm

PROGRAM = Path(__file__).parent / "programs" / "ending.cu"
PROCESSES = 2
PATIENCE = 60.0
"""Seconds for what takes one second on an idle machine."""


@pytest.fixture(scope="module")
def ending(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAM)


@pytest.fixture(scope="module")
def measured(ffm: Ffm, ending: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the earlier stages must have left."""
    folder = tmp_path_factory.mktemp("interruption") / "results"
    for stage in ("baseline", "tracing", "memory"):
        done = ffm("stage", stage, "--results", folder, "--timeout", 60, "--", ending)
        assert done.code == 0, done.err
    return folder


@pytest.fixture
def results(measured: Path, tmp_path: Path) -> Path:
    """Separate for each test: an interrupted stage makes the later ones out of date."""
    return shutil.copytree(measured, tmp_path / "results")


def processes_of(program: Path) -> set[int]:
    """Return the processes that execute the program."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "exe").readlink() == program:
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition; return whether it became true."""
    end = time.monotonic() + PATIENCE
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


@pytest.fixture
def measuring(begin_ffm: Begin, ending: Path, results: Path) -> Iterator[Callable[[str], Begun]]:
    """Start measuring a program that forks and never ends; return ffm once the program has used the GPU."""

    def begin(stage: str) -> Begun:
        ffm = begin_ffm("stage", stage, "--results", results, "--", ending, "family")
        log = results / f"{stage}.log"
        assert until(lambda: ffm.ended() or (log.exists() and log.read_text() == "sum 0\n"))
        assert until(lambda: ffm.ended() or len(processes_of(ending)) == PROCESSES)
        return ffm

    yield begin
    for process in processes_of(ending):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(
    ("stage", "number", "said"),
    [
        ("baseline", signal.SIGINT, "interrupted."),
        ("tracing", signal.SIGTERM, "ended by SIGTERM."),
        ("memory", signal.SIGHUP, "ended by SIGHUP."),
        ("sync-use", signal.SIGINT, "interrupted."),
    ],
)
def test_a_stage_that_is_told_to_end_leaves_no_process(
    measuring: Callable[[str], Begun], ending: Path, results: Path, stage: str, number: int, said: str
) -> None:
    ffm = measuring(stage)
    ffm.tell(number)
    done = ffm.wait(PATIENCE)
    assert done.code == 128 + number
    (line,) = done.err.strip().splitlines()
    assert line.startswith(f"ffm: {said}") and f"stopped in the {stage} run" in line
    assert until(lambda: not processes_of(ending))
    recordings = read_recordings(results / "recordings" / stage)
    assert str(results / "recordings" / stage) in line and any(len(one.operations) for one in recordings)


def test_the_program_ends_with_ffm_killed(measuring: Callable[[str], Begun], ending: Path) -> None:
    ffm = measuring("baseline")
    (first,) = (process for process in processes_of(ending) if parent_of(process) == ffm.process)
    ffm.tell(signal.SIGKILL)
    ffm.wait(PATIENCE)
    assert until(lambda: first not in processes_of(ending))


@pytest.mark.parametrize("by", ["ffm run", "snakemake"])
def test_a_killed_workflow_leaves_neither_its_stage_nor_the_program(ending: Path, tmp_path: Path, by: str) -> None:
    settings = [f"app={ending} family", f"results={tmp_path / 'results'}"]
    command = {
        "ffm run": ["ffm", "run", "--results", str(tmp_path / "results"), str(ending), "family"],
        "snakemake": ["snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1", "--config", *settings],
    }[by]
    workflow = subprocess.Popen([sys.executable, "-m", *command], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: len(processes_of(ending)) == PROCESSES)
    finally:
        workflow.send_signal(signal.SIGKILL)
        workflow.wait()
    assert until(lambda: not processes_of(ending))
    assert until(lambda: holder(tmp_path / "results" / LOCK_FILE) is None)
