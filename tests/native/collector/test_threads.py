"""The collector, and the watch on memory, under ThreadSanitizer: threads that do everything at once.

The collector's program watches no memory: that handles signals in the first and last instructions of a thread, where
ThreadSanitizer knows no thread. The watch's program touches no page that is protected.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording, read_recordings
from tests.conftest import cuda_include
from tests.native.layers import includes_of, sources_of

pytestmark = pytest.mark.sanitized

HERE = Path(__file__).parent
THREADS, TURNS, CONTEXT_TURNS, DEPTHS, KERNELS = 4, 1000, 100, 16, 256


ASKING = ("ffm_ranges_overlap", "ffm_ranges_hide", "ffm_ranges_reach", "ffm_ranges_end_behind")
"""They read what others may be writing, and then see from a number that it may be wrong (`is_changing` in ranges.c)."""

ALL_READS = 7
"""ThreadSanitizer's `history_size` with which it still knows where each read was when it reports a race."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that links a program with the collector's code, which is compiled once."""
    folder = tmp_path_factory.mktemp("threads")
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    compiler = [
        "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-tsan",
        "-fsanitize=thread", "-fno-optimize-sibling-calls", f"-I{folder}", *includes_of("collector"),
        "-isystem", str(cuda_include()),
    ]  # fmt: skip
    subprocess.run([*compiler, "-c", *map(str, sources_of("collector"))], cwd=folder, check=True)
    objects = [str(path) for path in folder.glob("*.o")]

    def link(program: str) -> Path:
        source = str(HERE / f"{program}.c")
        subprocess.run(
            [*compiler, "-o", program, source, *objects, "-lunwind", "-lpthread", "-lzstd", "-llz4"],
            cwd=folder,
            check=True,
        )
        return folder / program

    return link


def recorded(program: Path, records: Path, options: str) -> Recording:
    """Run a program, in which ThreadSanitizer must find nothing, and return what it recorded."""
    records.mkdir()
    run = subprocess.run(
        [str(program), str(records)],
        env={**os.environ, "TSAN_OPTIONS": f"halt_on_error=1:{options}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (recording,) = read_recordings(records)
    assert recording.lost == 0
    return recording


def test_threads_record_at_once(build: Callable[[str], Path], tmp_path: Path) -> None:
    recording = recorded(build("threads_test"), tmp_path / "recordings", "")
    assert recording.threads == THREADS
    assert len(recording.operations) == 4 * THREADS * TURNS + THREADS * TURNS // CONTEXT_TURNS
    # The empty stack, those of the allocations and of the contexts' ends, and one of each of four calls at each depth.
    assert len(recording.stacks) == 3 + 4 * DEPTHS
    # Whoever launches a kernel first asks for its name.
    assert sorted(kernel.handle for kernel in recording.kernels) == list(range(1, KERNELS + 1))
    # A launch among another thread's work on the same stream has no time of its own.
    timed = np.unique(recording.gpu_times[["operation_thread", "operation"]])
    assert 0 < len(timed) == len(recording.gpu_times) <= THREADS * TURNS


def test_threads_are_watched_at_once(build: Callable[[str], Path], tmp_path: Path) -> None:
    """Touches, waits, system calls and frees of several threads. A fifth asks without the lock, and misses nothing."""
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("".join(f"race:^{function}$\n" for function in ASKING))
    options = f"suppressions={suppressions}:history_size={ALL_READS}"
    recording = recorded(build("watch_threads_test"), tmp_path / "recordings", options)
    assert set(recording.accesses["kind"].tolist()) >= {
        constant(f"FFM_ACCESS_{kind}") for kind in ("WRITE", "SYSTEM_CALL", "RELEASED")
    }
    assert len(np.unique(recording.accesses["operation_thread"])) == THREADS


def test_large_memory_is_read_in_place_by_one_thread(build: Callable[[str], Path], tmp_path: Path) -> None:
    """It is open meanwhile, to no handler of the program, and closed afterwards; it is copied where another thread
    may run code of the program."""
    assert len(recorded(build("peek_test"), tmp_path / "recordings", "").accesses) == 0
