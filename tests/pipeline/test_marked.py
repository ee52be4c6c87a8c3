"""Iterations that a Python program marks, and the demonstrations of the gate that need a Python program."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

import ffm as package
from ffm.vgpu.paths import library_folder
from tests.processes import run_to_end

PROGRAM = f"""
import ctypes
import threading

import ffm

driver = ctypes.CDLL({str(library_folder() / "libcuda.so.1")!r})
context, address = ctypes.c_void_p(), ctypes.c_uint64()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)


def wait(times):
    for _ in range(times):
        driver.cuMemsetD8Async(address, ctypes.c_ubyte(0), ctypes.c_size_t(64), None)
        driver.cuCtxSynchronize()  # in the loop


def work(turns):
    driver.cuCtxSetCurrent(context)
    for turn in range(turns):
        with ffm.iteration("work"):
            wait(2)


driver.cuCtxSetCurrent(context)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64))
for step in range(5):
    with ffm.iteration("train"):
        wait(9 if step == 0 else step)
    wait(1)
with ffm.iteration("empty"):
    pass
threads = [threading.Thread(target=work, args=(turns,)) for turns in (3, 4)]
for thread in threads:
    thread.start()
    thread.join()
"""
IN_THE_LOOP = next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# in the loop" in line)


@dataclass(frozen=True)
class Marked:
    """The results of a run."""

    folder: Path

    def check(self, *options: str) -> dict[str, Any]:
        done = run_to_end(
            [sys.executable, "-m", "ffm", "check", "--results", "quick", "--format", "json", *options],
            seconds=60,
            folder=self.folder,
        )
        assert done.returncode in (0, 1), done.stderr
        return dict(orjson.loads(done.stdout))


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Marked:
    folder = tmp_path_factory.mktemp("marked")
    (folder / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "ffm", "run", "--quick", "--results", "quick", sys.executable, "train.py"]
    done = run_to_end(command, seconds=120, folder=folder)
    assert done.returncode == 0, done.stderr
    return Marked(folder)


def test_what_a_program_marks_is_an_iteration_and_the_first_is_warm_up(marked: Marked) -> None:
    (train,) = marked.check("--iterations", "train")["iterations"]
    assert (train["thread"], train["iterations"], train["left_out"]) == (1, 4, 1)
    assert train["waits"] == {"least": 1, "median": 2.5, "most": 4}


def test_marks_of_several_threads_are_told_apart(marked: Marked) -> None:
    found = marked.check("--iterations", "work")["iterations"]
    assert [(one["thread"], one["iterations"], one["waits"]["most"]) for one in found] == [(2, 2, 2), (3, 3, 2)]


def test_a_violation_names_the_line_of_python(marked: Marked) -> None:
    found = {(Path(one["file"]).name, one["line"], one["call"]) for one in marked.check()["violations"]}
    assert ("train.py", IN_THE_LOOP, "cuCtxSynchronize") in found


def test_a_mark_costs_nothing_when_nobody_measures() -> None:
    assert "FFM_ITERATIONS" not in os.environ
    assert package.iteration("train") is package.iteration("other")
    with package.iteration("train") as nothing:
        assert nothing is None
