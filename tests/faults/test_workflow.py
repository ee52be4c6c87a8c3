"""The workflow's settings are checked before use; a Snakemake that was killed does not block the next one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ffm.errors import FfmError
from ffm.results.folder.lock import InUseError
from ffm.workflow.locking import release_dead, running
from ffm.workflow.logger import stage_that_was_killed
from ffm.workflow.settings import NAMES, SettingsError, read_settings
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "name the program"),
        ({"app": ""}, "name the program"),
        ({"app": "''"}, "name the program"),
        ({"app": "./a 'b"}, "cannot be split into words"),
        ({"app": ["./a"]}, "app is a text"),
        ({"app": "./a\nb"}, "line break"),
        ({"sample": "nosuch"}, "there is no sample nosuch: the samples are als, amg,"),
        ({"app": "./a", "timeout": "$(touch X)5"}, "timeout is a number of seconds above 0, not $(touch X)5"),
        ({"app": "./a", "timeout": "5; touch X"}, "timeout is a number"),
        ({"app": "./a", "timeout": 0}, "timeout is a number"),
        ({"app": "./a", "timeout": "nan"}, "timeout is a number"),
        ({"app": "./a", "timeout": "inf"}, "timeout is a number"),
        ({"app": "./a", "timeout": True}, "timeout is a number"),
        ({"app": "./a", "timeout": None}, "timeout is a number"),
        ({"app": "./a", "accept_status": "7; touch X"}, "accept_status is an exit code"),
        ({"app": "./a", "accept_status": 256}, "accept_status is an exit code"),
        ({"app": "./a", "accept_status": True}, "accept_status is an exit code"),
        ({"app": "./a", "results": ""}, "results is empty"),
        ({"app": "./a", "results": "o{x}"}, "takes braces"),
        ({"app": "./a{x}"}, "takes braces"),
        ({"app": "./a", "results": {"a": 1}}, "results is a text"),
        ({"app": "./a", "watch": "both"}, "watch is pages or trace, not both"),
        ({"app": "./a", "ordinary_memory": "perhaps"}, "ordinary_memory is yes or no, not perhaps"),
        ({"app": "./a", "tiemout": 5}, "no setting tiemout"),
        ({"app": "./a", "window": "9..3"}, "is reversed"),
        ({"app": "./a", "window": "1..2", "ranges": "step"}, "not both"),
        ({"app": "./a", "window": "1..2", "sites": "sites.json"}, "not both"),
        ({"app": "./a", "iterations": "1/0"}, "are not 1/N"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(FfmError) as raised:
        read_settings(given)
    assert told in str(raised.value)


def test_settings_are_read(tmp_path: Path) -> None:
    found = read_settings({"app": "./a 'b c' {x} $(d)", "timeout": "2.5", "ordinary_memory": False, "watch": "trace"})
    assert found.command == ["./a", "b c", "{x}", "$(d)"]
    assert found.results == "results/a"
    assert found.limits == ["--timeout", "2.5"]
    assert found.memory_options == ["--watch", "trace", "--no-ordinary-memory"]
    assert read_settings({"app": "./a", "accept_status": "3"}).limits == ["--accept-status", "3"]
    assert read_settings({"app": 7, "results": 8}).results == "8"
    assert read_settings({"app": "./a", "window": "60..90"}).portion_options == ["--window=60..90"]
    sampled = read_settings({"app": "./a", "ranges": "step *", "iterations": "1/10"})
    assert sampled.portion_options == ["--ranges=step *", "--iterations=1/10"]


@pytest.mark.parametrize(
    ("value", "told"), [("no", True), ("False", True), (False, True), ("yes", False), (True, False)], ids=repr
)
def test_ordinary_memory_is_yes_or_no(value: str | bool, told: bool) -> None:
    """On the command line settings are texts."""
    found = read_settings({"app": "./a", "ordinary_memory": value})
    assert found.memory_options == ["--no-ordinary-memory"] * told


def test_ordinary_memory_is_nothing_else() -> None:
    with pytest.raises(SettingsError, match="ordinary_memory is yes or no, not perhaps"):
        read_settings({"app": "./a", "ordinary_memory": "perhaps"})


def test_a_program_with_braces_in_its_name_can_be_measured_through_a_link(tmp_path: Path) -> None:
    program = Path(shutil.copy("/bin/true", tmp_path / "a{x}"))
    (tmp_path / "a").symlink_to(program)
    with pytest.raises(SettingsError, match="by a symbolic link"):
        read_settings({"app": str(program), "results": "here"})
    assert read_settings({"app": str(tmp_path / "a")}).files == [str(tmp_path / "a")]


def test_results_depend_on_the_programs_and_scripts_that_a_launcher_runs(tmp_path: Path) -> None:
    program = shutil.copy("/bin/true", tmp_path / "app")
    script, module, data = (tmp_path / name for name in ("run.sh", "train.py", "input.dat"))
    script.write_text("#!/bin/sh\n")
    module.write_text("pass\n")
    data.write_text("1 2 3\n")
    launcher = shutil.which("env")
    assert read_settings({"app": f"env A=1 {program} {data} {tmp_path}"}).files == [launcher, str(program)]
    assert read_settings({"app": f"env {script} {script}"}).files == [launcher, str(script)]
    assert read_settings({"app": f"env python3 -u {module}"}).files == [launcher, str(module)]


def dry_run(folder: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--workflow-profile", "none"]
    return subprocess.run(
        [*map(str, command), "--dry-run", "--printshellcmds", "--config", *settings],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_word_reaches_the_program_as_it_is(tmp_path: Path) -> None:
    settings = [r"app=./a {y} $(touch\ X) b\ c '' \;", "results=my results", "timeout=5", "ordinary_memory=no"]
    done = dry_run(tmp_path, *settings)
    assert done.returncode == 0, done.stdout + done.stderr
    (memory,) = (line for line in (done.stdout + done.stderr).splitlines() if "stage memory" in line)
    assert "--no-ordinary-memory" in memory
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if "stage tracing" in line)
    words = " --results 'my results' --timeout 5 -- ./a '{y}' '$(touch X)' 'b c' '' ';'"
    assert " ".join(line.split()).endswith(words)


def test_a_wrong_setting_ends_the_workflow_with_a_sentence(tmp_path: Path) -> None:
    done = dry_run(tmp_path, "app=./a", "timeout=$(touch X)5")
    assert done.returncode != 0
    assert "ffm: timeout is a number of seconds above 0" in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("X*"))


@pytest.mark.parametrize(
    ("home", "words", "told"),
    [
        ("/proc/1/nothing", [], "set XDG_CACHE_HOME to a folder that you can write"),
        ("home", ["nosuch"], "No rule to produce nosuch"),
    ],
    ids=["a home that cannot be written", "an unknown target"],
)
def test_an_error_outside_of_the_stages_is_one_sentence(tmp_path: Path, home: str, words: list[str], told: str) -> None:
    (tmp_path / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--workflow-profile",
         ROOT / "profiles" / "default", *words, "--config", "app=/bin/true"],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path / home)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("ffm: "))
    assert line.startswith("ffm: Snakemake failed: ") and told in line


STAGE = "the stage sync use"


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (
            "died with <Signals.SIGKILL: 9>.",
            "SIGKILL ended the stage sync use: the system does that where memory runs out.",
        ),
        ("returned non-zero exit status 143.", f"SIGTERM ended {STAGE}."),
        ("returned non-zero exit status 1.", ""),
        ("returned non-zero exit status 130.", ""),
        ("returned non-zero exit status 255.", ""),
    ],
)
def test_a_stage_that_a_signal_ended_is_named(ended: str, told: str) -> None:
    command = "set -euo pipefail;  /bin/python -m ffm stage sync-use --results results/a   -- ./a 1"
    message = f"RuleException:\nCalledProcessError in file \"Snakefile\", line 87:\nCommand '{command}' {ended}"
    assert stage_that_was_killed(message) == told


def lock(folder: Path, results: str) -> Path:
    """A lock on results as Snakemake leaves it."""
    path = folder / ".snakemake" / "locks" / "0.output.lock"
    path.parent.mkdir(parents=True)
    path.write_text(f"{results}/baseline.json\n{results}/tracing.json\n")
    return path


def test_the_lock_of_a_dead_snakemake_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    left = lock(tmp_path, "results/a")
    release_dead("results/b")
    assert left.exists()
    release_dead("results/a")
    assert not left.exists()


def test_the_lock_of_a_snakemake_that_runs_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    left = lock(tmp_path, "results/a")
    with running("results/a"), pytest.raises(InUseError, match="in use by `snakemake`"):
        release_dead("results/a")
    assert left.exists()


def test_all_settings_are_told_in_the_workflow() -> None:
    text = (ROOT / "Snakefile").read_text()
    assert all(f"{name}=" in text for name in NAMES)
