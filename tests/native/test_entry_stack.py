"""The fast way to capture the stack of an attached function, compared with the slow one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from tests.conftest import cuda_include
from tests.native.test_native import COLLECTOR, HERE, SEPARATE


@pytest.mark.parametrize("optimization", ["-O0", "-O2", "-O2 -fno-omit-frame-pointer"])
def test_both_ways_find_the_same_frames(tmp_path: Path, optimization: str) -> None:
    (tmp_path / "catalogue.inc").write_text(include_text(load_catalogue()))
    program = tmp_path / "entry_stack"
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-g", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
            *optimization.split(), "-fno-optimize-sibling-calls", f"-I{tmp_path}", f"-I{COLLECTOR}",
            "-isystem", str(cuda_include()), "-Wl,--wrap=_ULx86_64_init_local2",
            "-o", str(program), str(HERE / "entry_stack.c"),
            *sorted(str(path) for path in COLLECTOR.glob("*.c") if path.name not in SEPARATE), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
