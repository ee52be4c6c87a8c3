"""A program's end is told rightly also when Frida, which traces the program, has taken it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from ffm.instrument.errors import InstrumentError
from ffm.instrument.runner import Instruments, _await_end, run_instrumented


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the end of every program before it is asked for."""

    def take(process_id: int, options: int) -> NoReturn:
        os.waitpid(process_id, options)
        raise ChildProcessError(10, "No child processes")

    monkeypatch.setattr(os, "wait4", take)


@pytest.mark.usefixtures("taken")
def test_the_time_limit_is_known_to_have_ended_the_program() -> None:
    program = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    assert _await_end(program, 0.05) == (signal.SIGKILL, 0.0, 0.0, True)


@pytest.mark.usefixtures("taken")
def test_an_end_that_nobody_knows_is_an_error_in_words(tmp_path: Path) -> None:
    instruments = Instruments(tmp_path, [], 0, None, lambda driver: pytest.fail(f"{driver} was asked for"))
    with pytest.raises(InstrumentError, match="how the program ended is not known"):
        run_instrumented(["/bin/true"], instruments, output=tmp_path / "output", timeout_s=60)


def test_an_end_is_what_the_operating_system_says() -> None:
    program = subprocess.Popen(["/bin/sh", "-c", "exit 3"], start_new_session=True)
    status, _, _, timed_out = _await_end(program, 60)
    assert (os.waitstatus_to_exitcode(status), timed_out) == (3, False)
