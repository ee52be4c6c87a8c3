"""Threads of the program that are asked to join the watch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from ffm.instrument.runner import Instruments, run_instrumented
from ffm.instrument.wait_function import wait_function
from ffm.stages.memory import WATCH

PROGRAMS = Path(__file__).parent / "programs"


def test_threads_that_wait_are_not_woken(build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    program, recordings, output = (
        build_program(PROGRAMS / "blocked_threads.cu"),
        tmp_path / "recordings",
        tmp_path / "output",
    )
    recordings.mkdir()
    bare = subprocess.run([program], capture_output=True, check=True)
    instruments = Instruments(recordings, ["cuMemcpyDtoH_v2"], WATCH, None, wait_function)
    outcome = run_instrumented([str(program)], instruments, output=output, timeout_s=60)
    assert outcome.ending.sound
    assert output.read_bytes() == bare.stdout
