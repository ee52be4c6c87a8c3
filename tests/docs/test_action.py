"""The GitHub Action passes its inputs on to `ffm check`, and its status to GitHub."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ACTION = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())
CHECK = ACTION["runs"]["steps"][-1]
COMMAND = "./solver 'a b' 2"
MEASURES = ["check", "--format", "github", "--results", "ffm-results"]
READS = ["check", "--format", "sarif", "--output", "log.sarif", "--results", "ffm-results"]


def calls(folder: Path, status: int, **inputs: str) -> tuple[int, list[list[str]]]:
    """Run the step with an `ffm` that notes its arguments; return the step's status and these."""
    program = folder / "ffm"
    program.write_text(f'#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >> notes\necho >> notes\nexit {status}\n')
    program.chmod(0o755)
    given = {name: content.get("default", "") for name, content in ACTION["inputs"].items()} | inputs
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda named: given[named[1]], text)
        for name, text in CHECK["env"].items()
    }
    # As GitHub starts `shell: bash`.
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]],
        cwd=folder,
        env={**os.environ, **environment, "PATH": f"{folder}:{os.environ['PATH']}"},
        check=False,
    )
    return done.returncode, [call.splitlines() for call in (folder / "notes").read_text().split("\n\n") if call]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_status_is_that_of_the_check(tmp_path: Path, status: int) -> None:
    assert calls(tmp_path, status, command=COMMAND) == (status, [[*MEASURES, "./solver", "a b", "2"]])


def test_options_come_before_the_program(tmp_path: Path) -> None:
    _, (words,) = calls(tmp_path, 0, command=COMMAND, quick="true", config="ci/ffm.toml")
    assert words == [*MEASURES, "--config", "ci/ffm.toml", "--quick", "./solver", "a b", "2"]


@pytest.mark.parametrize(("status", "written"), [(0, True), (1, True), (2, False)])
def test_a_log_is_written_of_what_was_measured(tmp_path: Path, status: int, written: bool) -> None:
    found, made = calls(tmp_path, status, command=COMMAND, sarif="log.sarif", quick="true")
    assert found == status
    assert made[1:] == ([READS] if written else [])


def test_every_input_is_used() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", str(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
