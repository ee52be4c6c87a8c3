"""What is told of a long computation while its code is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ffm.steps import compiling_begins, compiling_ends, following_compiler, is_kept

COMPILE = """
import numpy as np
from ffm.model.compiled import compiled
from ffm.steps import following_compiler

def kernel(values: np.ndarray) -> int:
    return len(values)

with following_compiler(print) as tell:
    tell("joining")
    compiled(kernel)(np.zeros(3))
    compiled(kernel)(np.zeros(4))
    tell("replaying")
compiled(kernel)(np.zeros(3, np.int8))
"""


def test_what_is_compiled_for_another_part_counts_with_it() -> None:
    told: list[str] = []
    with following_compiler(told.append) as tell:
        tell("joining")
        for inner in (0, 2):
            compiling_begins()
            for _ in range(inner):
                compiling_begins()
                compiling_ends()
            compiling_ends()
    compiling_begins()
    compiling_ends()
    first, second = (
        "compiling its code, only this first time: part 1",
        "compiling its code, only this first time: part 2",
    )
    assert told == ["joining", first, "joining", second, "joining"]
    assert tell.compiling_s >= 0


def test_code_that_cannot_be_kept_is_not_said_to_be_compiled_only_once() -> None:
    told: list[str] = []
    with following_compiler(told.append):
        is_kept(kept=False)
        compiling_begins()
        compiling_ends()
    assert told == ["compiling its code: part 1", ""]


def test_a_kernel_is_told_when_numba_compiles_it_and_not_when_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(COMPILE)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split(",")[0].split(":")[0] for line in done.stdout.splitlines()] == [
        "joining",
        "compiling its code",
        "joining",
        "replaying",
    ]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_is_told_once(compiled: bool) -> None:
    told: list[str] = []
    with following_compiler(told.append) as tell:
        if compiled:
            compiling_begins()
            compiling_ends()
        told.clear()
        tell("replaying")
    assert told == ["replaying"]
