"""What a benchmark ran on and with, for the head of its results."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("frida", "numpy", "pyarrow")
TOLERATED_CORES = 0.1
"""With more than this in use by others, times compare badly: even the caches are not the program's own."""


@dataclass(slots=True)
class Others:
    """What other processes did during a measurement. `cores`: cores' worth of time that they used, in the mean."""

    cores: float = 0.0

    @property
    def quiet(self) -> bool:
        """Whether the machine was the measurement's own."""
        return self.cores <= TOLERATED_CORES

    def __str__(self) -> str:
        told = f"other processes used {self.cores:.2f} cores meanwhile"
        return told if self.quiet else f"{told}: NOT a quiet machine, do not rely on these figures"


@contextmanager
def watch_others() -> Iterator[Others]:
    """Fill in, at the end of the block, what processes other than this one and its children used (Linux only)."""
    others = Others()
    began, busy, own = time.monotonic(), _busy_s(), _own_s()
    yield others
    others.cores = max(0.0, (_busy_s() - busy) - (_own_s() - own)) / (time.monotonic() - began)


def _busy_s() -> float:
    """Return the seconds that all cores together have not been idle; time that the host took away is counted."""
    user, nice, system, _idle, _iowait, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def description() -> dict[str, Any]:
    """Return date (ISO 8601, UTC), machine and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
            "kernel": platform.release(),
        },
        "versions": {
            "ffm": commit(),
            "python": platform.python_version(),
            **{package: installed_version(package) for package in PACKAGES},
        },
    }


def installed_version(package: str) -> str:
    """Return the version of an installed package, or say that it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def cpu_model() -> str:
    """Return the processor's own name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """Return the commit of this checkout, marked where the sources differ from it; a copy without git has none."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
    except OSError:
        described = ""
    return described or "no checkout"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Start programs at real-time priority, where that is permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
