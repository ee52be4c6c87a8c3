"""The fast way to capture the stack of an attached function, compared with the slow one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of

HERE = Path(__file__).parent

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with object files of the collector's stacks, compiled as CMake does, and of what stands around them."""
    folder = tmp_path_factory.mktemp("stacks")
    parts = ("captured_stacks", "places/goroutines", "stacks", "interned", "described_stacks", "frame_tree")
    sources = [*(NATIVE / "stacks" / f"{part}.c" for part in parts), HERE / "stacks_records.c"]
    command = ["gcc", *FLAGS, "-O2", *includes_of("stacks"), "-c", *map(str, sources)]
    subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    "optimization",
    ["-O2", *(pytest.param(other, marks=pytest.mark.thorough) for other in ("-O0", "-O2 -fno-omit-frame-pointer"))],
)
def test_both_ways_find_the_same_frames(stacks: Path, tmp_path: Path, optimization: str) -> None:
    program = tmp_path / "entry_stack"
    subprocess.run(
        [
            "gcc", *FLAGS, "-g", *optimization.split(), "-fno-optimize-sibling-calls", *includes_of("stacks"),
            "-Wl,--wrap=_ULx86_64_init_local2", "-o", str(program), str(HERE / "entry_stack.c"),
            *map(str, stacks.glob("*.o")), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
