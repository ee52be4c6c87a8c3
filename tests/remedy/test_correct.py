"""Running a program bare, and corrected."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ffm.remedy.correct import run_bare
from ffm.vgpu.paths import sample
from tests.remedy.applying import correct


def test_a_limit_makes_no_run_look_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own wait with a limit asks, and sleeps for up to 50 ms between."""

    def refuse(seconds: float) -> None:
        raise AssertionError(f"slept for {seconds} s")

    monkeypatch.setattr(time, "sleep", refuse)
    done = run_bare(["sh", "-c", "sleep 0.1; echo done; exit 3"], tmp_path, [], 60.0)
    assert (done.ending.code, done.ending.timed_out, done.output) == (3, False, b"done\n")


def test_a_run_that_reaches_its_limit_is_stopped(tmp_path: Path) -> None:
    assert run_bare(["sleep", "60"], tmp_path, [], 0.1).ending.timed_out


def test_a_program_in_python_is_corrected_at_the_stacks_that_were_measured(tmp_path: Path) -> None:
    corrected = correct([str(sample("train")), "60"], tmp_path)
    assert corrected.differences == []
    assert corrected.counts["unknown_calls"] == 0
    assert corrected.counts["downloads_staged"] >= 60
