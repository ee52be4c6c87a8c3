"""`ffm stage`: what belongs to the program, and what to ffm."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from ffm.cli import stage as module
from ffm.results.folder.paths import STAGES

PROGRAM = ["./app", "-n", "5", "--timeout", "x", "--", "last"]


@pytest.mark.parametrize("separator", [[], ["--"]], ids=["bare", "dashes"])
@pytest.mark.parametrize("stage", STAGES[:-1])
def test_all_words_after_the_program_are_its_own(
    stage: str, separator: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(module, "_run", lambda name, **options: given.update(options, name=name))
    done = CliRunner().invoke(module.stage, [stage, "--timeout", "7", *separator, *PROGRAM])
    assert done.exit_code == 0, done.output
    assert (given["name"], list(given["command"]), given["timeout"]) == (stage, PROGRAM, 7.0)


def test_the_analysis_is_named_by_the_same_words() -> None:
    done = CliRunner().invoke(module.stage, ["analysis", *PROGRAM])
    assert "The results folder results/app does not exist" in str(done.exception)
