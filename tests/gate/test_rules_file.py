"""A project's configuration: what is wrong in it is named by file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.gate.rules import Limits
from ffm.gate.rules_file import RulesError, line_of, read_rules

GOOD = """\
baseline = "known.json"

[limits]
unnecessary_seconds = 1
new_sites = 2

[[allow]]
call = "cudaFree"
reason = "once, at the end"
count = 3
"""


def test_the_configuration_is_read_from_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "ffm.toml").write_text(GOOD)
    rules, home = read_rules(None, tmp_path)
    assert (rules.baseline, home) == ("known.json", tmp_path)
    assert rules.limits == Limits(unnecessary_seconds=1.0, new_sites=2)
    assert [(entry.call, entry.count) for entry in rules.allow] == [("cudaFree", 3)]


def test_the_configuration_is_read_from_the_projects_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n[tool.ffm.limits]\nnew_sites = 1\n')
    assert read_rules(None, tmp_path)[0].limits.new_sites == 1


def test_a_project_without_configuration_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')
    rules = read_rules(None, tmp_path)[0]
    assert rules.allow == [] and rules.limits.none


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[limits]\nnew_sites = 1\nunnecesary_seconds = 1\n",
            "line 3: limits.unnecesary_seconds: there is no such key",
        ),
        ("# rules\n[limits]\nnew_sites = 'two'\n", "line 3: limits.new_sites: expected `int`, got `str`"),
        ("[limits]\nunnecessary_percent = 101\n", "line 2: limits.unnecessary_percent: expected `float` <= 100"),
        (GOOD + "[[allow]]\ncall = 'a'\n", "line 11: allow[2]: the key reason is missing"),
        (GOOD + "[[allow]]\nreason = 'a'\n", "line 11: allow[2]: it names no calls"),
        (
            GOOD + "[[allow]]\nreason = 'a'\ncall = 'b'\nline = 4\n",
            "line 11: allow[2]: it names a `line`, but no `file`",
        ),
        (GOOD + "[[allow]]\nreason = 'a'\ncall = 'b'\nresaon = 4\n", "line 14: allow[2].resaon: there is no such key"),
        ("[limits]\nnew_sites 2\n", "is not TOML: Expected '=' after a key in a key/value pair (at line 2"),
        ("allow = 3\n", "line 1: allow: expected `array`, got `int`"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "ffm.toml").write_text(text)
    with pytest.raises(RulesError) as caught:
        read_rules(None, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "ffm.toml"))
    assert said in str(caught.value)


def test_lines_of_the_projects_file_are_those_of_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n\n[[tool.ffm.allow]]\ncall = 'b'\nreason = 5\n")
    with pytest.raises(RulesError, match=r"pyproject.toml, line 6: allow\[1\].reason"):
        read_rules(None, tmp_path)


def test_a_configuration_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"does not exist\. Name another with --config\.$"):
        read_rules(tmp_path / "rules.toml", tmp_path)
    (tmp_path / "rules.toml").write_bytes(b"baseline = 'a'\n# \xff\n")
    with pytest.raises(RulesError, match="line 2: it is not TOML, because it is not UTF-8"):
        read_rules(tmp_path / "rules.toml", tmp_path)


def test_a_key_that_cannot_be_found_has_the_line_of_what_contains_it() -> None:
    assert line_of("a = 1\nallow = [{call = 'b'}]\n", ("allow", 0, "call")) == 2
    assert line_of("", ("allow", 0)) == 1
