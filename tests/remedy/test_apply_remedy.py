"""`ffm apply-remedy` on the sample `als`: its planted problems disappear, its results stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ffm.vgpu.paths import sample
from tests.conftest import Ffm

ITERATIONS = 12
ONE_ITERATION = ("--", sample("als"), 1)
"""For what does not depend on how long the program runs."""


@pytest.fixture(scope="module")
def folder(ffm: Ffm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with results of `als`."""
    working = tmp_path_factory.mktemp("als")
    results = working / "results" / "als"
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", sample("als"), ITERATIONS)
        assert done.code == 0, done.err
    done = ffm("stage", "analysis", "--results", results)
    assert done.code == 0, done.err
    return working


@pytest.fixture(scope="module")
def everything(ffm: Ffm, folder: Path) -> dict[str, Any]:
    done = ffm("apply-remedy", "--all", "--runs", 2, "--json", folder=folder)
    assert done.code == 0, done.err
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def test_all_problems_of_a_kind_are_remedied(everything: dict[str, Any]) -> None:
    for count in everything["remedies"]:
        assert count["remedied"] == count["planned"] > 0, count
    applied = {count["remedy"] for count in everything["remedies"]}
    assert "cudaFree-hoist" in applied
    assert applied <= {"cudaFree-hoist", "skip-syncs", "async-transfers", "reuse-uploads"}
    # What pays depends on what hashing and copying cost on this machine.
    assert len(applied) == 4 or any("would save" in site["why"] for site in everything["left"])


def test_the_operations_in_the_loop_are_removed(everything: dict[str, Any]) -> None:
    """Of nine synchronizations, those remain that would save nothing: another wait follows.

    A call is either corrected, or left as it is to compare with the corrected ones.
    """
    removed = everything["removed"]
    compared = _originals(everything)
    skipped = [site for site in everything["sites"] if "skip-syncs" in site["remedies"]]
    remain = [site for site in everything["left"] if "Synchronize" in site["place"]]
    assert removed["synchronizations"] + compared("Synchronize") == ITERATIONS * len(skipped)
    assert len(skipped) + len(remain) == 9
    assert all("would save" in site["why"] for site in remain)
    assert removed["frees"] + compared("cudaFree") >= 17 * ITERATIONS
    assert removed["allocations"] >= 16 * (ITERATIONS - 1) - compared("cudaFree") - compared("cudaMalloc")
    assert everything["synchronizations_removed"] + compared("") > 25 * ITERATIONS


def test_every_call_of_a_corrected_site_is_accounted_for(everything: dict[str, Any]) -> None:
    for site in everything["sites"]:
        if site["remedies"]:
            assert site["calls"] == site["corrected"] + site["waited"] + site["original"], site


def _originals(answer: dict[str, Any]) -> Callable[[str], int]:
    """Return how many calls of functions with this in their name were left as they are."""
    return lambda name: sum(site["original"] for site in answer["sites"] if name in site["place"])


def test_the_program_computes_the_same(everything: dict[str, Any]) -> None:
    assert everything["differences"] == []


def test_the_answer_names_times_estimate_and_memory(everything: dict[str, Any]) -> None:
    assert len(everything["bare_runs_s"]) == len(everything["corrected_runs_s"]) == 2
    assert everything["saving_s"] == pytest.approx(everything["bare_s"] - everything["corrected_s"])
    assert everything["estimate_s"] > max(everything["expected"]["seconds"], 0)
    assert everything["ratio"] == pytest.approx(everything["saving_s"] / everything["estimate_s"])
    assert everything["memory"]["pool_peak_bytes"] > 0


def test_the_command_of_the_design_works_as_it_stands(ffm: Ffm, folder: Path) -> None:
    done = ffm("apply-remedy", "--cudaFree-hoist", folder=folder)
    assert done.code == 0, done.err
    assert "cudaFree-hoist" in done.out
    assert "uncorrected" in done.out and "corrected" in done.out and "estimated" in done.out
    assert "The corrected program ended like the original and wrote the same output." in done.out


def test_sites_are_numbered_as_on_the_screens(ffm: Ffm, folder: Path) -> None:
    remedies = json.loads(ffm("remedies", "--json", "--all", folder=folder).out)["remedies"]
    frees = [remedy["where"] for remedy in remedies if remedy["kind"] == "memory management"][:4]
    sites = [word for free in frees for word in ("--site", free["site"])]
    done = ffm("apply-remedy", *sites, "--runs", 1, "--json", "--", sample("als"), 1, folder=folder)
    assert done.code == 0, done.err
    chosen = {(site["site"], site["place"]) for site in json.loads(done.out)["sites"] if site["remedies"]}
    assert chosen == {(free["site"], f"{free['call']} {free['place']}") for free in frees}
    last = ffm("apply-remedy", "--site", 0, folder=folder)
    assert last.code == 1
    assert "there is no site 0" in last.err


def test_part_of_a_sequence_on_other_arguments(ffm: Ffm, folder: Path) -> None:
    done = ffm("apply-remedy", "--sequence", 1, "--runs", 1, "--json", "1", "6", "--", sample("als"), 3, folder=folder)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["command"][-1] == "3"
    assert any("not the measured one" in note for note in answer["notes"])
    assert 0 < sum(1 for site in answer["sites"] if site["remedies"]) <= 6


def test_a_program_without_any_planned_call_runs_only_once_each(ffm: Ffm, folder: Path, tmp_path: Path) -> None:
    script = f"echo >> {tmp_path}/runs; {sample('gaussian')} 16 > /dev/null"
    done = ffm("apply-remedy", "--all", "--runs", 3, "--", "/bin/sh", "-c", script, folder=folder)
    assert done.code == 1
    assert "none of the planned call stacks occurred" in done.err
    assert (tmp_path / "runs").read_text() == "\n\n"


@pytest.mark.thorough
def test_a_program_that_notices_is_an_error(ffm: Ffm, folder: Path, tmp_path: Path) -> None:
    """Only the corrected program's environment has the gate's variable. A link in the results is not followed."""
    (tmp_path / "precious").write_text("precious")
    (results,) = {path.parent for path in folder.rglob("analysis.json")}
    (results / "corrected.log").symlink_to(tmp_path / "precious")
    done = ffm(
        "apply-remedy", "--all", "--runs", 1, "--",
        "/bin/sh", "-c", f"{sample('als')} 1 > /dev/null; echo ${{FFM_GATE:+corrected}}",
        folder=folder,
    )  # fmt: skip
    assert done.code == 1
    assert "the corrected program does not behave like the original" in done.err
    kept = results / "corrected.log"
    assert kept.read_text() == "corrected\n"
    assert kept.name in done.err
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_that_only_the_program_as_it_is_writes_is_a_difference(ffm: Ffm, folder: Path) -> None:
    done = ffm(
        "apply-remedy", "--all", "--runs", 1, "--compare", "written", "--",
        "/bin/sh", "-c", f"{sample('als')} 1 > /dev/null; test $FFM_GATE || echo 1 > written",
        folder=folder,
    )  # fmt: skip
    assert done.code == 1
    assert "The corrected program did not write" in done.err


def test_a_program_that_crashes_by_itself_is_an_error(ffm: Ffm, folder: Path) -> None:
    crash = ("apply-remedy", "--all", "--runs", 1, "--", "/bin/sh", "-c", f"{sample('als')} 1; kill -SEGV $$")
    done = ffm(*crash, folder=folder)
    assert done.code == 1
    assert "was ended by the signal SIGSEGV without corrections" in done.err


def test_a_program_that_fails_without_corrections_is_an_error_at_once(ffm: Ffm, folder: Path) -> None:
    fails = ("--", "/bin/sh", "-c", f"echo >> began; {sample('als')} 1; echo no device; exit 3")
    done = ffm("apply-remedy", "--all", "--runs", 2, *fails, folder=folder)
    assert done.code == 1
    assert "/bin/sh exited with code 3 without corrections." in done.err
    assert 'uncorrected.log, and ends with "no device".' in done.err
    assert (folder / "began").read_text() == "\n"
    done = ffm("apply-remedy", "--all", "--runs", 1, "--accept-status", 3, *fails, folder=folder)
    assert done.code == 0, done.err


def test_everything_is_applied_unless_something_is_chosen(ffm: Ffm, folder: Path) -> None:
    done = ffm("apply-remedy", "--runs", 1, "--json", *ONE_ITERATION, folder=folder)
    assert done.code == 0, done.err
    applied = {count["remedy"] for count in json.loads(done.out)["remedies"]}
    assert {"cudaFree-hoist"} <= applied <= {"cudaFree-hoist", "skip-syncs", "async-transfers", "reuse-uploads"}


@pytest.mark.thorough
def test_memory_can_be_limited(ffm: Ffm, folder: Path) -> None:
    done = ffm("apply-remedy", "--memory", 0, "--runs", 1, "--json", *ONE_ITERATION, folder=folder)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert "staging_bytes" not in answer["memory"] and "cache_bytes" not in answer["memory"]
    assert answer["differences"] == []


def test_nothing_fit_is_an_error(ffm: Ffm, folder: Path) -> None:
    done = ffm("apply-remedy", "--skip-syncs", "--site", 12, folder=folder)
    assert done.code == 1
    assert "nothing to apply" in done.err
    assert ffm("apply-remedy", "--site", 9999, folder=folder).code == 1
