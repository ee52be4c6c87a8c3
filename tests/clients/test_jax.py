"""JAX with its CUDA plug-in, as its developers distribute them, on the virtual GPU; `build_jax.sh` installs it.

Its kernels take their time and change nothing there. XLA copies NumPy arguments on threads of its own, whose stacks
name no line of the script, and lets `cuLaunchHostFunc` wake a lock of its own instead of waiting in the driver: what a
script does is found at its line where XLA calls the driver on the script's thread, as it does around a host callback.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffm.stages.analysis import run_analysis
from ffm.stages.analysis_document import Analysis, Site
from ffm.stages.folder import ResultsFolder
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import library_folder

HERE = Path(__file__).parent
ENVIRONMENT = Path(os.environ.get("FFM_JAX", HERE.parents[1] / "build" / "jax" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
TARGETS = HERE.parents[1] / "benchmarks" / "gpu" / "targets"
PROGRAM = TARGETS / "jax_constant.py"

pytestmark = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/nvidia/cu13/lib/libcudnn.so.9")),
    reason="JAX is not installed for the virtual GPU: run tests/clients/build_jax.sh",
)


@pytest.fixture(autouse=True, scope="module")
def _virtual_gpu() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_LIBRARY_PATH", str(library_folder()))
        environment.setenv("VGPU_CONFIGURATION", str(HERE / "device_code.vgpu"))
        environment.setenv("JAX_PLATFORMS", "cuda,cpu")  # not the CPU alone, should the GPU fail; callbacks need both
        environment.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # of libraries that are not there
        environment.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=0")  # which compares what kernels compute
        yield


@pytest.fixture(scope="module")
def analysis(_virtual_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = ResultsFolder(tmp_path_factory.mktemp("jax") / "results")
    request = Request([str(PYTHON), str(PROGRAM)], folder, 300.0, ordinary_memory=False)
    for stage in MEASURING_STAGES.values():
        stage(request)
    return run_analysis(folder)


def upload_at_mark(analysis: Analysis) -> Site:
    """The upload at the marked line that recurs; the first step, which compiles, has stacks of its own."""
    (line,) = (number for number, row in enumerate(PROGRAM.read_text().splitlines(), 1) if "# problem" in row)
    (upload,) = (
        site
        for site in analysis.sites
        if (site.call, site.file, site.line) == ("cudaMemcpyAsync", str(PROGRAM), line) and site.count > 1
    )
    return upload


def test_the_program_and_its_twin_print_the_same() -> None:
    printed = [
        subprocess.run([PYTHON, TARGETS / name], capture_output=True, text=True, check=True).stdout
        for name in ("jax_constant.py", "jax_constant_fixed.py")
    ]
    assert printed == ["0.000\n", "0.000\n"]


def test_a_table_that_a_callback_sends_again_is_found_at_its_line(analysis: Analysis) -> None:
    upload = upload_at_mark(analysis)
    assert sum(verdict.occurrences for verdict in upload.transfer) == upload.count == 99
    assert {verdict.kind for verdict in upload.transfer} <= {"no-op", "repeat", "copy"}
    assert upload.problem_count > 90


def test_stacks_lead_from_the_driver_through_xla_to_the_script(analysis: Analysis) -> None:
    upload = upload_at_mark(analysis)
    functions = [frame.function for frame in analysis.stacks[upload.stack].frames]
    assert any("xla::gpu::CustomCallThunk::ExecuteOnStream" in function for function in functions)
    assert functions.index("<module>") > functions.index("cudaMemcpyAsync")
