"""Samples of the CPU do not reach a program that takes blocked signals itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "takes_signals.cu"


@pytest.mark.parametrize("how", ["wait", "info", "timed", "descriptor", "own"])
def test_a_program_takes_the_signal_that_it_sent(
    how: str, ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    program = build_program(PROGRAM)
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--timeout", 60, "--", program, how)
        assert done.code == 0, done.err
