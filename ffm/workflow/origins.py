"""The processes that started a stage: if one of them is killed, the stage ends too, and with it the measured program.

A killed process cannot end what it started. So each leaves its identity in the environment, and the stage watches for
its end.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from pathlib import Path

VARIABLE = "FFM_STARTED_BY"
"""Processes separated by spaces, each as machine:number:start."""


def with_this_process(environment: str | None) -> str:
    """Return the variable's value with this process added."""
    return f"{environment or ''} {_identity(os.getpid())}".strip()


def end_with_origins() -> None:
    """End this process by SIGTERM as soon as one of those that started it is gone; programs do not see the variable."""
    for text in os.environ.pop(VARIABLE, "").split():
        number = text.split(":")[1] if text.count(":") == 2 else ""
        if not number.isdecimal() or not text.startswith(f"{_machine()}:"):
            continue  # a job of a cluster, whose scheduler ends it
        try:
            handle = os.pidfd_open(int(number))
        except ProcessLookupError:
            handle = None
        except OSError:
            continue
        if handle is None or _identity(int(number)) != text:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        threading.Thread(target=_end_with, args=(handle,), daemon=True).start()


def _end_with(handle: int) -> None:
    select.select([handle], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def _identity(process: int) -> str:
    """Numbers of processes are used again; together with the time of their start they are not."""
    try:
        start = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        start = ""
    return f"{_machine()}:{process}:{start}"


def _machine() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
