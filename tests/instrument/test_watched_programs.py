"""Programs whose memory is watched, or that are sampled, behave as they do without that."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.instrument.modes import Mode
from ffm.instrument.probing.remembered import wait_function
from ffm.instrument.session.instruments import PAGES, Instruments
from ffm.instrument.session.runner import run_instrumented
from ffm.stages.tracing import OBSERVED

PROGRAMS = Path(__file__).parent / "programs"


def expect_unchanged(program: Path, instruments: Instruments) -> None:
    """Expect it to write what it writes without the instruments."""
    bare = subprocess.run([program], capture_output=True, check=True)
    output = instruments.folder / "output"
    outcome = run_instrumented([str(program)], instruments, output=output, timeout_s=60)
    assert outcome.ending.sound
    assert output.read_text() == bare.stdout.decode()


def watching(folder: Path, trace: bool) -> Instruments:
    functions = [function.name for function in load_catalogue().of_kind(*(set(Kind) - {Kind.ENTRY}))]
    preloaded = () if trace else (PAGES,)
    return Instruments(folder, functions, Mode.WATCH, None, wait_function, preloaded=preloaded, trace=trace)


@pytest.mark.parametrize("trace", [False, True], ids=["pages", "trace"])
@pytest.mark.parametrize(
    "name",
    [
        "allocator_reads_clock.cu",
        "blocked_threads.cu",
        "closed_destinations.cu",
        "crowd.cu",
        "filtered_calls.cu",
        "forks_beside_threads.cu",
        "kept_errno.cu",
        "own_keys.cu",
        "read_by_child.cu",
        "readable_addresses.cu",
        "refused_copies.cu",
        "rewritten_code.cu",
        "small_signal_stacks.cu",
        "strings_beside_data.cu",
        "traced_by_parent.cu",
    ],
)
def test_a_watched_program_writes_what_it_writes_unwatched(
    name: str, trace: bool, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    expect_unchanged(build_program(PROGRAMS / name), watching(tmp_path, trace))


def test_frequent_calls_do_what_they_do_unwatched(build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    expect_unchanged(build_program(PROGRAMS / "frequent_calls.cu"), watching(tmp_path, trace=False))


@pytest.mark.parametrize("name", ["allocating_threads.cu", "kept_errno.cu", "small_signal_stacks.cu"])
def test_a_sampled_program_writes_what_it_writes_unsampled(
    name: str, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    expect_unchanged(
        build_program(PROGRAMS / name),
        Instruments(tmp_path, ["cuCtxSynchronize"], OBSERVED, None, wait_function),
    )
