"""What `benchmarks/overhead.py` measures, as its options ask for."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MEASURING = ["baseline", "tracing", "memory", "sync-use"]


@pytest.fixture
def overhead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, which writes its results to a folder of the test."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    script = import_module("overhead")
    monkeypatch.setattr(script, "RESULTS", tmp_path / "results")
    return script


@pytest.fixture
def asked(overhead: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str], list[str] | None]]:
    """The runs that the script asks for: commands, stages, and those of them that count."""
    found: list[tuple[list[str], list[str], list[str] | None]] = []

    def measure(command: list[str], passes: list[Any], rounds: int, counted: list[str] | None) -> list[dict[str, Any]]:
        assert rounds == 1
        found.append((command, [one.stage for one in passes], counted))
        if command[0].endswith("watched"):
            assert os.access(command[0], os.X_OK)
            assert Path(os.environ["VGPU_CONFIGURATION"]).read_text() == "kernel.default = 20\n"
        return []

    monkeypatch.setattr(overhead, "measure", measure)
    monkeypatch.setattr(overhead, "show", lambda stages, command: None)
    monkeypatch.setattr(overhead, "draw", lambda samples, path: None)
    return found


def run(overhead: ModuleType, monkeypatch: pytest.MonkeyPatch, *options: str) -> Any:
    """Run the script, and return what it wrote."""
    monkeypatch.setattr(sys, "argv", ["overhead.py", "--rounds", "1", *options])
    overhead.main()
    (written,) = overhead.RESULTS.iterdir()
    return written.name, json.loads(written.read_bytes())["samples"]


def test_commands_are_run_as_they_are(
    overhead: ModuleType, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[list[str], list[str], list[str] | None]]
) -> None:
    name, samples = run(overhead, monkeypatch, "--command", "./one 'two words'", "--command", "other")
    assert name == "overhead_commands.json"
    assert [command for command, _, _ in asked] == [["./one", "two words"], ["other"]]
    assert [(one["sample"], one["arguments"]) for one in samples] == [("one", ["two words"]), ("other", [])]
    assert asked[0][1:] == ([*MEASURING, "quick"], None)


def test_other_stages_than_those_asked_for_run_but_do_not_count(
    overhead: ModuleType, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[list[str], list[str], list[str] | None]]
) -> None:
    run(overhead, monkeypatch, "--command", "one", "--stage", "memory", "--stage", "sync-use")
    assert asked == [(["one"], MEASURING, ["memory", "sync-use"])]


def test_what_watching_could_do_too_often_is_measured_at_two_lengths(
    overhead: ModuleType, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[list[str], list[str], list[str] | None]]
) -> None:
    monkeypatch.setenv("VGPU_CONFIGURATION", "of the user")
    name, _ = run(overhead, monkeypatch, "--watched", "--stage", "memory")
    assert name == "overhead_watched.json"
    turns = {kind: [int(command[2]) for command, _, _ in asked if command[1] == kind] for kind in overhead.WATCHED}
    assert all(first < second for first, second in turns.values())
    assert len(asked) == 2 * len(turns)
    assert os.environ["VGPU_CONFIGURATION"] == "of the user"


def test_only_rounds_of_stages_that_count_are_repeated(overhead: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run_stage(stage: str, request: object, cost: Any) -> None:
        ran.append(stage)
        for times in (cost.wall_s, cost.preparation_s, cost.after_s):
            times.append(1.0)

    monkeypatch.setattr(overhead, "run_stage", run_stage)
    monkeypatch.setattr(overhead, "run_bare", lambda command, output: 1.0)
    passes = [overhead.Pass(stage) for stage in MEASURING]
    (found,) = overhead.measure(["program"], passes, 2, ["memory"])
    assert ran == [*MEASURING, "memory", "memory"]
    assert found["stage"] == "memory"
    assert len(found["rounds"]["wall_s"]) == 2
