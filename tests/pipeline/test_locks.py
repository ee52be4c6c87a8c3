"""Threads that wait for what others let go: locks, condition variables, semaphores, barriers."""

from __future__ import annotations

import sys
from collections.abc import Callable
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


@pytest.fixture(scope="module")
def measured(
    ffm: Ffm, build_program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[int]], dict[str, Any]]:
    """Trace the program; return the waits that were recorded, and what `ffm path` says."""
    folder = tmp_path_factory.mktemp("locks")
    done = ffm("check", "--quick", build_program(PROGRAM), HELD_MS, folder=folder)
    assert done.code in (0, 1), done.err
    [path] = folder.rglob("tracing.json")
    return orjson.loads(path.read_bytes())["locks"], orjson.loads(ffm("path", "--json", "--all", folder=folder).out)


def test_each_wait_names_who_let_it_go(measured: tuple[dict[str, list[int]], dict[str, Any]]) -> None:
    """The waiter slept when the other one began to hold, so its wait lasted at least that long."""
    waits, _ = measured
    lasted = [end - begin for begin, end in zip(waits["since"], waits["released"], strict=True)]
    long = [number for number, nanoseconds in enumerate(lasted) if nanoseconds >= HELD_MS * 1_000_000]
    assert len(long) == HOLDS
    [waiter], [holder] = {waits["waiter"][one] for one in long}, {waits["releaser"][one] for one in long}
    assert waiter != holder
    assert max(lasted) >= AGAIN * HELD_MS * 1_000_000, "waits one after the other are one"


def test_the_path_goes_on_in_the_thread_that_let_it_go(
    measured: tuple[dict[str, list[int]], dict[str, Any]],
) -> None:
    _, view = measured
    [held] = [row for row in view["regions"] if row["kind"] == "CPU" and "keep_waiting" in row["name"]]
    assert held["path_s"] >= 0.9 * HELD_S
    assert held["threads_s"] >= 0.9 * HELD_S


def test_all_waiting_is_blamed(measured: tuple[dict[str, list[int]], dict[str, Any]]) -> None:
    _, view = measured
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
