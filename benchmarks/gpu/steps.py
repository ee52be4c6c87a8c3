"""What a step of the check knows and answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class SkippedStep(Exception):  # noqa: N818
    """A step cannot be done on this machine; the message says why."""


class FailedStep(Exception):  # noqa: N818
    """A step did not come to its end; the message says why."""


@dataclass(slots=True)
class Machine:
    """What the steps work on and with."""

    output: Path
    virtual: bool
    deadline: float
    """On the clock `time.monotonic`."""
    driver: str = ""
    device: str = ""
    architecture: str = ""
    """Such as `sm_90`."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def left(self, at_most: float) -> float:
        """Return the seconds that a command may take. Raises `FailedStep` when none are left."""
        seconds = min(at_most, self.deadline - time.monotonic())
        if seconds < 1:
            raise FailedStep("no time was left")
        return seconds

    def run(self, command: list[str], at_most: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and return what it wrote. Raises `FailedStep` when it takes too long."""
        seconds = self.left(at_most)
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                out, error = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise FailedStep(f"{' '.join(command[:4])} took more than {seconds:.0f} s") from None
        return subprocess.CompletedProcess(command, process.returncode, out, error)

    def ffm(self, *arguments: str, at_most: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run `ffm`, and return what it wrote. Raises `FailedStep` when it fails."""
        done = self.run([sys.executable, "-m", "ffm", *arguments], at_most)
        if done.returncode:
            raise FailedStep(f"ffm {' '.join(arguments[:3])}: {last_line(done.stderr or done.stdout)}")
        return done


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    subject: str
    good: bool | None
    """None where there is nothing to be right or wrong about."""
    says: str
    data: Any = None


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
