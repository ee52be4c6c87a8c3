"""Portions of a run that the stages measure: a window, and iterations that the program marks."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

from ffm.vgpu.paths import library_folder
from tests.conftest import Ffm
from tests.stage_commands import run_stages

TURNS, EVERY = 20, 5

PROGRAM = f"""
import ctypes

import ffm

driver = ctypes.CDLL({str(library_folder() / "libcuda.so.1")!r})
context, address = ctypes.c_void_p(), ctypes.c_uint64()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64))
for turn in range({TURNS}):
    with ffm.iteration("step"):
        driver.cuMemsetD8Async(address, ctypes.c_ubyte(0), ctypes.c_size_t(64), None)
        driver.cuCtxSynchronize()
    with ffm.iteration("rest"):
        pass
"""


ENDLESS = PROGRAM.replace(f"for turn in range({TURNS}):", "while True:")


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "steps.py"
    path.write_text(PROGRAM)
    return path


def test_of_a_sample_of_iterations_each_is_judged_between_its_neighbours(ffm: Ffm, script: Path) -> None:
    results = script.parent / "results"
    run_stages(ffm, [sys.executable, script], results, {"ranges": "step", "iterations": f"1/{EVERY}"})
    sampled = TURNS // EVERY
    analysis = orjson.loads((results / "analysis.json").read_bytes())
    portion = analysis["portion"]
    assert (portion["stretches"], portion["iterations"], portion["judged"]) == (sampled, TURNS, sampled)
    (site,) = (site for site in analysis["sites"] if site["function"] == "cuCtxSynchronize")
    assert site["count"] == 3 * sampled
    verdicts = {verdict["kind"]: verdict["occurrences"] for verdict in site["synchronization"]}
    assert verdicts == {"unnecessary": sampled, "not judged": 2 * sampled}
    assert f"{sampled} of {TURNS} iterations 'step', a sample" in " ".join(
        ffm("report", "--results", results).out.split()
    )
    refused = ffm("apply-remedy", "--results", results)
    assert (refused.code, refused.out) == (1, "")
    assert "portion of the run" in refused.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--window", "100..200"), "The window begins 100 s after"),
        (("--window", "1000000.. calls"), "made fewer than 1,000,000 calls"),
        (("--ranges", "epoch"), "marked no iterations 'epoch', so nothing was measured. It marked 'rest', 'step'"),
    ],
)
def test_a_portion_that_the_run_does_not_reach_is_told(
    ffm: Ffm, script: Path, words: tuple[str, ...], says: str
) -> None:
    done = ffm("run", "--quick", *words, sys.executable, script, folder=script.parent)
    assert (done.code, done.out) == (1, "")
    assert says in " ".join(done.err.split())


@pytest.mark.parametrize("portion", [{"ranges": "step", "iterations": "1/50"}, {"window": "0.1..0.2"}])
def test_a_portion_of_a_program_without_end_is_found_again(ffm: Ffm, endless: Path, portion: dict[str, str]) -> None:
    """The stages after the traced one go on until they have seen as much, however little of the time that took."""
    run_stages(ffm, [sys.executable, endless], endless.parent / "results", {"for": "0.4s", **portion})
    runs = {
        stage: orjson.loads((endless.parent / "results" / f"{stage}.json").read_bytes())["run"]
        for stage in ("tracing", "memory", "sync-use")
    }
    assert all(run["status"]["cut"] == "time" for run in runs.values())
    traced = runs["tracing"]["processes"][0]["operations"]
    assert all(run["processes"][0]["operations"] >= traced for run in runs.values())
    analysis = orjson.loads((endless.parent / "results" / "analysis.json").read_bytes())
    assert not analysis["portion"]["cut"]
    (site,) = (site for site in analysis["sites"] if site["function"] == "cuCtxSynchronize")
    verdicts = {verdict["kind"]: verdict["occurrences"] for verdict in site["synchronization"]}
    assert verdicts["unnecessary"] >= 1


def test_a_portion_that_begins_after_the_time_is_told(ffm: Ffm, endless: Path) -> None:
    words = ("--for", "0.2s", "--window", "100..200", sys.executable, endless)
    done = ffm("run", "--quick", *words, folder=endless.parent)
    assert (done.code, done.out) == (1, "")
    assert "The window begins 100 s after" in " ".join(done.err.split())
