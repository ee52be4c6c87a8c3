"""What a benchmark ran on and with, for the head of its results."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("frida", "numpy", "pyarrow")


def description() -> dict[str, Any]:
    """Return date (ISO 8601, UTC), machine and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
            "kernel": platform.release(),
            "load_average": os.getloadavg()[0],
        },
        "versions": {
            "ffm": commit(),
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
    }


def cpu_model() -> str:
    """Return the processor's own name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """Return the commit of this checkout, marked where the sources differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "no checkout"
