"""`ffm check` through the entry point of the shell: the gate, its formats and its exit status."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import orjson
import pytest

from ffm.report.formats.sarif import SCHEMA
from tests.cli.command_line import CommandLine, write_small_results


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> CommandLine:
    """The command line, in a folder with results of two frees without need."""
    write_small_results(tmp_path / "results" / "solve")
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, Texts(capfdbinary))  # type: ignore[arg-type]


class Texts:
    """What was written to the standard output's and error's descriptors, as texts."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self.capture = capture

    def readouterr(self) -> tuple[str, str]:
        output, errors = self.capture.readouterr()
        return output.decode(), errors.decode()


def configure(text: str) -> None:
    Path("ffm.toml").write_text(text)


FIRST_ALLOWED = '[[allow]]\nfile = "solve.cu"\nline = 10\nreason = "kept for now"\n'


def test_each_violation_is_a_line_with_its_place_and_reason(ffm: CommandLine) -> None:
    answer = ffm("check")
    assert answer.status == 1 and "ffm check --update" in answer.errors
    first, second, verdict = sorted(answer.output.splitlines())
    assert first.startswith("/src/solve.cu:10: cudaFree: 100 times on thread 1, 0.00")
    assert "unnecessary synchronization, nothing that the CPU does afterwards" in first
    assert second.startswith("/src/solve.cu:11: cudaFree: 100 times on thread 1, 0.00")
    assert verdict == "solve fails: 2 sites against the rules"


def test_what_is_allowed_passes(ffm: CommandLine) -> None:
    configure('[[allow]]\nfunction = "solve"\nreason = "kept for now"\n')
    answer = ffm("check")
    assert (answer.status, answer.output) == (0, "solve passes: 0 sites against the rules, 2 allowed\n")
    configure(FIRST_ALLOWED)
    answer = ffm("check")
    assert answer.status == 1
    assert answer.output.endswith("solve fails: 1 site against the rules, 1 allowed\n")
    assert "solve.cu:10" not in answer.output


def test_more_calls_than_an_entry_allows_fail(ffm: CommandLine) -> None:
    configure('[[allow]]\nfunction = "solve"\ncount = 199\nreason = "kept for now"\n')
    answer = ffm("check")
    assert answer.status == 1
    assert "; allowed are 199 on a thread (kept for now), and this has 200\n" in answer.output


def test_an_entry_that_matches_nothing_is_warned_of(ffm: CommandLine) -> None:
    configure('[[allow]]\nfunction = "solve"\nreason = "kept"\n[[allow]]\ncall = "cudaMalloc"\nreason = "it grows"\n')
    answer = ffm("check")
    assert answer.status == 0
    assert "warning: an entry of the allow-list matches no call with a problem" in answer.output
    assert "call cudaMalloc (it grows)" in answer.output


def test_limits_decide_where_they_are_given(ffm: CommandLine) -> None:
    configure("[limits]\nunnecessary_percent = 99.5\n")
    answer = ffm("check")
    assert answer.status == 0
    assert answer.output.endswith("solve passes: 0 sites against the rules, 2 new sites within the limits\n")
    configure("[limits]\nnew_sites = 1\n")
    answer = ffm("check")
    assert answer.status == 1
    assert "new_sites is 2, and 1 is allowed\n" in answer.output
    assert answer.output.endswith("solve fails: 2 sites against the rules, 1 limit exceeded\n")


def test_after_an_update_only_what_is_new_fails(ffm: CommandLine) -> None:
    configure(FIRST_ALLOWED)
    answer = ffm("check", "--update")
    assert (answer.status, answer.output) == (0, f"Wrote {Path.cwd() / 'ffm-baseline.json'}: 1 site with problems.\n")
    answer = ffm("check")
    assert (answer.status, answer.output) == (
        0,
        "solve passes: 0 sites against the rules, 1 in the baseline, 1 allowed\n",
    )
    configure("")
    answer = ffm("check")
    assert answer.status == 1
    assert "solve.cu:10: cudaFree" in answer.output
    assert "solve.cu:11: cudaFree" not in answer.output


def test_a_site_of_the_baseline_that_is_gone_is_told(ffm: CommandLine) -> None:
    assert ffm("check", "--update").status == 0
    configure('[[allow]]\nfunction = "solve"\nreason = "kept for now"\n')
    answer = ffm("check")
    assert answer.status == 0
    assert "warning: 2 sites of the baseline are no problem any more" in answer.output


def test_the_json_holds_every_violation(ffm: CommandLine) -> None:
    content = orjson.loads(ffm("check", "--format", "json").output)
    assert content["passed"] is False
    found = [(one["line"], one["call"], one["count"], one["thread"]) for one in content["violations"]]
    assert sorted(found) == [(10, "cudaFree", 100, 1), (11, "cudaFree", 100, 1)]
    assert [key for key in content if key not in ffm("check", "--format", "json", "--help").output] == []
    assert "`ffm check --format json --help`" in ffm("check", "--help").output


def test_annotations_name_file_and_line(ffm: CommandLine) -> None:
    configure(FIRST_ALLOWED + '[[allow]]\ncall = "a"\nreason = "100 %"\n')
    answer = ffm("check", "--format", "github")
    assert answer.status == 1
    error, warning = answer.output.splitlines()
    assert error.startswith("::error file=/src/solve.cu,line=11,title=ffm check::cudaFree: 100 times on thread 1")
    assert "%25)" in error and "% )" not in error
    assert warning.startswith("::warning title=ffm check::an entry of the allow-list") and "(100 %25)" in warning


def test_sarif_has_a_result_for_each_violation_and_limit(ffm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    configure("[limits]\nnew_sites = 1\n")
    log = orjson.loads(ffm("check", "--format", "sarif").output)
    assert (log["$schema"], log["version"]) == (SCHEMA, "2.1.0")
    run = log["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["ffm/new", "ffm/new", "ffm/limit"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {"ffm/new", "ffm/limit"}
    places = [result["locations"][0]["physicalLocation"] for result in run["results"][:2]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"file:///src/solve.cu"}
    assert {place["region"]["startLine"] for place in places} == {10, 11}


@pytest.mark.parametrize(
    ("workspace", "uri"), [("/", "src/solve.cu"), ("/elsewhere", "file:///src/solve.cu"), ("", "file:///src/solve.cu")]
)
def test_sarif_names_files_from_the_checkout_of_a_github_job_on(
    ffm: CommandLine, monkeypatch: pytest.MonkeyPatch, workspace: str, uri: str
) -> None:
    """The job may run the program in a folder of the checkout, but uploads the log from the top."""
    monkeypatch.setenv("GITHUB_WORKSPACE", workspace)
    log = orjson.loads(ffm("check", "--format", "sarif").output)
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {uri}


def test_junit_has_a_failure_for_each_violation(ffm: CommandLine) -> None:
    assert ffm("check", "--format", "junit", "-o", "junit.xml").status == 1
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert {case.get("line") for case in suite.iter("testcase")} == {"10", "11"}
    assert all("unnecessary" in failure.get("message", "") for failure in suite.iter("failure"))
    configure('[[allow]]\nfunction = "solve"\nreason = "kept for now"\n')
    assert ffm("check", "--format", "junit", "-o", "junit.xml").status == 0
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert [len(case) for case in suite.iter("testcase")] == [0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ffm.toml", "[limits]\nnew_site = 1\n", "ffm.toml, line 2: limits.new_site: there is no such key."),
        ("ffm-baseline.json", '{"format": "ffm.gate-baseline", "version": 9}', "has version 9, but this ffm reads"),
        ("results/solve/analysis.json", "{", "was edited or truncated"),
    ],
)
def test_what_cannot_be_checked_ends_with_two_and_a_sentence(ffm: CommandLine, name: str, text: str, said: str) -> None:
    Path(name).write_text(text)
    answer = ffm("check")
    assert (answer.status, answer.output) == (2, "")
    assert answer.errors.startswith("ffm: ") and said in answer.errors
    assert len(answer.errors.splitlines()) == 1


def test_results_and_files_that_do_not_exist_end_with_two(ffm: CommandLine) -> None:
    for arguments in (["--results", "no"], ["--config", "no.toml"], ["-o", "no/such/folder"], ["--format", "xml"]):
        assert ffm("check", *arguments).status == 2
