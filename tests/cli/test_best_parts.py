"""`ffm subsequence --best K`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.cli.command_line import CommandLine, write_small_results


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command line, in a working directory with small results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_small_results(tmp_path / "results" / "solve")
    return CommandLine(monkeypatch, capsys)


def test_the_best_parts_are_listed_fewest_places_first(ffm: CommandLine) -> None:
    answer = ffm("subsequence", "--best", "3")
    assert (answer.status, answer.errors) == (0, "")
    assert "Best parts of sequence 1 of solve" in answer.output
    assert "    cudaFree solve.cu:10 to cudaFree solve.cu:11" in answer.output.splitlines()
    assert max(map(len, answer.output.splitlines())) <= 80


def test_json_holds_what_the_screen_shows(ffm: CommandLine) -> None:
    content = orjson.loads(ffm("subsequence", "--best", "3", "--json").output)
    assert content["parts"][-1]["command"] == "ffm subsequence 1 2"
    assert content["parts"][-1]["share"] == pytest.approx(100)
    assert content["estimator"] == "carry"
    help_text = ffm("subsequence", "--json", "--help").output
    assert [key for key in content if key not in help_text] == []


@pytest.mark.parametrize("arguments", [[], ["1"], ["1", "2", "--best", "3"]])
def test_a_part_and_the_best_parts_exclude_each_other(ffm: CommandLine, arguments: list[str]) -> None:
    answer = ffm("subsequence", *arguments)
    assert answer.status == 2
    assert "START and END" in answer.errors


@pytest.mark.parametrize("arguments", [["--best", "0"], ["--best", "2", "--sequence", "9"]])
def test_what_cannot_be_listed_is_refused_in_one_sentence(ffm: CommandLine, arguments: list[str]) -> None:
    answer = ffm("subsequence", *arguments)
    assert (answer.status, answer.output) == (1, "")
    assert len(answer.errors.splitlines()) == 1


def test_imported_results_cannot_be_replayed(ffm: CommandLine) -> None:
    answer = ffm("report", "--estimator", "replay")
    assert answer.status == 1
    assert "--estimator carry or bound" in answer.errors
