"""Programs that keep running: ffm measures them for a time and leaves them as if it had never been there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from ffm.instrument.modes import Mode
from ffm.instrument.recording.progress import progress_of
from ffm.instrument.recording.reader import read_recordings
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request
from ffm.stages.tracing import OBSERVED, without_ties
from tests.conftest import Begin, Begun, Ffm

PROGRAM = Path(__file__).parent / "programs" / "lives_on.cu"
PATIENCE = 120.0
"""Seconds for what takes a few on an idle machine."""

MANY = 300
"""Turns of the program, which makes six driver calls in each."""


@pytest.fixture(scope="module")
def program(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAM)


@dataclass(frozen=True, slots=True)
class Told:
    """The files that say how far the program is, and that tell it to end."""

    progress: Path
    end: Path

    def processes(self) -> list[int]:
        """Find the program's processes by their arguments, which ended ones do not have."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(PROGRAM.stem.encode()) and os.fsencode(self.progress) in words:
                    found.append(int(process.name))
        return found

    def turns(self) -> int:
        return int(self.progress.read_text().split()[0])

    def lives_on(self) -> None:
        """It makes calls after it was left, with the right results, and ends as it would have."""
        before = self.turns()
        assert until(lambda: self.turns() > before + MANY)
        assert len(self.processes()) == 1
        self.end.touch()
        assert until(lambda: not self.processes())
        _, wrong, end = self.progress.read_text().split()
        assert (int(wrong), end) == (0, "ended")


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """What a failed test leaves running is killed."""
    files = Told(tmp_path / "progress", tmp_path / "end")
    yield files
    for process in files.processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def measured_for_ever(begin_ffm: Begin, program: Path, told: Told, results: Path) -> Begun:
    """Start a measurement whose time is not over soon, and wait until it has recorded something."""
    words = ("run", "--quick", "--for", "1h", "--detach", "--results", results, program, told.progress, told.end)
    measuring = begin_ffm(*words)
    folder = results / "recordings" / "tracing"
    assert until(lambda: any(one.operations > 100 for one in progress_of(folder)))
    return measuring


def test_a_program_that_was_measured_lives_on(ffm: Ffm, program: Path, told: Told, tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = ("run", "--quick", "--for", "0.5s", "--detach", "--results", results, program, told.progress, told.end)
    done = ffm(*words, folder=tmp_path)
    assert done.code == 0, done.err
    assert "then left running" in " ".join(done.out.split())
    document = orjson.loads((results / "tracing.json").read_bytes())
    run = document["run"]
    assert (run["status"]["cut"], run["status"]["left"], run["status"]["code"]) == ("time", True, None)
    assert [one["device"] for one in document["devices"]] == [0]
    (process,) = run["processes"]
    assert process["operations"] > 0
    told.lives_on()
    (recording,) = read_recordings(results / "recordings" / "tracing")
    assert len(recording.operations) == process["operations"]


def test_ctrl_c_leaves_it_running_too(begin_ffm: Begin, program: Path, told: Told, tmp_path: Path) -> None:
    measuring = measured_for_ever(begin_ffm, program, told, tmp_path / "results")
    measuring.tell(signal.SIGINT)
    measuring.wait(PATIENCE)
    run = orjson.loads((tmp_path / "results" / "tracing.json").read_bytes())["run"]
    assert (run["status"]["cut"], run["status"]["left"]) == ("interruption", True)
    told.lives_on()


def test_it_lives_on_if_ffm_is_killed(begin_ffm: Begin, program: Path, told: Told, tmp_path: Path) -> None:
    measuring = measured_for_ever(begin_ffm, program, told, tmp_path / "results")
    measuring.tell(signal.SIGKILL)
    measuring.wait(PATIENCE)
    told.lives_on()


@pytest.mark.parametrize("leave", [False, True])
def test_no_function_of_the_c_library_is_replaced_in_what_lives_on(tmp_path: Path, leave: bool) -> None:
    request = Request(["program"], ResultsFolder(tmp_path), None, leave=leave)
    ties = Mode.LIVES | Mode.HOST
    assert without_ties(OBSERVED | ties, request) & ties == (Mode.NONE if leave else ties)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "--quick", "--detach"), "how long with --for"),
        (("run", "--for", "1s", "--detach"), "add --quick"),
        (("stage", "tracing", "--detach", "--"), "how long with --for"),
    ],
)
def test_where_it_would_make_no_sense_it_is_refused(
    ffm: Ffm, program: Path, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    done = ffm(*words, program, "1", folder=tmp_path)
    assert done.code == 2 and why in done.err
    assert not (tmp_path / "results").exists()
