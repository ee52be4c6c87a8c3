"""A disk that fills up, or fails, at each operation in turn: one sentence, an exit status, and no partial file."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ffm.results.folder.lock import LOCK_FILE, writing_to
from tests.cli.command_line import write_small_results
from tests.conftest import Finished
from tests.faults.injected import build_full_disk, failing_disk
from tests.server import Server

OUTPUTS = {"page": ("report", "--html"), "sarif": ("remedies", "--sarif"), "json": ("export", "--output")}


Run = Callable[[Sequence[str | Path], Mapping[str, str]], Finished]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_full_disk(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def run(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run ffm with the library, which looks at the environment at each operation and counts only if that says so."""
    with Server(tmp_path_factory.mktemp("server"), preload=library) as server:

        def run_one(words: Sequence[str | Path], environment: Mapping[str, str]) -> Finished:
            done = server.run([*map(str, words)], Path.cwd(), {**environment}, 60)
            assert not done.hung, done.errors
            return Finished(done.code, done.output, done.errors)

        yield run_one


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_small_results(folder)
    return folder


def refused(finished: Finished) -> str:
    assert finished.code == 1, finished.err
    (line,) = finished.err.strip().splitlines()
    assert line.startswith("ffm: ")
    return line


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)
def test_no_output_is_cut(run: Run, library: Path, results: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Creation, first write, last write and renaming fail in turn."""
    output = tmp_path / "output"
    output.write_text("from before")
    for at in range(1, 30):
        done = run([*words, output, "--results", results], failing_disk(library, tmp_path, at, errno.ENOSPC))
        if done.code == 0:
            break
        sentence = refused(done)
        assert str(output) in sentence and "No space left on device" in sentence and "Make room" in sentence
        assert output.read_text() == "from before"
        assert [each.name for each in tmp_path.iterdir()] == ["output"]
    assert at > 3
    assert output.read_bytes() != b"from before"


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EACCES, "permission"), (errno.EROFS, "another place"), (errno.EIO, "dmesg"), (errno.EMFILE, "ulimit -n")],
)
def test_every_cause_is_told_with_what_to_do(
    run: Run, library: Path, results: Path, tmp_path: Path, number: int, advice: str
) -> None:
    output = tmp_path / "all.json"
    done = run(["export", "-o", output, "--results", results], failing_disk(library, tmp_path, 1, number))
    sentence = refused(done)
    assert str(output) in sentence and os.strerror(number) in sentence and advice in sentence


@pytest.mark.parametrize("words", [["report"], ["report", "--json"], ["remedies"], ["export"], ["--help"]], ids=str)
def test_standard_output_that_is_full(results: Path, words: list[str]) -> None:
    folder = [] if words == ["--help"] else ["--results", str(results)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ffm", *words, *folder], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "standard output" in refused(Finished(done.returncode, "", done.stderr))


@pytest.mark.parametrize("words", [["report"], ["export"]], ids=str)
def test_a_reader_that_leaves_early_is_no_error_to_tell(results: Path, words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ffm", *words, "--results", str(results)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""


def test_a_folder_without_room_for_who_holds_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left") as raised, writing_to(tmp_path, "ffm stage analysis"):
        pass
    assert raised.value.filename == str(tmp_path / LOCK_FILE)
