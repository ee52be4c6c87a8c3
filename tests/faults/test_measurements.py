"""One measurement at a time in a folder, and no results combined from two."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
from ffm.results.folder.identity import agreeing, begin_run, latest
from ffm.results.folder.lock import LOCK_FILE, InUseError, exclusive, holder, writing_to
from ffm.results.stored import open_results
from tests.cli.command_line import write_small_results
from tests.conftest import Ffm, Finished

PROGRAM = Path(__file__).parents[1] / "pipeline" / "programs" / "ending.cu"
STAGES = ("baseline", "tracing", "memory", "sync-use")

HOLDING = """
import sys, time
from pathlib import Path
from ffm.results.folder.lock import writing_to
with writing_to(Path(sys.argv[1]), "ffm stage memory"):
    print("held", flush=True)
    time.sleep(600)
"""

STARTING = """
import os, sys, time
from pathlib import Path
from ffm.results.folder.lock import writing_to
with writing_to(Path(sys.argv[1]), "ffm stage memory"):
    if os.fork() == 0:
        print("held", flush=True)
        time.sleep(1)
        os._exit(0)
    time.sleep(600)
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes to the folder."""
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        yield other
        other.kill()


@pytest.fixture(scope="module")
def ending(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAM)


@pytest.fixture(scope="module")
def measured(ffm: Ffm, ending: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured") / "results"
    for stage in STAGES:
        done = ffm("stage", stage, "--results", folder, "--", ending)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", folder).code == 0
    return folder


@pytest.fixture
def results(measured: Path, tmp_path: Path) -> Path:
    """A complete measurement, to be damaged."""
    return shutil.copytree(measured, tmp_path / "results")


def refused(finished: Finished) -> str:
    assert finished.code == 1 and finished.out == ""
    (line,) = finished.err.strip().splitlines()
    assert line.startswith("ffm: ")
    return line


def test_who_holds_a_folder_is_told(held: subprocess.Popen[str], tmp_path: Path) -> None:
    told = rf"`ffm stage memory` \(process {held.pid}, since 2"
    with pytest.raises(InUseError, match=told) as raised, writing_to(tmp_path, "ffm stage baseline"):
        pytest.fail("two at once")
    assert str(tmp_path) in str(raised.value)
    found = holder(tmp_path / LOCK_FILE)
    assert found is not None and found.process_id == held.pid


def test_the_lock_of_a_killed_process_is_taken_over(held: subprocess.Popen[str], tmp_path: Path) -> None:
    (tmp_path / ".ffm-0123456789abcdef.partial").touch()
    held.kill()
    held.wait()
    assert holder(tmp_path / LOCK_FILE) is None
    with writing_to(tmp_path, "ffm stage baseline"):
        found = holder(tmp_path / LOCK_FILE)
        assert found is not None and (found.process_id, found.doing) == (os.getpid(), "ffm stage baseline")
        assert [each.name for each in tmp_path.iterdir()] == [LOCK_FILE]
    assert holder(tmp_path / LOCK_FILE) is None


def test_who_is_killed_while_it_starts_a_program_does_not_hold_the_folder_for_long(tmp_path: Path) -> None:
    """The process that is to execute the program has the lock until then."""
    command = [sys.executable, "-c", STARTING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout is not None and starting.stdout.readline() == "held\n"
        starting.kill()
        starting.wait()
        with writing_to(tmp_path, "ffm stage baseline"):
            found = holder(tmp_path / LOCK_FILE)
            assert found is not None and found.process_id == os.getpid()


def test_a_file_system_without_locks_goes_by_what_the_file_says(
    held: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(file: int, how: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", unknown)
    path, told = tmp_path / LOCK_FILE, f"process {held.pid}.*remove"
    with pytest.raises(InUseError, match=told), exclusive(path, "it", "a test"):
        pytest.fail("two at once")
    held.kill()
    held.wait()
    with exclusive(path, "it", "a test"):
        assert holder(path) is not None


def test_a_lock_file_is_no_way_to_other_files(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / LOCK_FILE).symlink_to(victim)
    with pytest.raises(OSError), writing_to(tmp_path, "ffm stage baseline"):
        pytest.fail("through a link")
    assert victim.read_text() == "mine"


def test_a_second_stage_in_a_folder_is_refused(
    ffm: Ffm, held: subprocess.Popen[str], ending: Path, tmp_path: Path
) -> None:
    write_small_results(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for words in (["baseline", "--results", tmp_path, "--", ending], ["analysis", "--results", tmp_path]):
        assert f"process {held.pid}" in refused(ffm("stage", *words))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_documents_of_a_measurement_carry_its_identity(measured: Path) -> None:
    kinds = zip(STAGES, (Baseline, Tracing, Memory, SyncUse), strict=True)
    documents = {stage: read_owned(kind, measured / f"{stage}.json")[0] for stage, kind in kinds}
    runs = agreeing(measured, documents)
    assert sorted(runs) == sorted(STAGES)
    assert (
        latest(measured).runs
        == open_results(measured).document.runs
        == runs | {"analysis": open_results(measured).document.runs["analysis"]}
    )


@pytest.mark.parametrize("stage", [*STAGES, "analysis"])
def test_a_stage_that_was_begun_anew_makes_the_analysis_out_of_date(ffm: Ffm, results: Path, stage: str) -> None:
    """As after a measurement that was killed as soon as it had begun."""
    assert ffm("report", "--results", results).code == 0
    begin_run(results, stage, {})
    for view in (["report"], ["site", "1"], ["export"]):
        sentence = refused(ffm(*view, "--results", results))
        assert f"stage {stage} was started again" in sentence and "analysis.json is older" in sentence


def test_the_analysis_refuses_documents_of_two_measurements(
    ffm: Ffm, measured: Path, results: Path, ending: Path
) -> None:
    assert ffm("stage", "baseline", "--results", results, "--", ending).code == 0
    for stage, document, words in (("analysis", "tracing", ()), ("sync-use", "memory", ("--", ending))):
        said = refused(ffm("stage", stage, "--results", results, *words))
        assert "stage baseline was started again" in said and f"{document}.json is older" in said
    (results / "measurement.json").unlink()
    assert "different measurements" in refused(ffm("stage", "analysis", "--results", results))


def test_a_killed_measurement_is_not_shown_as_the_one_before(ffm: Ffm, results: Path, ending: Path) -> None:
    command = [sys.executable, "-m", "ffm", "stage", "baseline", "--results", results, "--", ending, "hang"]
    before = (results / "measurement.json").read_bytes()
    with subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL) as measuring:
        while (results / "measurement.json").read_bytes() == before:
            assert measuring.poll() is None
        assert f"being measured again by `ffm stage baseline` (process {measuring.pid}" in refused(
            ffm("report", "--results", results)
        )
        measuring.send_signal(signal.SIGKILL)
    assert "stage baseline was started again" in refused(ffm("report", "--results", results))
    for stage in STAGES:
        assert ffm("stage", stage, "--results", results, "--", ending).code == 0
    assert ffm("stage", "analysis", "--results", results).code == 0
    assert ffm("report", "--results", results).code == 0


def test_results_without_identities_are_shown(ffm: Ffm, measured: Path, tmp_path: Path) -> None:
    """As with imported results."""
    write_small_results(tmp_path)
    assert "measurement.json" not in {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "analysis.json").read_bytes())["runs"] == {}
    assert ffm("report", "--results", tmp_path).code == 0
