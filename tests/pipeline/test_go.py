"""Programs that Go compiled: the trace refuses them, because goroutines' stacks have no room for translated code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "compiled_by_go.cu"


def test_the_trace_refuses_what_the_pages_measure(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    program = build_program(PROGRAM)
    for stage in (["baseline"], ["tracing"], ["memory"]):
        done = ffm("stage", *stage, "--results", tmp_path, "--timeout", 60, program)
        assert done.code == 0, done.err
    done = ffm("stage", "memory", "--watch", "trace", "--results", tmp_path, "--timeout", 60, program)
    assert done.code == 1
    assert f"Go compiled {program}" in done.err and "--watch pages" in done.err
