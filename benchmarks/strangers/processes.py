"""Commands with a limit of processor time, whatever else the machine does; what they start ends with them."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LARGEST_OUTPUT = 1 << 20
"""Bytes kept of what a command writes."""
PATIENCE = 8.0
"""How much longer than its limit of processor time a command may take by the clock: it may sleep, or wait its turn."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `status` is None if it ran past its limit; negative if a signal ended it."""

    status: int | None
    seconds: float
    """Of processor time, that of all its threads, and of what it started and waited for."""
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
            return f"still running after {self.seconds:.0f} s of processor time"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


def whole_lines(output: str) -> str:
    """Return the lines of a command's output that were kept whole."""
    cut = len(output.encode(errors="replace")) >= LARGEST_OUTPUT
    return output[: output.rfind("\n") + 1] if cut else output


def call(command: list[str], folder: Path, environment: dict[str, str], limit_s: float) -> Ended:
    """Run a command in a folder; what still runs of its process group after the limit is killed."""
    behind = time.monotonic() + PATIENCE * limit_s
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 1)),
        )
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > behind:
                break
            time.sleep(0.05)
        late = time.monotonic() > behind
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, raw, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(raw)
        late |= process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        output.seek(0)
        seconds = used.ru_utime + used.ru_stime
        status = None if late else process.returncode
        return Ended(status, seconds, output.read(LARGEST_OUTPUT).decode(errors="replace"))
