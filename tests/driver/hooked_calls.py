"""Calls of all functions of a driver that the catalogue knows, with ffm's hooks and without."""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path
from subprocess import run

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import Outcome, run_instrumented

CATALOGUE = load_catalogue()
HERE = Path(__file__).parent
SECONDS = 60.0
MOST_SKIPPED = 50


class NoWait:
    offsets: tuple[int, ...] = ()


def instrumented(command: list[str], folder: Path, mode: int = 0) -> Outcome:
    """Run a command with ffm's hooks; what it prints is in `folder / "output"`."""
    recordings = folder / "recordings"
    recordings.mkdir()
    names = [function.name for function in CATALOGUE.functions]
    instruments = Instruments(recordings, names, mode, None, lambda _driver: NoWait())
    return run_instrumented(command, instruments, output=folder / "output", timeout_s=SECONDS)


@functools.cache
def call_bare(driver: Path) -> tuple[list[str], str]:
    """Call everything without hooks; return the calls that end the process, which are skipped with hooks, and what the
    others answered.
    """
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "bare"
        while len(skipped) < MOST_SKIPPED:
            if run(call_everything(driver, output, skipped), capture_output=True, timeout=SECONDS).returncode == 0:
                return skipped, output.read_text()
            last = output.read_text().splitlines()[-1]
            assert " " not in last, "it ended outside a call"
            skipped.append(last)
    raise AssertionError(f"too many calls end the process: {skipped}")


def call_everything(driver: Path, output: Path, skipped: list[str]) -> list[str]:
    return [sys.executable, str(HERE / "call_everything.py"), str(driver), str(output), ",".join(skipped)]


def check_answers(driver: Path, folder: Path, mode: int) -> list[str]:
    """Check that each call answers with hooks what it answers without them, and is recorded; return the answers."""
    hooked = folder / "hooked"
    skipped, expected = call_bare(driver)
    outcome = instrumented(call_everything(driver, hooked, skipped), folder, mode)
    answers = hooked.read_text()
    assert str(outcome.ending) == "exited with code 0", (answers.splitlines()[-1], (folder / "output").read_text())
    assert answers == expected
    lines = answers.splitlines()
    calls = [line.partition(" ")[0] for line in lines]
    assert len(calls) > 800
    unrecorded = {function.name for function in CATALOGUE.functions if function.makes_context}
    (recording,) = read_recordings(folder / "recordings")
    assert len(recording.operations) == sum(unrecorded.isdisjoint(call.split(":")) for call in calls)
    return lines
