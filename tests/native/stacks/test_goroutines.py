"""Stacks of C that Go's runtime calls on another stack than the goroutine's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

HERE = Path(__file__).parent

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")
PARTS = (
    "captured_stacks", "places/goroutines", "stacks", "interned", "described_stacks", "frame_tree", "known_stacks",
)  # fmt: skip


@pytest.mark.parametrize("optimization", ["-O2", "-O0"])
def test_frames_of_the_goroutine_are_found(tmp_path: Path, optimization: str) -> None:
    program = tmp_path / "goroutines"
    sources = [
        *(NATIVE / "stacks" / f"{part}.c" for part in PARTS),
        HERE / "stacks_records.c",
        HERE / "goroutines.c",
    ]
    subprocess.run(
        [
            "gcc", *FLAGS, "-g", optimization, "-fno-optimize-sibling-calls", *includes_of("stacks"),
            "-o", str(program), *map(str, sources), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
