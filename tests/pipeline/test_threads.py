"""Programs with many threads at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import read_recordings
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "threads.cu"
DOWNLOADS = 20
"""Of each thread."""
LIMIT_S = 300
"""A deadlock lasts longer than this; the stages, even on a busy machine, do not."""


@pytest.mark.thorough
@pytest.mark.parametrize(("rounds", "threads"), [(1, 20), (2, 64)])
def test_many_threads_are_traced_at_once(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, rounds: int, threads: int
) -> None:
    """libunwind maps memory under a lock of its own, which the hook of `mmap` must not take.

    Stalker crashes if a thread's translation finds no room nearby. Translating for each thread takes half a second.
    """
    command = [build_program(PROGRAM), str(rounds), str(threads)]
    for stage in (["baseline"], ["tracing"], ["memory", "--watch", "trace"]):
        done = ffm("stage", *stage, "--results", tmp_path, "--timeout", LIMIT_S, "--", *command, seconds=2 * LIMIT_S)
        assert done.code == 0, done.err
    function = load_catalogue()["cuMemcpyDtoH_v2"].index
    for recorded in ("tracing", "memory"):
        (recording,) = read_recordings(tmp_path / "recordings" / recorded)
        assert (recording.operations["function"] == function).sum() == rounds * threads * DOWNLOADS
        assert recording.lost == 0


def test_for_how_long_each_thread_had_a_processor_is_recorded_at_its_end(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The main thread's is recorded at the end of the process."""
    command = [build_program(PROGRAM), "1", "3"]
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--", *command, seconds=LIMIT_S)
        assert done.code == 0, done.err
    (recording,) = read_recordings(tmp_path / "recordings" / "tracing")
    first, *times = recording.processor_times
    assert (first["number"], first["ran"]) == (constant("FFM_NO_THREAD"), 0)
    assert first["processors"] == len(os.sched_getaffinity(0))
    assert {int(one["number"]) for one in times} >= set(np.unique(recording.operations["thread"]).tolist())
    assert all(0 < one["ran"] <= one["process_ran"] for one in times)
    assert sum(int(one["ran"]) for one in times) <= max(int(one["process_ran"]) for one in times)
