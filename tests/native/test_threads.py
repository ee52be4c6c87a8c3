"""The collector under ThreadSanitizer: threads that record at once.

Memory is not watched: that handles signals in the first and last instructions of a thread, where ThreadSanitizer knows
no thread.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from ffm.instrument.recording.reader import read_recordings
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of

HERE = Path(__file__).parent
THREADS, TURNS, DEPTHS = 4, 1000, 16


def test_threads_record_at_once(tmp_path: Path) -> None:
    (tmp_path / "catalogue.inc").write_text(include_text(load_catalogue()))
    program, records = tmp_path / "threads_test", tmp_path / "recordings"
    records.mkdir()
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-tsan",
            "-fsanitize=thread", "-fno-optimize-sibling-calls", f"-I{tmp_path}", *includes_of("collector"),
            "-isystem", str(cuda_include()), "-o", str(program), str(HERE / "threads_test.c"),
            *map(str, sources_of("collector")), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run(
        [str(program), str(records)],
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (recording,) = read_recordings(records)
    assert (recording.lost, recording.threads) == (0, THREADS)
    assert len(recording.operations) == 4 * THREADS * TURNS
    # The empty stack, that of the allocations, and one of each of four calls at each depth.
    assert len(recording.stacks) == 2 + 4 * DEPTHS
    # A launch among another thread's work on the same stream has no time of its own.
    timed = np.unique(recording.gpu_times[["operation_thread", "operation"]])
    assert 0 < len(timed) == len(recording.gpu_times) <= THREADS * TURNS
