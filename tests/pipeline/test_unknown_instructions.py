"""Instructions that disassemblers do not know: the pages let them through, and the trace cannot translate them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "unknown.cu"


@pytest.mark.parametrize("place", ["line", "target"])
def test_the_trace_refuses_what_it_cannot_translate(
    place: str, ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    program = build_program(PROGRAM)
    for stage in (["baseline"], ["tracing"], ["memory", "--watch", "pages"]):
        done = ffm("stage", *stage, "--results", tmp_path, "--timeout", 60, "--", program, place)
        assert done.code == 0, done.err
    done = ffm("stage", "memory", "--watch", "trace", "--results", tmp_path, "--timeout", 60, "--", program, place)
    assert done.code != 0
    assert "an instruction that Frida's Stalker does not know" in done.err
    assert "--watch pages" in done.err
