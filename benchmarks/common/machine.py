"""What a benchmark ran on and with, for the head of its results."""

from __future__ import annotations

import argparse
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
"""If others use more than this, times are not comparable: even the caches are shared."""
PRIORITY = 20
"""The real-time priority of measured programs. At a lower one, others' measurements would take processor time away."""


@dataclass(slots=True)
class Others:
    """What other processes did during a measurement.

    `cores` is the mean number of cores that they used; None until the measurement is over. It can be slightly below
    zero, because it is the difference of two clocks that do not tick together.
    """

    cores: float | None = None

    @property
    def quiet(self) -> bool:
        """Whether the measurement had the machine to itself."""
        return self.cores is not None and self.cores <= TOLERATED_CORES

    def __str__(self) -> str:
        if self.cores is None:
            return "the measurement is not over"
        told = f"other processes used {self.cores:.2f} cores meanwhile"
        return told if self.quiet else f"{told}: NOT a quiet machine, do not rely on these figures"


@contextmanager
def watch_others() -> Iterator[Others]:
    """Record, at the end of the block, what processes other than this one and its children used (Linux only)."""
    others = Others()
    began, idle, own = time.monotonic(), _idle_s(), _own_s()
    yield others
    seconds = time.monotonic() - began
    busy = seconds * (os.cpu_count() or 1) - (_idle_s() - idle)
    others.cores = (busy - (_own_s() - own)) / seconds


def _idle_s() -> float:
    """Return the seconds that all cores together were idle, without time that the host took away."""
    _user, _nice, _system, idle, waiting, *_rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (idle + waiting) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def description(arguments: argparse.Namespace, others: Others) -> dict[str, Any]:
    """Return the head of results: date (ISO 8601, UTC), command line, what others used, machine and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "arguments": {
            name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()
        },
        "others_cores": others.cores,
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
    """Return the version of an installed package, or say that it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def cpu_model() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """Return the commit of this checkout, marked if the sources differ from it; empty for a copy without git."""
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
    """Start programs at real-time priority, if that is permitted. A caller's own priority stays if high enough."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    if policy in (os.SCHED_FIFO, os.SCHED_RR) and parameters.sched_priority >= PRIORITY:
        yield
        return
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
