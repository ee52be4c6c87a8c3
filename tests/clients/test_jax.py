"""JAX with its CUDA plug-in, as distributed by its developers, on the virtual GPU; `build_jax.sh` installs it.

There its kernels take their time and change nothing. XLA copies NumPy arguments on its own threads, whose stacks
contain no line of the script, and uses `cuLaunchHostFunc` to release its own lock instead of waiting in the driver.
What a script does is found at its line where XLA calls the driver on the script's thread, as it does around a host
callback.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site
from tests.clients.scripts import BUILD, TARGETS, marked_line, measured, printed, virtual_gpu

ENVIRONMENT = Path(os.environ.get("FFM_JAX", BUILD / "jax" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
PROGRAM = TARGETS / "jax_constant.py"

without_jax = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/nvidia/cu13/lib/libcudnn.so.9")),
    reason="JAX is not installed for the virtual GPU: run tests/clients/build_jax.sh",
)
without_device = pytest.mark.skipif(
    not any(Path(device).exists() for device in ("/dev/nvidia0", "/dev/nvidiactl")),
    reason="JAX uses a GPU only where there is a file /dev/nvidiactl: create an empty one",
)

pytestmark = [without_jax, without_device]


@pytest.fixture(autouse=True, scope="module")
def _virtual_gpu() -> Iterator[None]:
    with virtual_gpu(
        "device_code.vgpu",
        JAX_PLATFORMS="cuda,cpu",  # not only the CPU, should the GPU fail; callbacks need both
        JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",  # for libraries that are not there
        XLA_FLAGS="--xla_gpu_autotune_level=0",  # autotuning compares what kernels compute
    ):
        yield


@pytest.fixture(scope="module")
def analysis(_virtual_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return measured(PYTHON, PROGRAM, tmp_path_factory.mktemp("jax"), ordinary_memory=False)


def upload_at_mark(analysis: Analysis) -> Site:
    """Return the upload at the marked line that recurs; the first step, which compiles, has other stacks."""
    line = marked_line(PROGRAM)
    (upload,) = (
        site
        for site in analysis.sites
        if (site.call, site.file, site.line) == ("cudaMemcpyAsync", str(PROGRAM), line) and site.count > 1
    )
    return upload


def test_the_program_and_its_twin_print_the_same() -> None:
    assert printed(PYTHON, "jax_constant", "jax_constant_fixed") == ["0.000\n", "0.000\n"]


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
