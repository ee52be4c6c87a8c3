"""Snakemake's lock on the files of a measurement, which a killed Snakemake leaves behind.

Snakemake cannot distinguish that from the lock of a running one, and would end without a message. So a process that
runs this workflow also holds a lock of ours, which ends with the process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
from pathlib import Path

from ffm.results.folder.lock import exclusive

RECORDS = Path(".snakemake")
"""Where Snakemake keeps its own records, in the working directory."""

_held = contextlib.ExitStack()
atexit.register(_held.close)


def release_dead(results: str) -> None:
    """Remove Snakemake's lock on a results folder if the process that took it is gone.

    Raises:
        InUseError: It is still running; one sentence says who it is.
    """
    left = _locks(results)
    if left:
        with running(results):
            for lock in left:
                lock.unlink(missing_ok=True)


def hold(results: str) -> None:
    """Hold our lock until this process ends. Raises `InUseError` if another process holds it."""
    _held.enter_context(running(results))


def running(results: str) -> contextlib.AbstractContextManager[None]:
    """Return our lock on the workflow for a results folder and this working directory."""
    name = hashlib.sha256(results.encode()).hexdigest()[:16]
    return exclusive(RECORDS / f"ffm-{name}.lock", f"The results folder {results}", "snakemake")


def _locks(results: str) -> list[Path]:
    """Return Snakemake's lock files that name a file of the results."""
    found = []
    for path in (RECORDS / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            files = path.read_text(errors="replace").splitlines()
            if any(Path(file).parent == Path(results) for file in files):
                found.append(path)
    return found
