"""A terminal, at which the user is asked whether the command of somebody else's results may run."""

from __future__ import annotations

import errno
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import write_small_results

QUESTION = b"Run it? [y/N]: "
SECONDS = 60.0
END_OF_FILE, INTERRUPT = b"\x04", b"\x03"

RUNS_AT_ONCE = """
import subprocess
from ffm.cli import apply_remedy, main
apply_remedy._apply = lambda results, remedies, sites, command, **_: subprocess.run(command, check=True)
main.main()
"""
"""`ffm` where `apply-remedy` merely runs the command, without a correction."""


@dataclass(slots=True)
class Terminal:
    """The end of a terminal at which the user sits, and the command that runs there."""

    end: int
    command: subprocess.Popen[bytes]

    def read_until(self, awaited: bytes | None, again: bytes = b"") -> bytes:
        """Read what is shown, up to the awaited text, or to the end of the command; type `again` each second."""
        shown, end = b"", time.monotonic() + SECONDS
        while awaited is None or awaited not in shown:
            assert time.monotonic() < end, shown
            if not select.select([self.end], [], [], 1.0)[0]:
                os.write(self.end, again)
                continue
            try:
                part = os.read(self.end, 4096)
            except OSError as error:
                assert error.errno == errno.EIO  # the command has closed the terminal
                part = b""
            if not part:
                assert awaited is None, shown
                break
            shown += part
        return shown


@contextmanager
def at_terminal(folder: Path, *ffm: str) -> Iterator[Terminal]:
    """Run `apply-remedy` on the foreign results in `folder` in a session of its own at a new terminal."""
    end, other = pty.openpty()
    words = [sys.executable, *(ffm or ("-m", "ffm")), "apply-remedy", "--all", "--results", str(folder / "results")]
    command = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words], cwd=folder, stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    try:
        yield Terminal(end, command)
    finally:
        command.kill()
        command.wait()
        os.close(end)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Foreign results, whose command `./solve` leaves a file."""
    write_small_results(tmp_path / "results")
    (tmp_path / "solve").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "solve").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (b"n\n", 1, b"nothing was run"),
        (b"\n", 1, b"nothing was run"),
        (END_OF_FILE, 1, b"nothing was run"),
        (INTERRUPT, 130, b"interrupted"),
    ],
    ids=["no", "no answer", "end of file", "interrupt"],
)
def test_nothing_runs_without_a_yes(folder: Path, answer: bytes, code: int, said: bytes) -> None:
    with at_terminal(folder) as terminal:
        asked = terminal.read_until(QUESTION)
        assert b"not signed as a measurement of yours" in asked and b"\r\n  ./solve\r\n" in asked
        os.write(terminal.end, answer)
        # An interrupt that comes in the moment before Python reads is seen with the next key only.
        told = terminal.read_until(None, again=answer if answer == INTERRUPT else b"")
        assert terminal.command.wait(SECONDS) == code, told
    assert told.count(b"ffm: ") == 1 and said in told and b"Traceback" not in told and b"Aborted" not in told
    assert not (folder / "ran").exists()


def test_another_answer_is_asked_again_and_yes_runs_the_command(folder: Path) -> None:
    with at_terminal(folder, "-c", RUNS_AT_ONCE) as terminal:
        terminal.read_until(QUESTION)
        os.write(terminal.end, b"perhaps\n")
        terminal.read_until(QUESTION)
        assert not (folder / "ran").exists()
        os.write(terminal.end, b"y\n")
        told = terminal.read_until(None)
    assert (folder / "ran").exists(), told


def test_the_terminal_that_goes_away_is_no_yes(folder: Path) -> None:
    with at_terminal(folder) as terminal:
        terminal.read_until(QUESTION)
        os.close(terminal.end)
        terminal.end = os.open(os.devnull, os.O_RDONLY)
        assert terminal.command.wait(SECONDS) in (1, 128 + signal.SIGHUP, -signal.SIGHUP)
    assert not (folder / "ran").exists()
