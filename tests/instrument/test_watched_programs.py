"""Programs whose memory is watched behave as they do without the watch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.driver.catalogue import Kind, load_catalogue
from ffm.instrument.probing.remembered import wait_function
from ffm.instrument.session.instruments import PAGES, Instruments
from ffm.instrument.session.runner import run_instrumented
from ffm.stages.memory import WATCH

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("trace", [False, True], ids=["pages", "trace"])
@pytest.mark.parametrize(
    "name",
    [
        "blocked_threads.cu",
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
    program, recordings, output = build_program(PROGRAMS / name), tmp_path / "recordings", tmp_path / "output"
    recordings.mkdir()
    bare = subprocess.run([program], capture_output=True, check=True)
    functions = [function.name for function in load_catalogue().of_kind(*(set(Kind) - {Kind.ENTRY}))]
    preloaded = () if trace else (PAGES,)
    instruments = Instruments(recordings, functions, WATCH, None, wait_function, preloaded=preloaded, trace=trace)
    outcome = run_instrumented([str(program)], instruments, output=output, timeout_s=60)
    assert outcome.ending.sound
    assert output.read_text() == bare.stdout.decode()
