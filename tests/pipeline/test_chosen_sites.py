"""`ffm run --sites` on a program: some waits are measured, and nothing is said about the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from tests.conftest import Ffm, Finished

PROGRAM = Path(__file__).parent / "programs" / "chosen.cu"
LINES = {
    name: number
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
    for name in ("first", "second", "third")
    if f"/* {name} */" in line
}


@dataclass(frozen=True)
class Chosen:
    """A folder with the results of quick mode, and of a measurement of its first and second waits."""

    folder: Path
    sites: dict[str, int]
    """The waits' numbers in the results of quick mode."""
    ran: Finished


@pytest.fixture(scope="module")
def chosen(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Chosen:
    folder, program = tmp_path_factory.mktemp("chosen"), build_program(PROGRAM)
    assert ffm("run", "--quick", program, folder=folder).code == 0
    view = orjson.loads(ffm("report", "--all", "--json", folder=folder).out)
    lines = {one["where"]["line"]: one["where"]["site"] for one in view["unproved"]}
    sites = {name: lines[line] for name, line in LINES.items()}
    ran = ffm("run", "--sites", f"{sites['first']},{sites['second']}", program, folder=folder)
    return Chosen(folder, sites, ran)


def test_only_the_chosen_sites_have_verdicts(ffm: Ffm, chosen: Chosen) -> None:
    assert chosen.ran.code == 0, chosen.ran.err
    analysis = orjson.loads((chosen.folder / "results" / "chosen-sites" / "analysis.json").read_bytes())
    by_line = {site["line"]: site for site in analysis["sites"] if site["call"] == "cudaDeviceSynchronize"}
    kinds = {name: [verdict["kind"] for verdict in by_line[line]["synchronization"]] for name, line in LINES.items()}
    assert kinds == {"first": ["required"], "second": ["conditionally unnecessary"], "third": []}
    left_out = {(analysis["sites"][site]["call"], analysis["sites"][site]["line"]) for site in analysis["not_measured"]}
    assert ("cudaDeviceSynchronize", LINES["third"]) in left_out
    assert not left_out & {("cudaDeviceSynchronize", LINES[name]) for name in ("first", "second")}


def test_screens_say_what_was_not_measured(ffm: Ffm, chosen: Chosen) -> None:
    analysis = orjson.loads((chosen.folder / "results" / "chosen-sites" / "analysis.json").read_bytes())
    (third,) = (number for number, site in enumerate(analysis["sites"], 1) if site["line"] == LINES["third"])
    where = ("--results", "results/chosen-sites")
    assert f"chosen.cu:{LINES['third']}" in ffm("report", *where, folder=chosen.folder).out.partition("Not measured")[2]
    screen = ffm("site", third, *where, folder=chosen.folder).out
    assert "Not measured: this site was left out" in screen
    assert "No problem" not in screen


@pytest.mark.parametrize("words", [("check", "--results"), ("compare", "results/chosen-quick")])
def test_nothing_is_judged_that_was_not_measured(ffm: Ffm, chosen: Chosen, words: tuple[str, ...]) -> None:
    done = ffm(*words, "results/chosen-sites", folder=chosen.folder)
    assert (done.code, done.out) == (2 if words[0] == "check" else 1, "")
    assert "--sites" in done.err


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("9999", "neither waits nor transfers"),
        ("worst", "takes numbers of sites"),
        ("worst:0", "takes numbers of sites"),
    ],
)
def test_sites_that_do_not_exist_are_told(ffm: Ffm, chosen: Chosen, which: str, said: str) -> None:
    done = ffm("run", "--sites", which, "./chosen", folder=chosen.folder)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_without_quick_results_there_is_nothing_to_choose_from(ffm: Ffm, tmp_path: Path) -> None:
    done = ffm("run", "--sites", "worst:3", "/bin/true", folder=tmp_path)
    assert done.code == 1
    assert "ffm run --quick" in done.err
