"""Unwinding calls what cancels threads, which must end neither it nor the program."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of


@pytest.mark.parametrize("alone", [False, True])
def test_a_thread_that_unwinds_is_cancelled_afterwards(tmp_path: Path, alone: bool) -> None:
    library = tmp_path / "libcancelled.so"
    sources = [NATIVE / "base" / "clock.c", NATIVE / "stacks" / "unwinding.c", Path(__file__).with_name("cancelled.c")]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread",
            *includes_of("stacks"), "-o", str(library), *map(str, sources),
        ],
        check=True,
    )  # fmt: skip
    went_on, ended, cancelled, free = 1, 2, 4, 8
    assert ctypes.CDLL(str(library)).cancelled_while_unwinding(alone) == went_on | ended | cancelled | free
