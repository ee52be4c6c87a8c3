"""CuPy and NVIDIA's `cuda.core`, third-party clients, on the virtual GPU; `build_cupy.sh` installs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from tests.clients.gating import gate
from tests.clients.scripts import BUILD, HERE, TARGETS, marked_line, measured, virtual_gpu
from tests.memory_keys import has_memory_keys

ENVIRONMENT = Path(os.environ.get("FFM_CUPY", BUILD / "cupy" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
PROBLEMS = HERE / "cupy_problems.py"
WORKERS = HERE / "cupy_workers.py"
STEPS = 10

pytestmark = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/cupy")),
    reason="CuPy is not installed for the virtual GPU: run tests/clients/build_cupy.sh",
)


@pytest.fixture(autouse=True)
def _virtual_gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@pytest.mark.parametrize("client", ["cupy_client.py", "core_client.py"])
def test_all_bytes_arrive(client: str) -> None:
    done = subprocess.run([PYTHON, HERE / client], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["right"], done.stderr


def test_device_code_is_refused_with_the_drivers_error() -> None:
    done = subprocess.run([PYTHON, HERE / "cupy_client.py"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:2] == ["CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_IMAGE"]


@pytest.mark.parametrize("accelerators", ["cub", ""])
def test_its_kernels_compute(accelerators: str) -> None:
    """Its kernels have to be PTX. CUB's have PTX for a newer GPU only, which stands in for their machine code."""
    script = HERE / "cupy_kernels.py"
    with virtual_gpu(CUPY_COMPILE_WITH_PTX="1", CUPY_ACCELERATORS=accelerators):
        done = subprocess.run([PYTHON, script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["elementwise True", "sum 499999500000"], done.stderr


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """The workers that NumPy's OpenBLAS starts, one for each further processor, sleep for the whole run."""
    with virtual_gpu():
        return measured(PYTHON, PROBLEMS, tmp_path_factory.mktemp("cupy"))


def line_of(text: str, script: Path = PROBLEMS) -> int:
    (line,) = (number for number, row in enumerate(script.read_text().splitlines(), 1) if text in row)
    return line


def sites_at(analysis: Analysis, text: str, script: Path = PROBLEMS) -> list[Site]:
    """Return the calls of the script's line with a text: their stacks lead through CuPy's own files."""
    line = line_of(text, script)
    return [
        site
        for site in analysis.sites
        if any(frame.line == line and frame.file.endswith(script.name) for frame in analysis.stacks[site.stack].frames)
    ]


def test_the_constant_is_sent_again_by_the_line_that_sends_it(analysis: Analysis) -> None:
    (upload,) = (site for site in sites_at(analysis, "cupy.asarray(constant)") if site.transfer)
    assert upload.count == STEPS
    assert (upload.file.endswith(PROBLEMS.name), upload.line) == (True, line_of("cupy.asarray(constant)"))
    assert [(verdict.kind, verdict.occurrences) for verdict in upload.transfer] == [("no-op", STEPS - 1)]
    assert upload.benefit.replay_s > 0


def test_the_wait_after_each_step_is_not_needed(analysis: Analysis) -> None:
    (wait,) = sites_at(analysis, "cupy.cuda.Device().synchronize()")
    assert wait.call == "cudaDeviceSynchronize"
    assert sum(verdict.occurrences for verdict in wait.synchronization) == STEPS
    assert {verdict.kind for verdict in wait.synchronization} <= {"unnecessary", "conditionally unnecessary"}


def test_the_wait_for_what_is_printed_is_needed(analysis: Analysis) -> None:
    (wait,) = (site for site in sites_at(analysis, 'print("sum"') if site.call == "cudaStreamSynchronize")
    assert wait.problem_count == 0


@pytest.mark.skipif(not has_memory_keys(), reason="there are no memory protection keys")
def test_waits_are_judged_beside_spinning_threads_and_other_programs(tmp_path: Path) -> None:
    """What is used after the second wait asks for that one, in each step; and for nothing else."""
    found = measured(PYTHON, WORKERS, tmp_path)
    used, unused = (
        next(site for site in sites_at(found, text, WORKERS) if site.call == "cudaStreamSynchronize")
        for text in (" used = state.get()", " unused = state.get()")
    )
    assert sum(verdict.occurrences for verdict in used.synchronization) == STEPS
    assert {verdict.kind for verdict in used.synchronization} <= {"unnecessary", "conditionally unnecessary"}
    assert unused.problem_count == 0


def test_a_table_that_is_sent_between_kernels_is_found(tmp_path: Path) -> None:
    """CuPy's kernels are compiled, loaded and launched, and change nothing."""
    target = TARGETS / "cupy_constant.py"
    with virtual_gpu("device_code.vgpu"):
        found = measured(PYTHON, target, tmp_path)
    (upload,) = (site for site in found.sites if site.transfer)
    assert (Path(upload.file).name, upload.line, upload.count) == (target.name, marked_line(target), 100)
    assert sum(verdict.occurrences for verdict in upload.transfer) >= 98
    assert sum(site.count for site in found.sites if site.kind == "launch") >= 200


def test_the_gate_names_the_lines_that_lead_to_waits(tmp_path: Path) -> None:
    found = gate(PYTHON, HERE / "cupy_gate.py", tmp_path)
    assert found.code == 1
    assert {(count, thread) for _, count, thread in found.at("on a thread")} == {(4, 2)}
    assert {count for _, count, _ in found.at("set")} == {6}
    assert {thread for _, _, thread in found.at("item")} == {1}
    assert [call for call, *_ in found.at("at the end")] == ["cudaDeviceSynchronize"]
    allowed = '[[allow]]\nfile = "cupy_gate.py"\nreason = "told"\n'
    assert gate(PYTHON, found.script, tmp_path, allowed).code == 0
