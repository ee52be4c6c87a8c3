"""Just-in-time compilation is reported, with its duration and what to build for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.compiling import compilation_notes, loading_seconds
from ffm.report.notes import sentence
from ffm.results.columnar.tables import read_table
from ffm.results.documents.measured import Tracing
from ffm.results.documents.notes import LoadedCode
from ffm.results.documents.stacks import Module
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request
from ffm.stages.tracing import run_tracing
from ffm.vgpu.paths import library_folder
from tests.driver.fat_binaries import CUBIN, PTX, container, library_with, source_with

CATALOGUE = load_catalogue()


def columns(**milliseconds: float) -> dict[str, np.ndarray]:
    return {
        "function": np.array([CATALOGUE[name].index for name in milliseconds], np.int32),
        "duration": np.array([time * 1e6 for time in milliseconds.values()], np.int64),
        "process": np.zeros(len(milliseconds), np.int64),
        "thread": np.zeros(len(milliseconds), np.int64),
    }


def tracing(library: Path | None, capability: int) -> Tracing:
    modules = [] if library is None else [Module(path=str(library), build_id="")]
    return Tracing(modules=modules, events="", host_memory="", probe_cost_ns=0.0, compute_capability=capability)


TABLE = columns(cuModuleLoadData=300.0, cuLibraryGetKernel=200.0, cuModuleUnload=1000.0, cuCtxSynchronize=4000.0)


def test_only_calls_that_load_code_are_counted() -> None:
    assert loading_seconds(TABLE) == pytest.approx(0.5)


@pytest.mark.parametrize("who", ["process", "thread"])
def test_code_that_is_loaded_at_the_same_time_takes_no_longer(who: str) -> None:
    ranks = columns(cuModuleLoadData=300.0, cuLibraryGetKernel=200.0, cuLibraryLoadData=100.0)
    assert loading_seconds(ranks | {who: np.array([0, 1, 0])}) == pytest.approx(0.4)


def test_the_note_says_how_long_and_what_to_build_for(tmp_path: Path) -> None:
    library = library_with(tmp_path, container((CUBIN, 75), (PTX, 75)))
    (note,) = map(sentence, compilation_notes(tracing(library, 90), TABLE, 5.0))
    assert "libdevice_code.so" in note
    assert "0.50 s, 10 % of the run" in note
    assert "machine code for sm_75 only" in note
    assert "nvcc -arch=sm_90" in note


def test_ready_code_gets_no_advice(tmp_path: Path) -> None:
    library = library_with(tmp_path, container((CUBIN, 90), (PTX, 90)))
    assert compilation_notes(tracing(library, 90), TABLE, 5.0) == [LoadedCode(seconds=0.5, wall_s=5.0)]
    assert compilation_notes(tracing(library, 90), TABLE, 500.0) == []


COMPILE_MS = 300


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], tuple[Tracing, Path]]:
    """Trace a program that contains device code and loads it, on a driver that compiles slowly."""
    configuration = tmp_path / "slow.vgpu"
    configuration.write_text(f"call.compile = {COMPILE_MS * 1000}\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(configuration))

    def measure(content: bytes) -> tuple[Tracing, Path]:
        source_with(tmp_path / "code.cpp", content)
        source = tmp_path / "program.cpp"
        source.write_text(
            """
            #include "code.cpp"
            extern "C" int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
            extern "C" int cuModuleLoadData(void **, const void *), cuCtxSynchronize();
            int main()
            {
                void *context, *module;
                return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
                       cuModuleLoadData(&module, device_code) || cuCtxSynchronize();
            }
            """
        )
        program, libraries = tmp_path / "program", library_folder()
        subprocess.run(
            ["g++", "-o", str(program), str(source), f"-L{libraries}", "-l:libcuda.so.1", f"-Wl,-rpath,{libraries}"],
            check=True,
        )
        folder = ResultsFolder(tmp_path / "results")
        folder.root.mkdir()
        request = Request([str(program)], folder, 60.0)
        run_baseline(request)
        return run_tracing(request), folder.root

    return measure


def test_a_program_whose_code_is_compiled_is_told_how_long_and_what_to_build_for(
    measured: Callable[[bytes], tuple[Tracing, Path]],
) -> None:
    document, folder = measured(container((PTX, 80)))
    assert document.compute_capability == 90
    table = read_table(folder / document.events)
    assert COMPILE_MS / 1e3 <= loading_seconds(table) < 10 * COMPILE_MS / 1e3
    (note,) = map(sentence, compilation_notes(document, table, 2.0))
    assert "device code of program" in note
    assert f"took {loading_seconds(table):.2f} s, " in note
    assert "PTX only" in note
    assert "nvcc -arch=sm_90" in note
