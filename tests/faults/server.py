"""A process that has imported ffm and forks for each command: what takes most of a short command is done once.

Run as a program, it reads commands from its standard input, one JSON object a line, and tells the number and then the
wait status of each.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

IMPORTED = (
    "ffm.cli.main",
    "ffm.cli.progress",
    "ffm.driver.analysis",
    "ffm.stages.timeline_file",
    "ffm.stages.findings",
    "ffm.instrument.recording",
    "numpy.ma",
)
"""Modules without Frida, which does not work in a fork of the process that imported it."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended, or was ended because it took too long."""

    code: int
    """Exit status, or minus the number of a signal."""
    errors: str
    hung: bool


class Server:
    """Runs `ffm` in forks of one process; one command at a time."""

    def __init__(self, scratch: Path) -> None:
        self._errors = scratch / "errors"
        self._process: subprocess.Popen[str] | None = None
        self._running = 0

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def begin(self, words: list[str], folder: Path, environment: dict[str, str]) -> int:
        """Begin a command, and return the number of its process, which leads a session."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._errors.unlink(missing_ok=True)
        command = {"words": words, "folder": str(folder), "environment": environment, "errors": str(self._errors)}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        self._running = int(self._process.stdout.readline())
        return self._running

    def wait(self, seconds: float) -> Done:
        """Wait for the command's end; end it when the time is up."""
        assert self._process is not None and self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            os.killpg(self._running, signal.SIGKILL)
        status = int(self._process.stdout.readline())
        errors = self._errors.read_text(errors="replace") if self._errors.exists() else ""  # it was killed before
        return Done(os.waitstatus_to_exitcode(status), errors, not ready)


def _serve() -> bool:
    """Fork for each command, and return true in the child; false once there are no more commands."""
    while line := sys.stdin.readline():
        command: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(command)
            return True
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()
    return False


def _become(command: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    errors = os.open(command["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for file, number in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(file, number)
    os.closerange(3, max(errors, nothing) + 1)
    sys.argv = ["ffm", *command["words"]]


if __name__ == "__main__":
    for _name in IMPORTED:
        __import__(_name)
    from ffm.instrument.layout import declarations

    declarations()
    if _serve():
        runpy.run_module("ffm", run_name="__main__")
