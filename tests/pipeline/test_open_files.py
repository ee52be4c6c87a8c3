"""A process that may open few files is refused at once, in words; Frida would wait for it for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.instrument.session.open_files import require_open_files
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "ending.cu"


def test_a_program_that_lowers_its_limit(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    lowering = ("bash", "-c", f"ulimit -n 24; exec {build_program(PROGRAM)}")
    done = ffm("stage", "baseline", "--results", tmp_path, *lowering, seconds=50)
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert "(ending) may have 24 files open and has" in line and "`ulimit -n 4096`" in line


@pytest.mark.parametrize("words", [("stage", "baseline"), ("run",)], ids=" ".join)
def test_ffm_itself(words: tuple[str, ...], tmp_path: Path) -> None:
    command = ["bash", "-c", 'ulimit -n 16; exec "$@"', "-", sys.executable, "-m", "ffm", *words, "/bin/true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ffm: ffm may have 16 files open and has ")
    assert not (tmp_path / "results").exists()


def test_a_process_that_has_ended_or_may_open_many_is_not_refused() -> None:
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    require_open_files(ended.pid)
    require_open_files(os.getpid())
