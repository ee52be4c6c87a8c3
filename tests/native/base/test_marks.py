"""Marks of heap blocks with pages of their own, which threads set at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE

PROGRAM = Path(__file__).with_name("marks_threads.c")
RUNS = 4
"""One alone may not meet the moment."""


@pytest.mark.parametrize("how", [("-O2",), ("-O1", "-fsanitize=thread")], ids=["plain", "sanitized"])
def test_the_peak_is_what_all_threads_have_together(tmp_path: Path, how: tuple[str, ...]) -> None:
    program = tmp_path / "marks_threads"
    compiler = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", *how]
    headers = [f"-I{NATIVE / folder}" for folder in ("preload", "base")]
    subprocess.run([*compiler, *headers, "-o", program, PROGRAM, "-lpthread", "-ldl"], check=True)
    for _ in range(RUNS):
        run = subprocess.run([program], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
