"""`ffm init` and `ffm completion`. About 3 s in all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ffm.workflow import CONFIGS, PROFILES, SNAKEFILE
from tests.cli.command_line import CommandLine
from tests.conftest import ROOT, Ffm


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def test_a_checkout_and_the_package_hold_one_workflow() -> None:
    assert (ROOT / "Snakefile").samefile(SNAKEFILE)
    assert (ROOT / "profiles").samefile(PROFILES)
    assert (ROOT / "configs").samefile(CONFIGS)


def test_a_folder_of_ones_own_runs_the_packaged_stages(command_line: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "a study"
    answer = command_line("init", folder)
    assert answer.status == 0
    assert f"cd '{folder}' && snakemake" in answer.output
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "snakemake", "--dry-run", "--configfile", "configs/program.yaml"]
    planned = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    for rule in ("baseline", "tracing", "memory", "sync_use", "analysis"):
        assert f"\n{rule} " in planned


def test_a_cluster_runs_one_job_at_a_time(command_line: CommandLine, tmp_path: Path) -> None:
    command_line("init", tmp_path)
    profile = yaml.safe_load((tmp_path / "profiles/slurm/config.yaml").read_text())
    assert (profile["executor"], profile["jobs"], profile["resources"]["gpu"]) == ("slurm", 1, 1)


def test_nothing_is_overwritten_unless_told(command_line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text("mine")
    refused = command_line("init", tmp_path)
    assert refused.status == 1
    assert (
        refused.errors
        == f"ffm: {tmp_path}/Snakefile would be overwritten; allow that with --force, or name another folder.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["Snakefile"]
    assert command_line("init", tmp_path, "--force").status == 0
    assert (tmp_path / "Snakefile").read_text() != "mine"


def test_a_folder_that_cannot_be_made_is_named(command_line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = command_line("init", tmp_path / "file" / "folder")
    assert answer.status == 1
    assert "cannot be written" in answer.errors and len(answer.errors.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(command_line: CommandLine, shell: str) -> None:
    assert "_FFM_COMPLETE" in command_line("completion", shell).output


def test_commands_are_completed(ffm: Ffm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_FFM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ffm subs")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "subsequence" in ffm().out
