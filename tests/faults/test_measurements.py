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


VIEWS = (["report"], ["fold", "cudaMemcpy"], ["path"], ["remedies"], ["export"], ["export", "--format", "speedscope"])


@pytest.mark.parametrize("stage", STAGES)
def test_the_last_complete_measurement_is_shown_while_a_newer_one_is_not_complete(
    ffm: Ffm, results: Path, stage: str
) -> None:
    """As after a measurement that was killed as soon as it had begun."""
    shown = [ffm(*view, "--results", results) for view in VIEWS]
    assert all(done.code == 0 and not done.err for done in shown)
    begin_run(results, stage, {})
    for view, before in zip(VIEWS, shown, strict=True):
        done = ffm(*view, "--results", results)
        assert (done.code, done.out) == (0, before.out)
        (line,) = done.err.splitlines()
        assert f"Stage {stage} was started again in {results}" in line and "last complete one" in line
    sentence = refused(ffm("export", "--stage", stage, "--results", results))
    assert f"Stage {stage} was started again" in sentence and f"{stage}.json is older" in sentence
    gate = ffm("check", "--results", results)
    assert gate.code == 2 and gate.out == "" and f"Stage {stage} was started again" in gate.err


def test_an_analysis_that_fails_leaves_the_last_one(ffm: Ffm, results: Path) -> None:
    """Also those of its files that were written again before it failed."""
    before = ffm("path", "--results", results)
    limited = f'ulimit -f {(results / "analysis.json").stat().st_size // 1024 - 1} && exec "$@"'
    command = ["bash", "-c", limited, "-", sys.executable, "-m", "ffm", "stage", "analysis", "--results", str(results)]
    files = {path: path.read_bytes() for path in results.iterdir() if path.suffix in (".json", ".arrow")}
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and str(results / "analysis.json") in done.stderr, done.stderr
    assert {path for path, content in files.items() if path.read_bytes() != content} == {results / "measurement.json"}
    assert not [path for path in results.iterdir() if path.name.endswith(".partial")]
    after = ffm("path", "--results", results)
    assert (after.code, after.out, after.err) == (0, before.out, "")
    assert ffm("stage", "analysis", "--results", results).code == 0


def test_the_analysis_refuses_documents_of_two_measurements(
    ffm: Ffm, measured: Path, results: Path, ending: Path
) -> None:
    assert ffm("stage", "baseline", "--results", results, "--", ending).code == 0
    for stage, document, words in (("analysis", "tracing", ()), ("sync-use", "memory", ("--", ending))):
        said = refused(ffm("stage", stage, "--results", results, *words))
        assert "Stage baseline was started again" in said and f"{document}.json is older" in said
    (results / "measurement.json").unlink()
    assert "different measurements" in refused(ffm("stage", "analysis", "--results", results))


def test_the_measurement_before_one_that_runs_or_was_killed_is_shown(ffm: Ffm, results: Path, ending: Path) -> None:
    command = [sys.executable, "-m", "ffm", "stage", "baseline", "--results", results, "--", ending, "hang"]
    before = (results / "measurement.json").read_bytes()
    with subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL) as measuring:
        try:
            while (results / "measurement.json").read_bytes() == before:
                assert measuring.poll() is None
            shown = ffm("report", "--results", results)
            said = refused(ffm("export", "--stage", "tracing", "--results", results))
        finally:
            measuring.send_signal(signal.SIGKILL)
    assert f"being measured again by `ffm stage baseline` (process {measuring.pid}" in shown.err
    assert said.endswith("wait for the end of that measurement.")
    killed = ffm("report", "--results", results)
    assert shown.code == killed.code == 0 and shown.out == killed.out and "Stage baseline was started" in killed.err
    for stage in STAGES:
        assert ffm("stage", stage, "--results", results, "--", ending).code == 0
    assert ffm("stage", "analysis", "--results", results).code == 0
    last = ffm("report", "--results", results)
    assert last.code == 0 and not last.err


def test_results_without_identities_are_shown(ffm: Ffm, measured: Path, tmp_path: Path) -> None:
    """As with imported results."""
    write_small_results(tmp_path)
    assert "measurement.json" not in {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "analysis.json").read_bytes())["runs"] == {}
    assert ffm("report", "--results", tmp_path).code == 0
