"""A program that reads its standard input is given the same in each run. About 20 s in all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.results.stored import open_results
from tests.conftest import ROOT, Ffm
from tests.stage_commands import run_stages

SUM = "1275\n"
"""Of the numbers in the file."""


@pytest.fixture(scope="module")
def program(build_program: Callable[..., Path]) -> Path:
    return build_program(Path(__file__).parent / "programs" / "reads_input.cu")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "some numbers"
    path.write_text("\n".join(map(str, range(51))))
    return path


@pytest.fixture(scope="module")
def measured(ffm: Ffm, program: Path, numbers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("measured")
    run_stages(ffm, [program], results, {"stdin": str(numbers)})
    return results


def with_input(folder: Path, source: int | None, *arguments: str | Path, given: str | None = None) -> tuple[int, str]:
    """Run `ffm` with a standard input; return its exit status and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "ffm", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=source,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_each_run_reads_the_file_from_its_start(measured: Path) -> None:
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        assert (measured / f"{stage}.log").read_text() == SUM


def test_results_say_what_was_read(measured: Path, numbers: Path, ffm: Ffm) -> None:
    run = open_results(measured).document.run
    assert run is not None and run.stdin is not None
    assert run.stdin.file == str(numbers)
    assert run.stdin.size == numbers.stat().st_size
    assert json.loads(ffm("report", "--results", measured, "--json").out)["stdin"] == str(numbers)
    assert "numbers'" in ffm("report", "--results", measured).out


def test_runs_with_other_input_are_not_joined(ffm: Ffm, measured: Path, program: Path, tmp_path: Path) -> None:
    results = tmp_path / "mixed"
    shutil.copytree(measured, results)
    other = tmp_path / "other"
    other.write_text("1 2 3")
    done = ffm("stage", "sync-use", "--results", results, "--stdin", other, "--", program)
    assert done.code == 0, done.err
    done = ffm("stage", "analysis", "--results", results)
    assert done.code == 1
    assert "read different standard input" in done.err


def test_corrected_runs_read_what_the_measured_ones_read(
    ffm: Ffm, program: Path, numbers: Path, measured: Path, tmp_path: Path
) -> None:
    words = ("apply-remedy", "--skip-syncs", "--runs", 1, "--results", measured, "--json")
    done = ffm(*words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["stdin"] == str(numbers)
    assert json.loads(done.out)["differences"] == []


def test_changed_input_is_not_taken_for_the_measured_one(
    ffm: Ffm, program: Path, numbers: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    shutil.copy(numbers, mine)
    run_stages(ffm, [program], tmp_path / "results", {"stdin": str(mine)})
    mine.write_text("1")
    words = ("apply-remedy", "--skip-syncs", "--runs", 1, "--results", tmp_path / "results", "--json")
    refused = ffm(*words)
    assert refused.code == 1
    assert f"read {mine}" in refused.err and "gone or has changed" in refused.err and "--stdin FILE" in refused.err
    assert json.loads(ffm(*words, "--stdin", numbers).out)["stdin"] == str(numbers)


def test_measurements_with_other_input_are_told_apart(
    ffm: Ffm, program: Path, measured: Path, numbers: Path, tmp_path: Path
) -> None:
    assert json.loads(ffm("compare", measured, measured, "--json").out)["inputs"] == []
    other = tmp_path / "other"
    other.write_text("1 2 3")
    run_stages(ffm, [program], tmp_path / "results", {"stdin": str(other)})
    done = ffm("compare", measured, tmp_path / "results")
    assert f"read different input and may have done different work: {numbers} before, {other} after" in done.out


def test_a_redirected_file_is_read_from_its_start_in_each_run(program: Path, numbers: Path, tmp_path: Path) -> None:
    with numbers.open() as source:
        status, said = with_input(tmp_path, source.fileno(), "run", program)
    assert status == 0, said
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        assert (tmp_path / "results/reads_input" / f"{stage}.log").read_text() == SUM


def test_a_pipe_is_copied_for_all_runs_if_that_is_asked(program: Path, numbers: Path, tmp_path: Path) -> None:
    words = ("stage", "baseline", "--results", tmp_path / "results", "--")
    status, said = with_input(tmp_path, None, *words, program, given=numbers.read_text())
    assert status == 1
    assert "`--stdin -`" in said and "`< /dev/null`" in said
    assert not (tmp_path / "results").exists()
    words = (*words[:-1], "--stdin", "-", "--")
    status, said = with_input(tmp_path, None, *words, program, given=numbers.read_text())
    assert status == 0, said
    copy = tmp_path / "results" / "standard-input"
    assert copy.read_text() == numbers.read_text()
    assert copy.stat().st_mode & 0o777 == 0o600
    before = copy.stat()
    assert with_input(tmp_path, None, *words, program, given=numbers.read_text())[0] == 0
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_input_that_was_read_in_part_is_not_passed_on_without_a_word(
    program: Path, numbers: Path, tmp_path: Path
) -> None:
    with numbers.open("rb", buffering=0) as source:
        source.read(4)
        status, said = with_input(tmp_path, source.fileno(), "stage", "baseline", "--", program)
        assert status == 1
        assert "has been read in part" in said
        source.seek(0, os.SEEK_END)  # as at the end of a loop of the shell
        status, said = with_input(tmp_path, source.fileno(), "stage", "baseline", "--accept-status", "3", "--", program)
    assert status == 0, said
    assert (tmp_path / "results/reads_input/baseline.log").read_text() == "0\n"


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device"])
def test_what_cannot_be_read_again_is_refused_before_anything_runs(
    ffm: Ffm, program: Path, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "input"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file = Path("/dev/zero")
    said = {"missing": "does not exist", "folder": "is a folder", "pipe": "is a pipe", "device": "not a regular file"}
    for words in (("run",), ("run", "--quick"), ("stage", "baseline")):
        refused = ffm(*words, "--stdin", file, "--", program, folder=tmp_path)
        assert refused.code == 1
        (line,) = refused.err.splitlines()
        assert str(file) in line and said[kind] in line
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(ffm: Ffm, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.touch(mode=0)
    refused = ffm("stage", "baseline", "--stdin", file, "--", program, folder=tmp_path)
    assert refused.code == 1
    assert "Permission denied" in refused.err
