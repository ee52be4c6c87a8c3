"""Samples in C++ as nvcc compiles them: their kernels run as PTX, and compute what their host functions compute."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ffm.vgpu.paths import library_folder, sample

SCRIPT = Path(__file__).parents[2] / "ffm" / "vgpu" / "samples" / "build_nvcc.sh"
FEW = {"als": "2", "fft": "2", "flag": "5", "ibm": "1"}
"""The ones with the most arithmetic, and how much they do: nvcc takes seconds for each."""

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")


def built(name: str, folder: Path) -> Path:
    """Compile a sample to PTX; products and sums are rounded apart, as g++ does for the plain x86-64."""
    compiler = folder / "compiler"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("nvcc")} -fmad=false "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "NVCC": str(compiler), "CUDA_ARCH": "compute_90"}
    subprocess.run(["sh", str(SCRIPT), str(folder), name], env=environment, check=True)
    return folder / name


@pytest.mark.thorough
@pytest.mark.parametrize("name", FEW)
def test_kernels_give_bit_for_bit_what_their_host_functions_give(name: str, tmp_path: Path) -> None:
    quick = tmp_path / "quick.vgpu"
    quick.write_text("kernel.default = 0\ncall.compile = 0\n")
    environment = {**os.environ, "VGPU_CONFIGURATION": str(quick), "LD_LIBRARY_PATH": str(library_folder())}
    host, device = (
        subprocess.run([program, FEW[name]], capture_output=True, text=True, env=environment, check=True)
        for program in (sample(name), built(name, tmp_path))
    )
    assert "checksum" in device.stdout
    assert (device.stdout, device.stderr) == (host.stdout, "")
