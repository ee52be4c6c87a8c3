"""Quick mode on programs: one traced run, and a gate that says nothing of what it cannot prove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from ffm.gate.baseline import FORMAT, VERSION
from tests.conftest import Ffm, Finished
from tests.pipeline.gated import BY_MAIN, BY_THREADS, PROGRAM


@dataclass(frozen=True)
class Traced:
    """A program that quick mode traced, in a folder."""

    folder: Path
    first: Finished


@pytest.fixture(scope="module")
def traced(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("quick")
    return Traced(folder, ffm("check", "--quick", "--format", "json", build_program(PROGRAM), folder=folder))


def test_every_wait_is_told_by_line_and_thread_and_none_is_called_unnecessary(ffm: Ffm, traced: Traced) -> None:
    assert traced.first.code == 1, traced.first.err
    found = orjson.loads(traced.first.out)
    where = [
        (Path(one["file"]).name, one["line"], one["call"], one["count"], one["rule"]) for one in found["violations"]
    ]
    assert sorted(where) == [
        ("gated.cu", BY_THREADS, "cudaDeviceSynchronize", 5, "wait"),
        ("gated.cu", BY_THREADS, "cudaDeviceSynchronize", 7, "wait"),
        ("gated.cu", BY_MAIN, "cudaDeviceSynchronize", 2, "wait"),
    ]
    assert len({one["thread"] for one in found["violations"]}) == 3
    assert not found["proved"]
    screens = [ffm(*words, folder=traced.folder).out for words in (["check"], ["report", "--all"], ["site", "4"])]
    assert not any("unnecessary synchronization" in screen or "is unnecessary" in screen for screen in screens)
    assert all("at most" in screen for screen in screens)


def test_the_report_ranks_waits_and_transfers(ffm: Ffm, traced: Traced) -> None:
    view = orjson.loads(ffm("report", "--all", "--json", folder=traced.folder).out)
    assert view["origin"] == "quick"
    savings = [one["saving_s"] for one in view["unproved"]]
    assert savings == sorted(savings, reverse=True)
    assert {one["where"]["call"] for one in view["unproved"]} == {"cudaDeviceSynchronize", "cudaMemsetAsync"}
    assert all(one["saving_s"] <= one["high_s"] for one in view["unproved"])


def test_a_baseline_keeps_what_the_other_way_of_measuring_found(ffm: Ffm, traced: Traced) -> None:
    baseline = traced.folder / "ffm-baseline.json"
    proved = {"call": "cudaFree", "problems": ["synchronization"], "functions": ["main"], "sites": 1, "lines": {}}
    baseline.write_bytes(orjson.dumps({"format": FORMAT, "version": VERSION, "known": [proved]}))
    assert ffm("check", folder=traced.folder).code == 1
    assert ffm("check", "--update", folder=traced.folder).out.endswith(": 3 sites that wait.\n")
    assert proved in orjson.loads(baseline.read_bytes())["known"]
    done = ffm("check", folder=traced.folder)
    assert (done.code, done.out) == (0, "gated passes: 0 sites against the rules, 3 in the baseline\n")
    baseline.unlink()


def test_results_of_quick_mode_are_compared_by_what_waits(ffm: Ffm, traced: Traced) -> None:
    quick = "results/gated-quick"
    view = orjson.loads(ffm("compare", quick, quick, "--json", folder=traced.folder).out)
    assert (view["proved"], view["gone"], view["come"]) == (False, [], [])
    assert view["same"] == len(orjson.loads(ffm("report", "--all", "--json", folder=traced.folder).out)["unproved"]) > 0


def test_limits_of_what_is_unnecessary_hold_if_even_the_most_is_within_them(ffm: Ffm, traced: Traced) -> None:
    config = traced.folder / "limits.toml"
    for percent, code, said in ((100, 0, "within the limits"), (0, 1, "unnecessary_percent may be up to")):
        config.write_text(f"[limits]\nunnecessary_percent = {percent}\n")
        done = ffm("check", "--config", config, folder=traced.folder)
        assert (done.code, said in done.out) == (code, True)


def test_iterations_are_counted_on_each_thread(ffm: Ffm, traced: Traced) -> None:
    """The threads make 5 and 7 turns, of which the first is warm-up; main makes too few to recur."""
    view = orjson.loads(ffm("check", "--iterations", "auto", "--format", "json", folder=traced.folder).out)
    found = [(one["thread"], one["iterations"], one["left_out"], one["waits"]) for one in view["iterations"]]
    one_each = {"least": 1.0, "median": 1.0, "most": 1.0}
    assert found == [(2, 4, 1, one_each), (3, 6, 1, one_each)]
    assert all(one["place"].endswith(f"gated.cu:{BY_THREADS - 1}") for one in view["iterations"])
    for how in (f"gated.cu:{BY_THREADS}@2", "work@2"):
        chosen = ffm("check", "--iterations", how, folder=traced.folder).out
        assert "thread 2: 1 iteration from " in chosen
        assert "thread 3: 2 iterations from " in chosen
        assert "(2 left out): 2 waits each, for" in chosen


@pytest.mark.parametrize(
    ("rules", "code", "said"),
    [
        ('[[allow]]\nfile = "gated.cu"\ncount_per_iteration = 1', 0, "gated passes"),
        (
            '[[allow]]\nfile = "gated.cu"\ncount_per_iteration = 0',
            1,
            "allowed are 0 in an iteration (told), and one has 1",
        ),
        ("[limits]\nwaits_per_iteration = 1", 0, "3 new sites within the limits"),
        ("[limits]\nwaits_per_iteration = 0", 1, "waits_per_iteration is 1, and 0 is allowed"),
    ],
)
def test_rules_can_count_by_the_iteration(ffm: Ffm, traced: Traced, rules: str, code: int, said: str) -> None:
    config = traced.folder / "rules.toml"
    config.write_text(rules + ('\nreason = "told"\n' if "allow" in rules else "\n"))
    done = ffm("check", "--config", config, folder=traced.folder)
    assert (done.code, said in done.out) == (code, True)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("nowhere", "no call of the driver is made from there"),
        (f"gated.cu:{BY_MAIN}@2", "is passed too seldom"),
        ("", "this is empty"),
    ],
)
def test_iterations_that_do_not_exist_end_with_two(ffm: Ffm, traced: Traced, how: str, said: str) -> None:
    done = ffm("check", "--iterations", how, folder=traced.folder)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_measurement_by_all_stages_is_not_replaced(ffm: Ffm, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "baseline.json").write_text("{}")
    done = ffm("run", "--quick", "--results", "full", "/bin/true", folder=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "holds a measurement by all stages" in done.err


def test_a_program_that_fails_by_itself_is_told_apart(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    done = ffm("check", "--quick", build_program(PROGRAM), 1, folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "exited with code 1" in done.err


def test_nothing_is_corrected_that_is_not_proved(ffm: Ffm, traced: Traced) -> None:
    done = ffm("apply-remedy", "--all", folder=traced.folder)
    assert (done.code, done.out) == (1, "")
    assert "one traced run, which proves nothing" in done.err


def test_quick_mode_measures(ffm: Ffm, tmp_path: Path) -> None:
    done = ffm("check", "--quick", folder=tmp_path)
    assert done.code == 2
    assert "name the program" in done.err


def test_copies_that_pageable_memory_keeps_from_being_asynchronous_are_caught(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    source = PROGRAM.with_name("staged.cu")
    done = ffm("check", "--quick", "--format", "json", build_program(source), folder=tmp_path)
    assert done.code == 1, done.err
    found = [one for one in orjson.loads(done.out)["violations"] if one["call"] == "cudaMemcpyAsync"]
    marked = {number for number, line in enumerate(source.read_text().splitlines(), 1) if "/* staged" in line}
    assert {one["line"] for one in found} == marked
    assert all("pageable memory" in one["reason"] for one in found)


@pytest.mark.parametrize("value", ["1", "0"])
def test_a_run_in_which_each_launch_waited_is_called_that(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
    done = ffm("run", "--quick", build_program(PROGRAM.with_name("staged.cu")), folder=tmp_path)
    assert done.code == 0, done.err
    report = ffm("report", folder=tmp_path)
    assert ("ran with CUDA_LAUNCH_BLOCKING" in report.out) == (value == "1")
