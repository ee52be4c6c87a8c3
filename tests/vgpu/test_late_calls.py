"""Calls of the driver from the destructors of threads' and programs' data, as libraries make them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ffm.vgpu.paths import library_folder
from tests.conftest import cuda_include

PROGRAMS = Path(__file__).parent / "programs"


def test_a_thread_has_its_context_as_long_as_it_can_call(tmp_path: Path) -> None:
    program, libraries = tmp_path / "late_calls", library_folder()
    subprocess.run(
        ["gcc", PROGRAMS / "late_calls.c", "-o", program, "-isystem", cuda_include(), libraries / "libcuda.so.1",
         f"-Wl,-rpath,{libraries}", "-lpthread"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "thread's data: 0\nprogram's data: 0\n")


def test_a_context_is_released_after_the_drivers_own_destructors(tmp_path: Path) -> None:
    """What was freed by then is overwritten, so that using it shows. Blocks in caches of threads would not be."""
    overwritten = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    program = tmp_path / "late_release"
    subprocess.run(
        ["gcc", PROGRAMS / "late_release.c", "-o", program, "-isystem", cuda_include(), "-ldl"], check=True
    )  # fmt: skip
    done = subprocess.run(
        [program, library_folder() / "libcuda.so.1"],
        capture_output=True, text=True, check=False, env=os.environ | overwritten, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "released: 0\n")
