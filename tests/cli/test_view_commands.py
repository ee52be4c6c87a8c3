"""The viewing commands on results in files, through the same entry point as on the shell."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.cli.command_line import CommandLine, write_small_results

DIOGENES = Path(__file__).parents[2].parent / "shared" / "reference" / "diogenes-cumf_als"
needs_diogenes = pytest.mark.skipif(not DIOGENES.is_dir(), reason="Diogenes's published data are not here")


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command line, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "solve"
    write_small_results(folder)
    return folder


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["report"], "Folds  every call of one function"),
        (["report", "--by", "line"], "100  solve.cu:10 cudaFree"),
        (["sequence"], "Sequence 1 of solve: 2 operations, 100 times"),
        (["sequence", "1"], "With a problem: 2 synchronizations, 0 transfers"),
        (["subsequence", "2", "2"], "Saving of the subsequence: "),
        (["fold", "cudaFree"], "Fold on cudaFree of solve: 200 calls"),
        (["site", "3"], "required synchronization (100 of 100 occurrences): the CPU uses a result"),
    ],
)
def test_each_screen_shows_the_newest_results(
    ffm: CommandLine, results: Path, arguments: list[str], expected: str
) -> None:
    answer = ffm(*arguments)
    assert (answer.status, answer.errors) == (0, "")
    assert expected in answer.output
    assert max(map(len, answer.output.splitlines())) <= 80
    assert "\x1b" not in answer.output


@pytest.mark.parametrize("words", [["report"], ["site", "3"], ["fold", "cudaFree"]])
def test_a_results_folder_without_its_option_is_recognized(
    ffm: CommandLine, results: Path, tmp_path: Path, words: list[str]
) -> None:
    folder = str(results.relative_to(tmp_path))
    assert f"Did you mean --results {folder}?" in ffm(*words, folder).errors
    assert "Did you mean" not in ffm(*words, "results").errors  # there are no results in it


@pytest.mark.parametrize(
    "command",
    [
        ["report"],
        ["report", "--by", "line"],
        ["sequence"],
        ["subsequence", "1", "2"],
        ["fold", "cudaFree"],
        ["site", "1"],
    ],
)
def test_json_holds_the_same_as_the_screen(ffm: CommandLine, results: Path, command: list[str]) -> None:
    content = orjson.loads(ffm(*command, "--json", "--estimator", "bound").output)
    assert content["application"] == "solve"
    assert content["estimator"] == "bound"


@pytest.mark.parametrize("command", ["report", "sequence", "subsequence", "fold", "site"])
def test_help_lists_every_field_of_the_json(ffm: CommandLine, results: Path, command: str) -> None:
    arguments = {"subsequence": ["1", "2"], "fold": ["cudaFree"], "site": ["1"]}.get(command, [])
    help_text = ffm(command, "--json", "--help").output
    assert "JSON: Saving" not in ffm(command, "--help").output
    assert f"`ffm {command} --json --help` describes" in ffm(command, "--help").output
    for more in ([], ["--by", "line"]) if command == "report" else ([],):
        content = orjson.loads(ffm(command, *arguments, *more, "--json").output)
        assert [key for key in content if key not in help_text] == []


def test_the_html_report_holds_every_list(ffm: CommandLine, results: Path) -> None:
    answer = ffm("report", "--by", "line", "--html", "report.html")
    assert (answer.status, answer.output) == (2, "")
    assert "leave out --by" in answer.errors


def test_a_whole_sequence_as_subsequence_gives_the_same_estimate(ffm: CommandLine, results: Path) -> None:
    whole = orjson.loads(ffm("sequence", "1", "--json").output)["saving"]
    part = orjson.loads(ffm("subsequence", "1", "2", "--json").output)["saving"]
    assert part["carry_s"] == pytest.approx(whole["carry_s"])
    assert whole["carry_s"] > 0


def test_results_are_taken_from_the_folder_that_is_named(ffm: CommandLine, results: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    results.rename(moved)
    assert ffm("report").status == 1
    assert ffm("report", "--results", moved).status == 0


def test_the_html_report_is_written(ffm: CommandLine, results: Path, tmp_path: Path) -> None:
    answer = ffm("report", "--html", "report.html")
    assert (answer.status, answer.output) == (0, "Wrote report.html.\n")
    assert "<svg" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sequence", "7"], "solve has no sequence 7"),
        (["sequence", "0"], "solve has no sequence 0"),
        (["subsequence", "2", "1"], "START (2) must not be greater than END (1)"),
        (["subsequence", "1", "99"], "has operations 1 to 2"),
        (["subsequence", "1", "2", "--sequence", "5"], "solve has no sequence 5"),
        (["fold", "cudaFre"], "did you mean cudaFree?"),
        (["site", "44"], "numbered 1 to 3"),
        (["report", "--results", "nowhere"], "nowhere"),
        (["report", "--results", "."], "there are no results in ."),
        (["report", "--html", "no/such/folder/report.html"], "Create its folder first"),
        (["export", "--output", "no/such/folder/all.json"], "Create its folder first"),
    ],
)
def test_bad_input_gets_one_sentence_and_a_failure(
    ffm: CommandLine, results: Path, arguments: list[str], message: str
) -> None:
    answer = ffm(*arguments)
    assert answer.status == 1
    assert answer.output == ""
    assert answer.errors.startswith("ffm: ")
    assert message in answer.errors
    assert len(answer.errors.splitlines()) == 1


def test_without_any_results_the_next_command_is_named(ffm: CommandLine) -> None:
    answer = ffm("report")
    assert answer.status == 1
    assert "ffm run ./program" in answer.errors


def test_unfinished_results_are_told_from_none(ffm: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "results" / "solve").mkdir(parents=True)
    answer = ffm("report")
    assert answer.status == 1
    assert "complete" in answer.errors and "solve" in answer.errors


@pytest.mark.parametrize("damage", ["truncate", "version", "field", "not-json"])
def test_damaged_results_are_refused(ffm: CommandLine, results: Path, damage: str) -> None:
    document = results / "analysis.json"
    content = orjson.loads(document.read_bytes())
    if damage == "truncate":
        document.write_bytes(document.read_bytes()[:100])
    elif damage == "version":
        document.write_bytes(orjson.dumps(content | {"version": 99}))
    elif damage == "field":
        document.write_bytes(orjson.dumps(content | {"wall_s": "long"}))
    else:
        document.write_text("nothing of the kind")
    answer = ffm("sequence")
    assert answer.status == 1
    assert str(document.name) in answer.errors
    assert len(answer.errors.splitlines()) == 1


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_timeline_is_refused(ffm: CommandLine, results: Path, damage: str) -> None:
    timeline = results / "timeline.arrow"
    if damage == "missing":
        timeline.unlink()
    else:
        timeline.write_bytes(timeline.read_bytes()[:200])
    answer = ffm("subsequence", "1", "2")
    assert answer.status == 1
    assert "timeline.arrow" in answer.errors


@needs_diogenes
def test_diogenes_own_subsequence_is_reproduced(ffm: CommandLine) -> None:
    assert ffm("import", "diogenes", DIOGENES).status == 0
    assert "137.136 s (10.08 %" in ffm("subsequence", "10", "23", "--estimator", "bound").output
    assert "Saving: 155.785 s (11.45 % of the run)" in ffm("sequence", "--estimator", "bound").output
    report = ffm("report", "--estimator", "bound").output
    for line in ("214.026 s 15.73 %", "95.251 s  7.00 %", "4.112 s  0.30 %"):
        assert line in report
    assert "1.000 s (0.07 %" in ffm("fold", "cudaDeviceSynchronize", "--estimator", "bound").output


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["report", "--by", "line"], ["sequence"], ["subsequence", "1", "1"],
     ["subsequence", "--best", "2"], ["fold", "cudaFree"],
     ["site", "1"], ["remedies"]],
)  # fmt: skip
def test_named_results_are_named_in_the_commands_that_follow(
    ffm: CommandLine, results: Path, tmp_path: Path, arguments: list[str]
) -> None:
    """Otherwise those commands would show the newest results."""
    newest = [line for line in ffm(*arguments).output.splitlines() if line.lstrip().startswith("ffm ")]
    assert newest and not any("--results" in line for line in newest)
    moved = tmp_path / "other results"
    results.rename(moved)
    named = ffm(*arguments, "--results", moved).output.splitlines()
    following = [line for line in named if line.lstrip().startswith("ffm ")]
    assert len(following) == len(newest)
    assert all(line.endswith(f"--results '{moved}'") for line in following)


def test_a_stack_without_a_call_is_no_site(ffm: CommandLine, tmp_path: Path) -> None:
    write_small_results(tmp_path / "results" / "solve", empty_stack=True)
    answer = ffm("site", "4")
    assert (answer.status, answer.output) == (1, "")
    assert "site 4 of solve is not a call" in answer.errors


def test_two_measurements_are_compared(ffm: CommandLine, results: Path) -> None:
    answer = ffm("compare", results, results, "--more-old", results, "--more-new", results)
    assert (answer.status, answer.errors) == (0, "")
    assert answer.output.startswith("before: solve, 0.0") and "2 sites with as many problems" in answer.output
    content = orjson.loads(ffm("compare", results, results, "--json").output)
    assert (content["same"], content["gone"]) == (2, [])
    assert [key for key in content if key not in ffm("compare", "--json", "--help").output] == []
    assert ffm("compare", results, "nowhere").status == 1


def test_an_incomplete_measurement_says_what_is_missing_and_how_to_go_on(ffm: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "some results"
    write_small_results(folder)
    (folder / "analysis.json").rename(folder / "baseline.json")
    answer = ffm("report", "--results", str(folder))
    assert answer.status == 1
    (line,) = answer.errors.splitlines()
    assert "is incomplete, without tracing, memory, sync-use, analysis" in line
    assert f"give `ffm run --results '{folder}'` the same program" in line
