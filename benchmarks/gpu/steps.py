"""What a step of the check receives and returns."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]


class SkippedStep(Exception):  # noqa: N818
    """A step cannot be done on this machine; the message says why."""


class FailedStep(Exception):  # noqa: N818
    """A step did not finish; the message says why."""


class OutOfTime(FailedStep):
    """The time of the step was over before a command was."""


@dataclass(slots=True)
class Machine:
    """What the steps work on and with."""

    output: Path
    """For the three result files: `check.json`, `check.txt`, `doctor.json`."""
    virtual: bool
    deadline: float
    """On the clock `time.monotonic`."""
    driver: str = ""
    device: str = ""
    architecture: str = ""
    """Such as `sm_90`."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def work(self) -> Path:
        """For programs, results and everything else that is written on the way."""
        return self.output / "work"

    @property
    def programs(self) -> Path:
        """Where the compiled samples and planted programs are."""
        return self.work / "programs"

    def left(self, at_most: float) -> float:
        """Return the seconds that a command may take. Raises `OutOfTime` if none are left."""
        seconds = min(at_most, self.deadline - time.monotonic())
        if seconds < 1:
            raise OutOfTime("no time was left")
        return seconds

    def start(self, command: list[str], output: IO[Any] | int, error: IO[Any] | int) -> subprocess.Popen[str]:
        """Start a command in a separate process group, which ends with this process at the latest."""
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=error,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _groups.add(process.pid)
        return process

    def run(self, command: list[str], at_most: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and return its output.

        Raises:
            OutOfTime: The step's time was over first.
                       FailedStep: It cannot be started, or took longer than `at_most` seconds.
        """
        seconds = self.left(at_most)
        try:
            process = self.start(command, subprocess.PIPE, subprocess.PIPE)
        except OSError as error:
            raise FailedStep(f"{command[0]} cannot be started: {error.strerror}") from None
        with process:
            try:
                out, errors = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                sort = OutOfTime if seconds < at_most else FailedStep
                raise sort(f"{' '.join(command[:5])} took more than {seconds:.0f} s") from None
            finally:
                end_group(process)
        return subprocess.CompletedProcess(command, process.returncode, out, errors)

    def ffm(self, *arguments: str, at_most: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run `ffm`, and return its output. Raises `FailedStep` if it fails."""
        done = self.run([sys.executable, "-m", "ffm", *arguments], at_most)
        if done.returncode:
            raise FailedStep(f"ffm {' '.join(arguments[:2])}: {last_line(done.stderr or done.stdout)}")
        return done


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    subject: str
    good: bool | None
    """None if there is nothing to be right or wrong about."""
    says: str
    data: Any = None


_groups: set[int] = set()


def end_group(process: subprocess.Popen[str]) -> None:
    """Stop a command and everything that it started."""
    _groups.discard(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@atexit.register
def end_all_groups() -> None:
    """Stop what is still running."""
    for group in _groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def last_line(text: str) -> str:
    """Return the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return lines[-1] if lines else "it said nothing"
