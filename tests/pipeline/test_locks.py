"""Threads that wait for what others release: locks, condition variables, semaphores, barriers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from ffm.vgpu.paths import library_folder
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "locks.cu"
HELD_MS = 200
HOLDS = 6
"""A mutex, a lock for reading, a condition, one that is waited for again and again, a semaphore, a barrier."""
AGAIN = 3
"""The condition that is waited for again and again is held so many times as long as the others."""
HELD_S = (HOLDS - 1 + AGAIN) * HELD_MS / 1000


@dataclass(frozen=True)
class Measured:
    """The results' folder, the waits that were recorded, and what `ffm path` says."""

    folder: Path
    waits: dict[str, list[int]]
    view: dict[str, Any]

    @property
    def held(self) -> dict[str, Any]:
        """The region of the function that lets the other thread wait."""
        [region] = [row for row in self.view["regions"] if row["kind"] == "CPU" and "keep_waiting" in row["name"]]
        return dict(region)


@pytest.fixture(scope="module")
def measured(ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Trace the program."""
    folder = tmp_path_factory.mktemp("locks")
    done = ffm("check", "--quick", build_program(PROGRAM), HELD_MS, folder=folder)
    assert done.code in (0, 1), done.err
    [path] = folder.rglob("tracing.json")
    waits = orjson.loads(path.read_bytes())["locks"]
    return Measured(folder, waits, orjson.loads(ffm("path", "--json", "--all", folder=folder).out))


def test_each_wait_names_who_let_it_go(measured: Measured) -> None:
    """The waiter slept when the other one began to hold, so its wait lasted at least that long."""
    waits = measured.waits
    lasted = [end - begin for begin, end in zip(waits["since"], waits["released"], strict=True)]
    long = [number for number, nanoseconds in enumerate(lasted) if nanoseconds >= HELD_MS * 1_000_000]
    assert len(long) == HOLDS
    [waiter], [holder] = {waits["waiter"][one] for one in long}, {waits["releaser"][one] for one in long}
    assert waiter != holder
    assert max(lasted) >= AGAIN * HELD_MS * 1_000_000, "waits one after the other are one"


def test_the_path_goes_on_in_the_thread_that_let_it_go(measured: Measured) -> None:
    """On a busy machine that thread waits for a processor as well, in whatever function."""
    own = ("keep_waiting", "sleeps", "holder", "meet", "happens")
    held = [row for row in measured.view["regions"] if row["kind"] == "CPU" and row["name"].startswith(own)]
    assert sum(row["path_s"] for row in held) >= 0.9 * HELD_S
    assert sum(row["threads_s"] for row in held) >= 0.9 * HELD_S


def test_what_is_held_for_half_as_long_saves_that(measured: Measured, ffm: Ffm) -> None:
    faster = orjson.loads(ffm("path", "--json", "--if", "keep_waiting=2x", folder=measured.folder).out)
    assert faster["gain"]["seconds"] == pytest.approx(measured.held["path_s"] / 2, rel=0.1)


def test_all_waiting_is_blamed(measured: Measured) -> None:
    view = measured.view
    [locks] = [row for row in view["patterns"] if row["name"] == "lock"]
    assert locks["count"] >= HOLDS
    assert locks["seconds"] >= 0.9 * HELD_S
    assert sum(row["threads_s"] for row in view["regions"]) == pytest.approx(locks["seconds"], abs=1e-6)


def test_whoever_waits_for_pythons_lock_waits_for_the_thread_that_has_it(ffm: Ffm, tmp_path: Path) -> None:
    """It asks for the lock only after a while, and then waits again: both are one wait."""
    seconds = 0.05
    program = PROGRAM.with_name("interpreter_lock.py")
    runtime = library_folder() / "libcudart.so.13"
    done = ffm("check", "--quick", sys.executable, program, runtime, seconds, folder=tmp_path)
    assert done.code in (0, 1), done.err
    [path] = tmp_path.rglob("tracing.json")
    waits = orjson.loads(path.read_bytes())["locks"]
    lasted = [end - begin for begin, end in zip(waits["since"], waits["released"], strict=True)]
    assert max(lasted) >= seconds * 1e9
    longest = lasted.index(max(lasted))
    assert waits["waiter"][longest] != waits["releaser"][longest]
