"""A program's end is reported correctly even if Frida, which traces the program, has collected its status."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from ffm.errors import InstrumentError
from ffm.instrument.session import program_end
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.program_end import await_end, status_of_taken
from ffm.instrument.session.runner import run_instrumented

WAIT = os.waitpid


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collect the status of every program before it is requested."""

    def take(process_id: int, options: int) -> NoReturn:
        WAIT(process_id, options)
        raise ChildProcessError(10, "No child processes")

    monkeypatch.setattr(os, "waitpid", take)


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_end, "status_of_taken", lambda handle: None)


def start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True)


def told_again() -> bool:
    """Return whether this kernel reports a status that was already collected."""
    program = start("/bin/true")
    handle = os.pidfd_open(program.pid)
    program.wait()
    try:
        return status_of_taken(handle) is not None
    finally:
        os.close(handle)


@pytest.mark.parametrize(("ending", "code"), [("exit 3", 3), ("kill -9 $$", -signal.SIGKILL), ("exit 0", 0)])
@pytest.mark.parametrize("lost", [False, True])
def test_an_end_is_what_the_operating_system_says(
    ending: str, code: int, lost: bool, request: pytest.FixtureRequest
) -> None:
    if lost and not told_again():
        pytest.skip("this kernel tells a status only once (Linux before 6.15)")
    if lost:
        request.getfixturevalue("taken")
    end = await_end(start("/bin/sh", "-c", ending), 60)
    assert (os.waitstatus_to_exitcode(end.status), end.timed_out) == (code, False)
    assert end.user_s + end.system_s > 0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count (CONFIG_SCHED_INFO)")
def test_a_program_that_shares_a_processor_is_delayed() -> None:
    """Both need the processor for many time slices, so each has to wait for the other at least once."""
    busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    processor = str(min(os.sched_getaffinity(0)))
    other = start("taskset", "-c", processor, "/bin/sh", "-c", busy)
    end = await_end(start("taskset", "-c", processor, "/bin/sh", "-c", busy), 60)
    other.wait()
    assert end.delayed_s is not None and end.delayed_s > 0


@pytest.mark.usefixtures("taken", "old_kernel")
def test_the_time_limit_is_known_to_have_ended_the_program() -> None:
    end = await_end(start("/bin/sleep", "60"), 0.05)
    assert (end.status, end.timed_out) == (signal.SIGKILL, True)


@pytest.mark.usefixtures("taken", "old_kernel")
def test_an_end_that_nobody_knows_is_an_error_in_words(tmp_path: Path) -> None:
    never: Callable[[Path], NoReturn] = lambda driver: pytest.fail(f"{driver} was asked for")  # noqa: E731
    instruments = Instruments(tmp_path, [], 0, None, never)
    with pytest.raises(InstrumentError, match="how the program ended is unknown"):
        run_instrumented(["/bin/true"], instruments, output=tmp_path / "output", timeout_s=60)
