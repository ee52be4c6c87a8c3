"""The marker `gpu_waits` of pytest, on tests that call the virtual GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ffm.testing.blocks import noting_blocks, read_blocks
from ffm.vgpu.paths import library_folder

TESTS = """
import ctypes
import threading

import pytest

driver = ctypes.CDLL("libcuda.so.1")


@pytest.fixture
def memory():
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64)) == 0
    wait(address, 5)  # the fixture's own
    return context, address


def wait(address, times):
    for time in range(times):
        driver.cuMemsetD8Async(address, ctypes.c_ubyte(time), ctypes.c_size_t(64), None)
        driver.cuCtxSynchronize()  # in the loop


def work(context, address, times):
    driver.cuCtxSetCurrent(context)
    wait(address, times)


@pytest.mark.gpu_waits(max=3)
def test_many(memory):
    wait(memory[1], 4)


@pytest.mark.gpu_waits(max=3)
def test_threads(memory):
    wait(memory[1], 2)
    for times in (3, 4):
        thread = threading.Thread(target=work, args=(*memory, times))
        thread.start()
        thread.join()


@pytest.mark.gpu_waits(max=3)
def test_fails(memory):
    assert wait(memory[1], 4) == "no"


def test_blocks(memory, gpu_waits):
    with gpu_waits(max=3):
        wait(memory[1], 3)
    wait(memory[1], 9)
    with gpu_waits(max=1):  # too few
        wait(memory[1], 2)
        thread = threading.Thread(target=work, args=(*memory, 1))
        thread.start()
        thread.join()


@pytest.mark.gpu_waits(max=3)
def test_skipped():
    pytest.skip("told")


@pytest.mark.gpu_waits(3)
def test_wrong():
    pass


def test_other(memory):
    wait(memory[1], 9)
"""
IN_THE_LOOP, TOO_FEW = (
    next(number for number, line in enumerate(TESTS.splitlines(), 1) if mark in line)
    for mark in ("# in the loop", "# too few")
)


@dataclass(frozen=True)
class Ran:
    """What pytest said."""

    output: str

    def of(self, test: str) -> str:
        """Return what it said about the failure of a test."""
        match = re.search(rf"^_+ {test} _+$(.*?)(?=^[_=]+ )", self.output, re.MULTILINE | re.DOTALL)
        return match[1] if match else ""


def run(folder: Path, *options: str) -> Ran:
    installed = any(entry.value == "ffm.testing.plugin" for entry in entry_points(group="pytest11"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *([] if installed else ["-p", "ffm.testing.plugin"]), "-rA", *options],
        cwd=folder,
        env={**os.environ, "LD_LIBRARY_PATH": str(library_folder())},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Ran(done.stdout + done.stderr)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("marked")
    (folder / "test_marked.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return run(folder)


def test_each_test_has_its_own_outcome(ran: Ran) -> None:
    outcomes = {name: how for how, name in re.findall(r"^(\w+) test_marked.py::(\w+)", ran.output, re.MULTILINE)}
    assert outcomes == {
        "test_other": "PASSED",
        "test_many": "FAILED",
        "test_blocks": "FAILED",
        "test_threads": "FAILED",
        "test_fails": "FAILED",
        "test_wrong": "FAILED",
    }
    assert "1 skipped" in ran.output


def test_a_failure_names_the_line_and_the_thread(ran: Ran) -> None:
    assert "thread 1 waits for the GPU 4 times, and 3 are allowed:" in ran.of("test_many")
    assert f"test_marked.py:{IN_THE_LOOP}: cuCtxSynchronize, 4x" in ran.of("test_many")


def test_threads_are_counted_apart(ran: Ran) -> None:
    assert re.findall(r"thread (\d) waits for the GPU (\d) times", ran.of("test_threads")) == [("3", "4")]


def test_a_block_has_its_own_limit(ran: Ran) -> None:
    said = ran.of("test_blocks")
    within = f"within test_marked.py:{TOO_FEW}, and 1 are allowed:"
    assert re.findall(r"thread \d waits for the GPU.*", said) == [f"thread 1 waits for the GPU 2 times {within}"]
    assert f"test_marked.py:{IN_THE_LOOP}: cuCtxSynchronize, 2x" in said


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="gpu_waits"):
        noting_blocks(None, lambda: "")(max="3")


def test_nothing_is_noted_where_nobody_traces() -> None:
    with noting_blocks(None, lambda: "")(max=0):
        pass


def test_blocks_are_noted_although_they_fail(tmp_path: Path) -> None:
    limit = noting_blocks(tmp_path / "blocks", lambda: "test.py:5")
    with pytest.raises(ZeroDivisionError), limit(max=3):
        _ = 1 / 0
    (block,) = read_blocks(tmp_path / "blocks")
    assert (block.most, block.where) == (3, "test.py:5")
    assert block.begin <= block.end


def test_a_test_that_fails_by_itself_says_so(ran: Ran) -> None:
    assert "assert None == 'no'" in ran.of("test_fails")
    assert "waits for the GPU" not in ran.of("test_fails")


def test_a_wrong_marker_is_explained(ran: Ran) -> None:
    assert "gpu_waits(max=3)" in ran.of("test_wrong")


def test_what_the_rules_allow_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "ffm.toml").write_text('[[allow]]\nfunction = "wait"\nreason = "told"\n')
    assert "1 passed" in run(tmp_path, "-k", "many").output
    assert "3 passed" in run(tmp_path, "--no-gpu-waits", "-k", "many or threads or other").output
