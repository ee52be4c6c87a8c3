"""Commands with a limit of time; what they start ends with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LARGEST_OUTPUT = 1 << 20
"""Bytes kept of what a command writes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `status` is None if it ran past its limit; negative if a signal ended it."""

    status: int | None
    seconds: float
    output: str
    """Both streams, in the order in which they were written."""

    @property
    def well(self) -> bool:
        """Whether it ended by itself, with status 0."""
        return self.status == 0

    @property
    def told(self) -> str:
        """How it ended, in words."""
        if self.status is None:
            return f"still running after {self.seconds:.0f} s"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


def call(command: list[str], folder: Path, environment: dict[str, str], limit_s: float) -> Ended:
    """Run a command in a folder; what still runs of its process group after the limit is killed."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(limit_s)
        seconds = time.monotonic() - began
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return Ended(status, seconds, output.read(LARGEST_OUTPUT).decode(errors="replace"))
