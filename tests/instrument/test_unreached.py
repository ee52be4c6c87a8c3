"""Why a program never came to the gate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ffm.instrument.session.program import reason_unreached


@pytest.mark.parametrize(
    ("preloaded", "why"),
    [
        ("", "LD_PRELOAD was removed"),
        ("/lib/libother.so", "LD_PRELOAD was removed"),
        ("/lib/libffm_gate.so", "another"),
    ],
)
def test_ffm_below_another_one_is_told_from_a_program_that_preloads_nothing(
    preloaded: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LD_PRELOAD", preloaded)
    assert why in reason_unreached(Path(sys.executable), 0, tmp_path / "output")


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_a_static_program_is_told_to_be_linked_dynamically(option: str, tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", option, "-s", source, "-o", program], check=True)
    assert "Link it dynamically, without -static" in reason_unreached(program, 0, tmp_path / "output")
