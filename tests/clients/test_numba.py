"""Numba's CUDA target, a third-party client, on the virtual GPU; `build_numba.sh` installs it.

Where findings are tested, its kernels are compiled by NVIDIA's compilers, loaded and launched, and change nothing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffm.results.documents.analysis import Analysis
from tests.clients.scripts import BUILD, HERE, TARGETS, marked_line, measured, printed, virtual_gpu

ENVIRONMENT = Path(os.environ.get("FFM_NUMBA", BUILD / "numba" / "env"))
PYTHON = ENVIRONMENT / "bin" / "python"
PROGRAM = TARGETS / "numba_implicit.py"

pytestmark = pytest.mark.skipif(
    not list(ENVIRONMENT.glob("lib/python*/site-packages/numba_cuda")),
    reason="Numba's CUDA target is not installed: run tests/clients/build_numba.sh",
)


@pytest.fixture(autouse=True, scope="module")
def _virtual_gpu() -> Iterator[None]:
    with virtual_gpu("device_code.vgpu"):
        yield


@pytest.fixture(scope="module")
def analysis(_virtual_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return measured(PYTHON, PROGRAM, tmp_path_factory.mktemp("numba"))


def test_the_program_and_its_twin_print_the_same() -> None:
    assert printed(PYTHON, "numba_implicit", "numba_implicit_fixed") == ["0.000\n", "0.000\n"]


def test_arrays_that_each_launch_sends_again_are_found_at_the_launch(analysis: Analysis) -> None:
    sent_again = [site for site in analysis.sites if any(verdict.kind == "repeat" for verdict in site.transfer)]
    assert [(Path(site.file).name, site.line) for site in sent_again] == [(PROGRAM.name, marked_line(PROGRAM))]
    assert sent_again[0].call.startswith("cuMemcpyHtoD")
    assert sent_again[0].benefit.replay_s > 0


def test_stacks_lead_from_the_driver_to_the_script(analysis: Analysis) -> None:
    (launch,) = (site for site in analysis.sites if site.call.startswith("cuLaunchKernel"))
    functions = [frame.function for frame in analysis.stacks[launch.stack].frames if frame.python]
    assert functions[-1] == "<module>"
    assert "_Kernel.launch" in functions


@pytest.mark.skipif(
    bool(list(ENVIRONMENT.glob("lib/python*/site-packages/nvidia/cu*/lib/libnvJitLink.so*"))),
    reason="nvJitLink links kernels to machine code: uninstall nvidia-nvjitlink, as tests/clients/build_numba.sh does",
)
def test_its_kernels_compute() -> None:
    with virtual_gpu():
        done = subprocess.run(
            [PYTHON, HERE / "numba_kernels.py"],
            capture_output=True,
            text=True,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "VGPU_CONFIGURATION"},
        )
    assert done.stdout.splitlines() == ["stencil True", "sum 49995000"], done.stderr
