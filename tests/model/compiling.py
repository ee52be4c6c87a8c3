"""Kernels that are compiled whatever the table's size, by one process of the tests at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ffm.model import compiled
from tests.conftest import ROOT

LOCK = ROOT / "build" / "compiling.lock"


@contextmanager
def alone() -> Iterator[None]:
    """Let no other test compile meanwhile: it takes many seconds, and the next one finds on disk what this one did."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def all_compiled() -> Iterator[None]:
    """Run no kernel as plain Python."""
    with alone(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "PLAIN_ROWS", -1)
        yield
