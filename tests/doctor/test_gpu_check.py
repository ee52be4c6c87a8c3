"""The check of a machine with a GPU goes its way on the virtual GPU, and says what fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def check(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "benchmarks" / "gpu" / "check.sh"), str(output), "--virtual", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHON": sys.executable, "PACK": str(output / "no-pack")},
    )


def test_the_virtual_gpu_waits_where_it_claims_to(tmp_path: Path) -> None:
    done = check(tmp_path, "--only", "packages,doctor,waiting")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["architecture"] == "sm_90"
    assert {name: step["state"] for name, step in found["steps"].items()} == {
        "packages": "passed",
        "doctor": "passed",
        "waiting": "passed",
    }
    calls = {row["subject"]: row["good"] for row in found["steps"]["waiting"]["rows"]}
    # A module cannot be loaded: the virtual GPU takes no code for real ones.
    assert {name for name, good in calls.items() if good is not True} == {"cuModuleUnload"}
    assert len(calls) > 20
    assert (tmp_path / "check.txt").read_text().count("does not wait") > 5


def test_what_fails_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    done = check(tmp_path, "--only", "waiting,packages", "--seconds", "0.5")
    assert done.returncode == 1
    found = json.loads((tmp_path / "check.json").read_text())
    assert found["steps"]["packages"]["state"] == "passed"
    assert found["steps"]["waiting"]["rows"][0]["says"] == "no time was left"
    assert "FAILED" in done.stdout
