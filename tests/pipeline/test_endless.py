"""Programs that do not end: they are measured for a time, or until ffm is interrupted, and ended politely."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from ffm.instrument.recording.progress import progress_of
from ffm.instrument.recording.reader import read_recordings
from tests.conftest import Begin, Ffm
from tests.stage_commands import run_stages

PROGRAM = Path(__file__).parent / "programs" / "server.cu"
STAGES = ("baseline", "tracing", "memory", "sync-use")
PATIENCE = 120.0
"""Seconds for what takes a few on an idle machine."""


@pytest.fixture(scope="module")
def server(build_program: Callable[[Path], Path]) -> Path:
    return build_program(PROGRAM)


def run_of(results: Path, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((results / f"{stage}.json").read_bytes())["run"]
    return found


def test_a_server_is_measured_by_all_stages_and_judged_but_for_its_end(ffm: Ffm, server: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run_stages(ffm, [server, "loop"], results, {"for": "200ms"})
    shown = ffm("report", "--results", results).out
    assert "then ended by ffm" in " ".join(shown.split())
    runs = {stage: run_of(results, stage) for stage in STAGES}
    assert all(run["status"]["cut"] == "time" and run["status"]["code"] == 0 for run in runs.values())
    assert runs["tracing"]["portion"]["measured_s"] >= 0.2
    traced = runs["tracing"]["processes"][0]["operations"]
    assert all(runs[stage]["processes"][0]["operations"] >= traced for stage in ("memory", "sync-use"))
    sites = orjson.loads((results / "analysis.json").read_bytes())["sites"]
    waits = [site["synchronization"] for site in sites if site["function"] == "cuCtxSynchronize"]
    most = [max(verdicts, key=lambda one: one["occurrences"])["kind"] for verdicts in waits]
    assert sorted(most) == ["required", "unnecessary", "unnecessary"]
    refused = ffm("apply-remedy", "--results", results)
    assert (refused.code, "portion of the run" in refused.err) == (1, True)


def test_a_program_that_ignores_sigterm_is_killed_and_its_recording_kept(
    ffm: Ffm, server: Path, tmp_path: Path
) -> None:
    done = ffm("run", "--quick", "--for", "0.2s", "--results", "results", server, "stubborn", folder=tmp_path)
    assert done.code == 0, done.err
    assert run_of(tmp_path / "results", "tracing")["status"]["signal"] == "SIGKILL"
    notes = orjson.loads((tmp_path / "results/analysis.json").read_bytes())["notes"]
    assert "KilledProgram" in [note["about"] for note in notes]


def test_all_processes_of_a_program_are_measured_and_ended(ffm: Ffm, server: Path, tmp_path: Path) -> None:
    run_stages(ffm, [server, "family"], tmp_path / "results", {"for": "0.3s"})
    for stage in STAGES:
        run = run_of(tmp_path / "results", stage)
        assert len(run["processes"]) == 2 and all(process["operations"] for process in run["processes"])
    sites = orjson.loads((tmp_path / "results/analysis.json").read_bytes())["sites"]
    assert any(verdict["kind"] == "unnecessary" for site in sites for verdict in site["synchronization"])


@pytest.mark.thorough
def test_a_program_that_ends_before_is_measured_whole(ffm: Ffm, server: Path, tmp_path: Path) -> None:
    run_stages(ffm, [server, "loop", "5"], tmp_path / "results", {"for": "10min"})
    for stage in STAGES:
        run = run_of(tmp_path / "results", stage)
        assert (run["status"]["cut"], run["portion"]) == (None, None)


@pytest.mark.parametrize("which", ["loop", "family"])
def test_the_last_seconds_are_kept_whole(ffm: Ffm, server: Path, tmp_path: Path, which: str) -> None:
    """`family` has two processes."""
    done = ffm("run", "--quick", "--last", "200ms", "--for", "2s", "--results", tmp_path, server, which)
    assert done.code == 0, done.err
    assert "Only the last 0.2 s of the run were kept." in " ".join(done.out.split())
    recordings = read_recordings(tmp_path / "recordings" / "tracing")
    for recording in recordings:
        numbers, starts = recording.operations["number"], recording.operations["start"].astype(int)
        assert (np.diff(numbers.astype(int)) == 1).all() and int(numbers[0]) == recording.dropped > 0
        assert recording.finished - 200_000_000 <= starts[0] and (np.diff(starts) > 0).all()
        assert (recording.samples.operation >= int(numbers[0])).all()
    portion = run_of(tmp_path, "tracing")["portion"]
    assert portion["dropped"] == sum(recording.dropped for recording in recordings)
    assert 0 < portion["measured_s"] <= 0.2


@pytest.mark.thorough
def test_the_last_seconds_of_a_program_that_is_killed_are_kept(ffm: Ffm, server: Path, tmp_path: Path) -> None:
    script = tmp_path / "crash"
    script.write_text(f"#!/bin/sh\n{server} crash 1500\nexit 0\n")
    script.chmod(0o755)
    done = ffm("run", "--quick", "--last", "200ms", "--results", tmp_path / "results", script)
    assert done.code == 0, done.err
    (recording,) = read_recordings(tmp_path / "results" / "recordings" / "tracing")
    assert (np.diff(recording.operations["number"].astype(int)) == 1).all() and recording.dropped > 0
    assert "Only the last 0.2 s" in " ".join(done.out.split())


@pytest.mark.thorough
def test_no_other_run_can_find_the_last_seconds_again(ffm: Ffm, server: Path, tmp_path: Path) -> None:
    for words in (("run",), ("stage", "tracing", "--window", "1..2")):
        assert ffm(*words, "--last", "1s", server, folder=tmp_path).code == 2
    words = ("--results", tmp_path, "--for", "1s")
    assert ffm("stage", "baseline", *words, "--", server, "loop").code == 0
    assert ffm("stage", "tracing", "--last", "100ms", *words, "--", server, "loop").code == 0
    refused = ffm("stage", "memory", *words, "--", server, "loop")
    assert refused.code == 1 and "no other run can find again" in refused.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-1", "not a time"),
        ("abc", "not a time"),
        ("", "not a time"),
        ("60 parsecs", "not a time"),
        ("1e99s", "not a time"),
        ("0", "choose from 0.01 s to 1,000,000 s"),
        ("999999h", "choose from 0.01 s to 1,000,000 s"),
    ],
)
def test_what_is_no_time_is_refused_before_anything_runs(
    ffm: Ffm, server: Path, tmp_path: Path, text: str, says: str
) -> None:
    for words in (("run",), ("stage", "tracing")):
        done = ffm(*words, f"--for={text}", server, folder=tmp_path)
        assert done.code == 2 and says in done.err
    assert not (tmp_path / "results").exists()


def test_what_was_measured_until_ctrl_c_is_kept_for_the_next_stages(
    ffm: Ffm, begin_ffm: Begin, server: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    for stage in STAGES:
        command = ("stage", stage, "--results", results, "--", server, "loop")
        if stage in ("memory", "sync-use"):  # they end when they have seen what the traced run did
            done = ffm(*command)
            assert done.code == 0, done.err
            continue
        measuring = begin_ffm(*command)
        end = time.monotonic() + PATIENCE
        folder = results / "recordings" / stage
        while not any(one.operations > 100 for one in progress_of(folder)) and time.monotonic() < end:
            time.sleep(0.02)
        measuring.tell(signal.SIGINT)
        done = measuring.wait(PATIENCE)
        assert done.code == 128 + signal.SIGINT
        assert f"stopped in the {stage} run" in done.err and str(results / f"{stage}.json") in done.err
        assert run_of(results, stage)["status"]["cut"] == "interruption"
    done = ffm("stage", "analysis", "--results", results)
    assert done.code == 0, done.err
