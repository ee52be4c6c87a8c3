"""Stacks that are recognised by the words they consist of, compared with unwinding them each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

HERE = Path(__file__).parent

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
PARTS = (
    "captured_stacks", "places/goroutines", "stacks", "interned", "described_stacks", "frame_tree", "repeated_stacks",
)  # fmt: skip


@pytest.mark.parametrize("optimization", ["-O2", "-O0", "-O2 -fno-omit-frame-pointer"])
def test_known_stacks_are_those_that_unwinding_finds(tmp_path: Path, optimization: str) -> None:
    program = tmp_path / "repeated_stacks"
    sources = [
        *(NATIVE / "stacks" / f"{part}.c" for part in PARTS),
        HERE / "stacks_records.c",
        HERE / "repeated_stacks.c",
    ]
    subprocess.run(
        [
            "gcc", *FLAGS, "-g", *optimization.split(), "-fno-optimize-sibling-calls", *includes_of("stacks"),
            "-Wl,--wrap=unw_backtrace", "-o", str(program), *map(str, sources), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
