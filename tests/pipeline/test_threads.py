"""Programs with many threads at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
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
    """libunwind maps memory under a lock of its own, which the hook of `mmap` must not want.

    Stalker crashes if a thread's translation finds no room near by. Translating for each takes half a second.
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
