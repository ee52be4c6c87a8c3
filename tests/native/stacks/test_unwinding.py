"""Unwinding calls what cancels threads, which must end neither it nor the program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of


def _build(source: str, place: Path) -> Path:
    program = place / source.removesuffix(".c")
    sources = [
        NATIVE / "base" / "clock.c",
        NATIVE / "stacks" / "places" / "unwinding.c",
        Path(__file__).with_name(source),
    ]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread",
            *includes_of("stacks"), "-o", str(program), *map(str, sources),
        ],
        check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize("arguments", [[], ["alone"], ["at-once"], ["alone", "at-once"]])
def test_a_thread_that_unwinds_is_cancelled_afterwards(tmp_path: Path, arguments: list[str]) -> None:
    assert subprocess.run([_build("cancelled.c", tmp_path), *arguments]).returncode == 0


def test_a_handler_that_holds_up_a_cancellation_does_not_unwind(tmp_path: Path) -> None:
    assert subprocess.run([_build("being_cancelled.c", tmp_path)]).returncode == 0
