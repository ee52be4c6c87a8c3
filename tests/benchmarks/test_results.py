"""Benchmark results identify how they were measured, and what cannot be measured is reported."""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest

from ffm.errors import FfmError
from ffm.results.documents.run import ProcessRecord
from tests.measured_run import a_run
from tests.processes import run_to_end

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A file of `benchmarks/`, whose folder is on the path of each script."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module(request.param)


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("script", [name], indirect=True)


@of("accuracy")
def test_stage_2_runs_as_often_as_asked_for(script: ModuleType) -> None:
    for rounds in range(1, 20):
        for measurements in range(1, rounds + 1):
            measured = [number for number in range(rounds) if script.is_measured(number, rounds, measurements)]
            assert len(measured) == measurements and measured[0] == 0


@of("kinds")
def test_a_cost_whose_interval_contains_the_goal_is_neither_met_nor_missed(script: ModuleType) -> None:
    rounds = {"launch": [495.0 + step for step in range(9)], "memset": [600.0] * 9, "malloc_free": [900.0] * 9}
    rounds["event_query"] = [200.0, *[501.0] * 4, *[300.0] * 3, 900.0]
    times = {"bare": {kind: [100.0] * 9 for kind in rounds}, "tracing": rounds}
    assert script.with_verdict(times, "above") == ["memset"]
    assert script.with_verdict(times, "not known") == ["launch", "event_query"]
    (row,) = (row for row in script.rows_of(times) if row["kind"] == "launch")
    assert row["added"] == {"tracing": {"ns": 399.0, "interval_ns": [396.0, 402.0]}}


@of("common.twins")
def test_rows_keep_what_they_were_measured_under(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results" / "rows.json"
    script.write_rows(path, {"date": "first"}, [{"twin": "a", "s": 1}, {"twin": "b", "s": 1}])
    written = script.write_rows(path, {"date": "second"}, [{"twin": "b", "s": 2}])
    told = [(row["twin"], row["s"], row["measured_under"]["date"]) for row in written]
    assert told == [("a", 1, "first"), ("b", 2, "second")]
    assert json.loads(path.read_text())["rows"] == written


@of("common.twins")
def test_rows_of_which_nothing_is_told_are_not_kept(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"date": "old", "rows": [{"twin": "a"}]}))
    assert [row["twin"] for row in script.write_rows(path, {"date": "new"}, [{"twin": "b"}])] == ["b"]


@of("common.twins")
def test_a_sample_that_fails_is_named_and_the_others_go_on(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(name: str, folder: Path) -> list[dict[str, str]]:
        assert folder.is_dir()
        if name == "als":
            raise FfmError("It broke.")
        return [{"twin": name}]

    shown: list[object] = []
    rows, failed = script.measure_each(["als", "fft"], measure, shown.append)
    assert (rows, shown, failed) == ([{"twin": "fft"}], [[{"twin": "fft"}]], ["als"])
    assert script.exit_status(failed) == 1 and script.exit_status([]) == 0
    assert "als: It broke." in capsys.readouterr().err


@of("common.machine")
def test_the_head_tells_arguments_and_what_others_used(script: ModuleType) -> None:
    with script.watch_others() as others:
        assert others.cores is None and not others.quiet
    head = script.description(argparse.Namespace(rounds=3, output=Path("results")), others)
    assert head["arguments"] == {"rounds": 3, "output": "results"}
    assert head["others_cores"] == others.cores
    assert isinstance(others.cores, float)
    assert {"date", "machine", "versions"} <= set(head)


@of("common.pictures")
def test_no_picture_is_drawn_without_matplotlib(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert script.new_figure(1, 1) is None
    assert "--group bench" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["accuracy.py", "--rounds", "0"], "at least one round is needed"),
        (["accuracy.py", "--rounds", "3", "--measurements", "4"], "so 1 to 3 (--rounds) of them"),
        (["overhead.py", "--arguments", "5"], "--arguments needs exactly one --sample"),
    ],
)
def test_what_cannot_be_measured_is_refused(command: list[str], sentence: str) -> None:
    done = run_to_end([sys.executable, BENCHMARKS / command[0], *command[1:]], seconds=60)
    assert done.returncode == 2
    assert sentence in done.stderr


@of("common.gpu_defaults")
def test_times_are_those_of_the_virtual_gpu(script: ModuleType) -> None:
    foundation = BENCHMARKS.parent / "ffm" / "vgpu" / "driver" / "foundation"
    keys = re.findall(r'\{"([\w.]+)", &Configuration::(\w+),', (foundation / "configuration.cpp").read_text())
    values = dict(
        re.findall(r"^    double (\w+) = ([\d.']+);", (foundation / "configuration.h").read_text(), re.MULTILINE)
    )
    own = {key: float(values[member].replace("'", "")) for key, member in keys}
    assert {key: value for key, value in own.items() if key.startswith(("copy.", "call.", "start.", "wait."))} == {
        **script.TIMES,
        **script.SIZES,
    }


@of("common.perturbing")
def test_a_perturbed_gpu_has_each_time_between_half_and_twice(script: ModuleType) -> None:
    given = "call.free = 280  # long\nkernel.step = 4620 + 430 per thread\ndevices = 2\ncopy.staging_chunk = 2\n"
    drawn = dict(line.split(" = ") for line in script.perturbed(given, Random(1)).splitlines())
    assert (drawn["devices"], drawn["copy.staging_chunk"]) == ("2", "2")
    assert drawn["call.free"] != "280" and 140 <= float(drawn["call.free"]) <= 560
    assert 2 <= float(drawn["call.launch"]) <= 8
    whole, each = drawn["kernel.step"].removesuffix(" per thread").split(" + ")
    assert float(whole) / float(each) == pytest.approx(4620 / 430, rel=1e-3)
    assert (
        script.perturbed(given, Random(1)) == script.perturbed(given, Random(1)) != script.perturbed(given, Random(2))
    )


@of("common.changed_programs")
def test_what_is_changed_is_in_the_sources(script: ModuleType) -> None:
    """Also where the sources themselves have changed since."""
    for change in [*script.CHANGES, *script.random_changes(1)]:
        assert change.question.endswith(("=2x", "=gone")) and "{" not in change.question
        gpu = change.gpu or (script.SAMPLES / f"{change.program}.vgpu").read_text()
        assert (script.doubled(gpu, change.kernels) != gpu) == bool(change.kernels)
        for edits in (change.before, change.after):
            for file, texts in edits.items():
                folder = script.PROGRAMS if change.gpu else script.SAMPLES / change.program
                script.edited(change.source or (folder / file).read_text(), texts)


@of("common.changed_programs")
def test_a_slower_kernel_takes_twice_as_long(script: ModuleType) -> None:
    gpu = "call.free = 3\nkernel.step = 2.5 + 0.5 per thread\n"
    assert script.doubled(gpu, ("step",)) == "call.free = 3\nkernel.step = 5.000000 + 1.000000 per thread\n"
    with pytest.raises(FfmError, match="no kernel other"):
        script.doubled(gpu, ("other",))


@of("scale")
def test_sizes_that_were_measured_are_not_measured_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(program: Path, calls: int, folder: Path, console: object) -> list[object]:
        measured.append(calls)
        return [script.Cost("tracing", calls, calls / 1e6, 1.0, 1 << 20)]

    monkeypatch.setattr(script, "build", lambda name, place: place / name)
    monkeypatch.setattr(script, "measure", measure)
    monkeypatch.setattr(script, "measure_steps", lambda calls, results: [script.Step("reading", calls, 1, 1.0, 1.0)])
    monkeypatch.setattr(
        script, "measure_grown", lambda source, calls, folder, console: measure(source, calls, folder, console)
    )
    for largest, up_to in ((6, 0), (6, 8), (6, 8)):
        arguments = argparse.Namespace(smallest=5, largest=largest, up_to=up_to, keep=tmp_path)
        costs, steps, others = script.measure_all(arguments, tmp_path, None)
    assert measured == [10**5, 10**6, 10**7, 10**8]
    assert [cost.calls for cost in costs] == measured
    assert [step.calls for step in steps] == measured[:2]
    assert others.cores is not None
    assert script.slope_of(costs) == pytest.approx(1)
    assert script.slope_of(costs[:1]) is None


@of("overhead")
def test_programs_of_others_are_measured_if_they_ended_well_and_late(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    for name, bare in (
        ("brief", {"ok": True, "seconds": 0.2, "words": ["/x/brief"]}),
        ("failed", {"ok": False, "seconds": 9.0, "words": ["/x/failed"]}),
        ("long", {"ok": True, "seconds": 3.0, "words": ["/x/long", "5"]}),
        ("unbuilt", None),
    ):
        record = {"name": name, "build": {"folder": "/x"}} | ({} if bare is None else {"bare": bare})
        (tmp_path / "records" / f"{name}.json").write_text(json.dumps(record))
    assert script.strangers(tmp_path) == [("long", ["/x/long", "5"], Path("/x"))]


def test_numbers_that_differ_from_run_to_run_are_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "strangers")
    first_difference = import_module("outputs").first_difference
    assert first_difference("after 0.5\nsum 7\n", "after 0.8\nsum 7\n") == "line 1: 'after 0.5' became 'after 0.8'"
    assert first_difference("after 0.5\nsum 7\n", "after 0.8\nsum 7\n", "after 0.6\nsum 7\n") == ""
    assert first_difference("after 0.5\nsum 7\n", "after 0.8\nsum 8\n", "after 0.6\nsum 7\n").startswith("line 2")
    assert first_difference("steps=7 avg_ms=0.5\n", "steps=7 avg_ms=0.8\n") == ""
    assert first_difference("after 0.5\n", "before 0.8\n", "after 0.6\n") == "line 1: 'after 0.5' became 'before 0.8'"
    assert first_difference("after 0.5\n", "after 0.8\n", "after 0.6\nkilled\n") != ""


def test_a_program_that_counts_no_mismatches_passes_its_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "strangers")
    own_check = import_module("outputs").own_check
    assert own_check(0, "label mismatches=0  count mismatches=0  max 0.000e+00\n") == "passed"
    assert own_check(0, "mismatches CPU vs GPU = 0 (exact)\n") == "passed"
    assert own_check(0, "mismatches = 0.5 of 1\n") == "failed"
    assert own_check(0, "mismatches=0  wrong values: 3\n") == "failed"


def test_a_rate_may_have_more_groups_of_digits_than_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "strangers")
    first_difference = import_module("outputs").first_difference
    assert first_difference("Lookups/s: 463,639,820\n", "Lookups/s: 1,457,149,209\n") == ""
    assert first_difference("Lookups/s: 463,639,820\n", "Lookups/s: 463,639,820,\n") != ""
    assert first_difference("at 463,639\n", "at 1,463,639\n") != ""


def test_of_an_output_that_was_cut_off_only_whole_lines_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS / "strangers")
    processes = import_module("processes")
    assert processes.whole_lines("one\ntwo") == "one\ntwo"
    monkeypatch.setattr(processes, "LARGEST_OUTPUT", 7)
    assert processes.whole_lines("one\ntwo") == "one\n"


@of("common.grown")
def test_a_grown_run_has_its_operations_and_its_waits_as_often(script: ModuleType) -> None:
    process = ProcessRecord(process_id=1, executable="a", rank=None, recording="r", threads=1, operations=10, lost=0)
    run = a_run(wall_s=2.0, preparation_s=0.5, user_s=1.0, system_s=0.25, waiting_span_s=1.5, processes=[process])
    longer = script.longer(run, 3, 1.75)
    assert (longer.wall_s, longer.user_s, longer.system_s, longer.preparation_s) == (6.0, 3.0, 0.75, 0.5)
    assert longer.waiting_span_s == 1.5 + 2 * 1.75
    assert [one.operations for one in longer.processes] == [30]


@of("common.grown")
@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_a_column_that_stays_is_repeated_as_often_as_asked(script: ModuleType, tmp_path: Path, dtype: str) -> None:
    column = np.array([1, 255], dtype)
    assert script.long_column(column, 300, 0, tmp_path / "column").tolist() == [1, 255] * 300


@of("threads")
def test_threads_do_the_same_without_the_waits(script: ModuleType, tmp_path: Path) -> None:
    program = script.build_cuda("threads", tmp_path, *script.BUILT_WITH)
    for kind in script.KINDS:
        for streams in script.STREAMS:
            command = [str(program), kind, streams, "24"]
            before, after = (run_to_end([*command, *fixed], seconds=60) for fixed in ([], ["fixed"]))
            assert before.returncode == after.returncode == 0 and int(before.stdout) >= 15
            assert before.stdout == after.stdout
