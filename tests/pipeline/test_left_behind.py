"""Programs whose first process ends before others, and what Frida leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.frida_home import OWNER, PREFIX, sweep
from tests.conftest import Ffm
from tests.pipeline.test_interruption import processes_of

CALLS = 100


@pytest.fixture
def program(build_program: Callable[[Path], Path]) -> Iterator[Path]:
    built = build_program(Path(__file__).parent / "programs" / "left_behind.cu")
    yield built
    for process in processes_of(built):
        os.kill(process, signal.SIGKILL)


def test_a_daemon_is_measured_to_its_end(ffm: Ffm, program: Path, tmp_path: Path) -> None:
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--timeout", 60, "--", program, "daemon")
        assert done.code == 0, done.err
    index = load_catalogue()["cuMemcpyDtoH_v2"].index
    (recording,) = read_recordings(tmp_path / "recordings" / "tracing")
    assert (recording.operations["function"] == index).sum() == CALLS


@pytest.mark.thorough
def test_the_time_limit_holds_for_what_is_left_behind(ffm: Ffm, program: Path, tmp_path: Path) -> None:
    done = ffm("stage", "baseline", "--results", tmp_path, "--timeout", 5, "--", program, "endless")
    assert done.code != 0 and "time limit" in done.err
    assert not processes_of(program)


def test_a_process_that_never_answers_holds_nobody_up(
    ffm: Ffm, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = ffm("stage", "baseline", "--results", tmp_path / "results", "--timeout", 60, "--", program, "stopped")
    assert done.code == 0, done.err
    assert not list(temporary.iterdir())


def test_what_a_killed_ffm_left_is_removed_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    from ffm.instrument.session.frida_home import _locked_file

    killed, living = tmp_path / f"{PREFIX}killed", tmp_path / f"{PREFIX}living"
    for home in (killed, living):
        home.mkdir()
    (killed / OWNER).touch()
    owner = _locked_file(living / OWNER)
    sweep(tmp_path)
    os.close(owner)
    assert [home.name for home in tmp_path.iterdir()] == [living.name]
