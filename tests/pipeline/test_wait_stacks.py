"""How the stack of a wait is captured that Frida's probe is attached to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "masks.cu"


def test_a_known_stack_is_captured_without_system_calls(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The fast way has room below Frida's frames, and the signal mask is set for new stacks alone."""
    done = ffm("stage", "baseline", "--results", tmp_path, "--", build_program(PROGRAM))
    assert done.code == 0, done.err
    waits = json.loads((tmp_path / "baseline.json").read_bytes())["waits"]
    assert sum(call["count"] for call in waits) >= 1000
    assert int((tmp_path / "baseline.log").read_text()) < 100
