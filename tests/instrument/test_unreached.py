"""Why a program never came to the gate."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ffm.instrument.session.program import reason_unreached


@pytest.mark.parametrize(
    ("preloaded", "why"),
    [("", "linked statically"), ("/lib/libother.so", "linked statically"), ("/lib/libffm_gate.so", "another ffm")],
)
def test_ffm_below_another_one_is_told_from_a_program_that_preloads_nothing(
    preloaded: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LD_PRELOAD", preloaded)
    assert why in reason_unreached(Path(sys.executable), 0, tmp_path / "output")
