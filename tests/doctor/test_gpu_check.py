"""The check of a machine with a GPU runs on the virtual GPU, and reports what fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0


def check(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_to_end(
        ["sh", ROOT / "benchmarks" / "gpu" / "check.sh", output, "--virtual", *arguments],
        seconds=SECONDS,
        environment={**os.environ, "PYTHON": sys.executable, "PACK": str(output / "no-pack")},
    )


@pytest.mark.thorough
def test_the_virtual_gpu_waits_where_it_claims_to(tmp_path: Path) -> None:
    done = check(tmp_path, "--only", "packages,doctor,facts,waiting")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["architecture"] == "sm_90"
    assert {name: step["state"] for name, step in found["steps"].items()} == {
        "packages": "passed",
        "doctor": "passed",
        "facts": "passed",
        "waiting": "passed",
    }
    facts = {row["subject"]: row["good"] for row in found["steps"]["facts"]["rows"]}
    assert {name for name, good in facts.items() if good} >= {
        "protected pinned memory",
        "protected managed memory",
        "fork",
    }
    calls = {row["subject"]: row["good"] for row in found["steps"]["waiting"]["rows"]}
    assert {name for name, good in calls.items() if good is not True} == set()
    assert len(calls) > 20
    assert (tmp_path / "check.txt").read_text().count("does not wait") > 5


def test_what_fails_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    done = check(tmp_path, "--only", "waiting,packages", "--seconds", "0.5")
    assert done.returncode == 1
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["steps"]["packages"]["state"] == "passed"
    assert found["steps"]["waiting"]["rows"][0]["says"] == "no time was left"
    assert "FAILED" in done.stdout


def test_an_unknown_step_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, "--only", "nonsense")
    assert done.returncode == 1
    assert "there is no step nonsense" in done.stderr


def test_the_build_script_knows_every_sample() -> None:
    script = (ROOT / "ffm" / "vgpu" / "samples" / "build_nvcc.sh").read_text()
    match = re.search(r'^programs="(.*?)"', script, re.MULTILINE | re.DOTALL)
    assert match
    names = match[1].split()
    assert all(f"\n        {name}) " in script for name in names)
    samples = {path.name.removesuffix(".truth.toml") for path in (ROOT / "ffm/vgpu/samples").glob("*.truth.toml")}
    assert {name.partition("_fixed")[0] for name in names} == samples
    compiled = (ROOT / "benchmarks" / "gpu" / "programs.py").read_text()
    assert all(f'"{name}"' in compiled for name in names)
