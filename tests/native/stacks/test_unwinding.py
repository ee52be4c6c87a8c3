"""Unwinding calls what cancels threads, which must end neither it nor the program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of


@pytest.mark.parametrize("arguments", [[], ["alone"], ["at-once"], ["alone", "at-once"]])
def test_a_thread_that_unwinds_is_cancelled_afterwards(tmp_path: Path, arguments: list[str]) -> None:
    program = tmp_path / "cancelled"
    sources = [
        NATIVE / "base" / "clock.c",
        NATIVE / "stacks" / "places" / "unwinding.c",
        Path(__file__).with_name("cancelled.c"),
    ]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread",
            *includes_of("stacks"), "-o", str(program), *map(str, sources),
        ],
        check=True,
    )  # fmt: skip
    assert subprocess.run([program, *arguments]).returncode == 0
