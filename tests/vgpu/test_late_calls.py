"""Calls of the driver from the destructors of threads' and programs' data, as libraries make them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ffm.vgpu.paths import library_folder
from tests.conftest import cuda_include

PROGRAM = Path(__file__).parent / "programs" / "late_calls.c"


def test_a_thread_has_its_context_as_long_as_it_can_call(tmp_path: Path) -> None:
    program, libraries = tmp_path / "late_calls", library_folder()
    subprocess.run(
        ["gcc", PROGRAM, "-o", program, "-isystem", cuda_include(), libraries / "libcuda.so.1",
         f"-Wl,-rpath,{libraries}", "-lpthread"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "thread's data: 0\nprogram's data: 0\n")
