"""Programs with children and threads: each process leaves its own recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.reader import Recording, read_recordings
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from tests.conftest import Ffm

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def results(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("family") / "results"
    program = build_program(PROGRAMS / "family.cu")
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", folder, "--timeout", 60, "--", program)
        assert done.code == 0, done.err
    return folder


def synchronizations(recording: Recording) -> np.ndarray:
    index = load_catalogue()["cuCtxSynchronize"].index
    return recording.operations[recording.operations["function"] == index]


def test_the_child_that_uses_the_gpu_is_measured_too(results: Path) -> None:
    counts = sorted(len(synchronizations(one)) for one in read_recordings(results / "recordings" / "tracing"))
    assert counts == [7, 3 + 5]


def test_threads_are_told_apart(results: Path) -> None:
    parent = max(read_recordings(results / "recordings" / "tracing"), key=lambda one: len(synchronizations(one)))
    _, counts = np.unique(synchronizations(parent)["thread"], return_counts=True)
    assert sorted(counts.tolist()) == [3, 5]


def test_the_document_lists_the_processes(results: Path) -> None:
    run = read_owned(Tracing, results / "tracing.json")[0].run
    assert run is not None
    assert len(run.processes) == 2
    assert all(process.lost == 0 for process in run.processes)
    assert run.driver is not None and run.driver.wait_function is not None


def test_essential_functions_are_hooked_without_a_break_in_the_stack(results: Path) -> None:
    run = read_owned(Tracing, results / "tracing.json")[0].run
    assert run is not None
    how = {hook.function: hook.how for hook in run.hooks}
    for name in ("cuCtxSynchronize", "cuMemcpyHtoD_v2", "cuMemFree_v2", "cuLaunchKernel"):
        assert how[name] == "replace-fast"
