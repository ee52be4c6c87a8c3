"""`ffm path` on the command line, on an imported trace."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.cli.command_line import CommandLine, write_small_results
from tests.sources.nsight_reports import Report


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command line, in a working directory with an imported trace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    line = CommandLine(monkeypatch, capsys)
    report = Report()
    for begin in range(0, 1000, 100):
        launch = report.call("cudaLaunchKernel_v7000", begin, begin + 5)
        report.kernel("a_kernel_with_a_name_that_is_longer_than_the_screen_has_room_for", begin + 6, begin + 56, launch)
        report.wait(report.call("cudaDeviceSynchronize_v3020", begin + 6, begin + 57))
    report.write(tmp_path / "run.sqlite")
    assert line("import", "nsys", "run.sqlite").status == 0
    return line


def test_the_screen_shows_the_path(ffm: CommandLine) -> None:
    answer = ffm("path")
    assert (answer.status, answer.errors) == (0, "")
    assert "Imported from nsys, which recorded the GPU's times." in answer.output
    assert "the GPU computes" in answer.output
    assert "early synchronization" in answer.output
    assert max(map(len, answer.output.splitlines())) <= 80


def test_each_form_prints_json_with_the_fields_of_the_help(ffm: CommandLine) -> None:
    said = ffm("path", "--json", "--help").output
    for arguments in ([], ["1"], ["--if", "GPU=2x"]):
        content = orjson.loads(ffm("path", *arguments, "--json").output)
        assert content["application"] == "run"
        assert [key for key in content if key not in said] == []


def test_one_region_and_a_change_have_their_screens(ffm: CommandLine) -> None:
    one = ffm("path", "1")
    assert one.status == 0
    assert "2x as fast: " in one.output
    changed = ffm("path", "--if", "1=2x", "--if", "CPU=gone")
    assert changed.status == 0
    assert "The run would save " in changed.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no region has the number or name 'nothing'"),
        (["--fixed"], "nothing is proved about the waits of run"),
        (["--if", "1"], "is no change: write REGION=2x"),
        (["1", "--if", "1=2x"], "choose one"),
        (["--results", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_gets_one_sentence_and_a_failure(ffm: CommandLine, arguments: list[str], message: str) -> None:
    answer = ffm("path", *arguments)
    assert answer.status != 0
    assert answer.output == ""
    assert message in answer.errors
    assert "Traceback" not in answer.errors


def test_totals_have_no_path(ffm: CommandLine, tmp_path: Path) -> None:
    write_small_results(tmp_path / "totals")
    answer = ffm("path", "--results", "totals")
    assert answer.status == 1
    assert "totals per call stack, not single operations" in answer.errors
