"""A program that forbids that its memory becomes executable is measured where that is possible, or refused in words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "forbids_code.cu"
GET_MDWE = 66

pytestmark = pytest.mark.skipif(
    ctypes.CDLL(None).prctl(GET_MDWE, 0, 0, 0, 0) < 0, reason="the kernel is older than Linux 6.3"
)


def test_before_functions_are_hooked(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    done = ffm("stage", "baseline", "--results", tmp_path, build_program(PROGRAM))
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert "the program has forbidden that its memory becomes executable (PR_SET_MDWE" in line


def test_afterwards(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    program = build_program(PROGRAM)
    for stage in (["baseline"], ["tracing"], ["memory"]):
        done = ffm("stage", *stage, "--results", tmp_path, "--timeout", 60, program, "late")
        assert done.code == 0, done.err
    done = ffm("stage", "memory", "--watch", "trace", "--results", tmp_path, "--timeout", 60, program, "late")
    assert done.code == 1
    assert "it forbids that its memory becomes executable (PR_SET_MDWE)" in done.err and "--watch pages" in done.err


def test_before_the_program_starts(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    """As under systemd."""
    program, launcher = build_program(PROGRAM), tmp_path / "launcher.py"
    launcher.write_text(
        "import ctypes, os, sys\nctypes.CDLL(None).prctl(65, 1, 0, 0, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n"
    )
    done = ffm("stage", "baseline", "--results", tmp_path, "python3", launcher, program, "late")
    assert done.code == 1 and "started so that its memory cannot become executable (PR_SET_MDWE" in done.err
