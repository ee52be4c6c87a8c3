"""NVIDIA's own runtime on the virtual driver, linked statically as nvcc does by default, and shared.

The runtime's wheel is the one that the project is built with (`nvidia-cuda-runtime`). Other versions were tried by
hand: 12.9, 13.0 and 13.5.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda.bindings import runtime

from ffm.vgpu.paths import library_folder
from tests.vgpu.runtime_programs import SHARED, STATIC, compile_program
from tests.vgpu.virtual_gpu import load

HERE = Path(__file__).resolve().parent

NVCC_PROGRAM = """
#include <cstdio>
__device__ int counter;
__global__ void touch(float *x) { x[threadIdx.x] = counter; }
int main()
{
    float *x;
    int value = 7, back = 0;
    cudaMalloc(&x, 4096);
    cudaMemcpyToSymbol(counter, &value, sizeof value);
    touch<<<4, 256>>>(x);
    cudaError_t launched = cudaGetLastError(), over = cudaDeviceSynchronize();
    cudaMemcpyFromSymbol(&back, counter, sizeof back);
    std::printf("%s %s %d\\n", cudaGetErrorName(launched), cudaGetErrorName(over), back);
}
"""

IMAGE_PROGRAM = """
#include <cstdio>
__global__ void twice(cudaTextureObject_t from, cudaSurfaceObject_t to)
{
    surf2Dwrite(2 * tex2D<float>(from, threadIdx.x + 0.5f, threadIdx.y + 0.5f), to, threadIdx.x * 4, threadIdx.y);
}
int main()
{
    float given[32], found[32];
    for (int i = 0; i < 32; ++i)
        given[i] = i;
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float>();
    cudaArray_t from, to;
    cudaMallocArray(&from, &texel, 8, 4);
    cudaMallocArray(&to, &texel, 8, 4, cudaArraySurfaceLoadStore);
    cudaMemcpy2DToArray(from, 0, 0, given, 32, 32, 4, cudaMemcpyHostToDevice);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = from;
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    resource.res.array.array = to;
    cudaCreateSurfaceObject(&surface, &resource);
    twice<<<1, dim3(8, 4)>>>(texture, surface);
    cudaMemcpy2DFromArray(found, 32, to, 0, 0, 32, 4, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < 32; ++i)
        wrong += found[i] != 2 * given[i];
    cudaDestroyTextureObject(texture);
    cudaDestroySurfaceObject(surface);
    cudaFreeArray(from);
    cudaFreeArray(to);
    std::printf("%s %d\\n", cudaGetErrorName(cudaGetLastError()), wrong);
}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program on the virtual driver, with a configuration."""

    def run(program: Path, configuration: str = "") -> subprocess.CompletedProcess[str]:
        file = tmp_path / "configuration"
        file.write_text(configuration)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder()), "VGPU_CONFIGURATION": str(file)}
        return subprocess.run(
            [str(program)], capture_output=True, text=True, timeout=60, check=False, env=environment
        )  # fmt: skip

    return run


@pytest.mark.parametrize("linked", [STATIC, SHARED], ids=["static", "shared"])
@pytest.mark.parametrize("flags", [[], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]], ids=["legacy", "per_thread"])
def test_runtime_answers_calls_of_every_family(
    run: Run, tmp_path: Path, linked: tuple[str, ...], flags: list[str]
) -> None:
    """5 seconds each, of which compiling takes 4."""
    program = tmp_path / "runtime_calls"
    compile_program(HERE / "programs" / "runtime_calls.cpp", program, linked, *flags)
    done = run(program, "log.refused = 1\n")
    assert (done.returncode, done.stdout) == (0, "all answered\n"), done.stdout + done.stderr
    assert "private table" not in done.stderr


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_program_of_nvcc_as_it_builds_by_default_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(NVCC_PROGRAM)
    subprocess.run(["nvcc", "-arch=sm_90", "-o", "program", "program.cu"], cwd=tmp_path, check=True)
    done = run(tmp_path / "program", "device.code = pass\n")
    assert done.stdout == "cudaSuccess cudaSuccess 7\n", done.stderr


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_program_of_nvcc_uses_arrays_textures_and_surfaces(run: Run, tmp_path: Path) -> None:
    """3 seconds, all of it for compiling."""
    (tmp_path / "program.cu").write_text(IMAGE_PROGRAM)
    subprocess.run(["nvcc", "-arch=sm_90", "-o", "program", "program.cu"], cwd=tmp_path, check=True)
    done = run(tmp_path / "program")
    assert done.stdout == "cudaSuccess 0\n", done.stderr


@pytest.mark.virtual_gpu(fresh=True)
def test_python_bindings_of_the_runtime_start() -> None:
    """They link it statically."""
    load()
    success = runtime.cudaError_t.cudaSuccess
    status, pointer = runtime.cudaMalloc(64)
    assert status == success
    assert runtime.cudaMemset(pointer, 3, 64) == (success,)
    fetched = bytearray(64)
    assert runtime.cudaMemcpy(fetched, pointer, 64, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost) == (success,)
    assert bytes(fetched) == b"\3" * 64


@pytest.mark.virtual_gpu(fresh=True)
def test_unknown_table_is_refused_and_named_on_request(tmp_path: Path) -> None:
    """Including an unknown entry of a known table."""
    configuration = tmp_path / "told.vgpu"
    configuration.write_text("log.refused = 1\n")
    os.environ["VGPU_CONFIGURATION"] = str(configuration)
    driver = load()
    assert driver.cuInit(0) == 0
    told = os.dup(2)
    try:
        with (tmp_path / "told").open("w+b") as file:
            os.dup2(file.fileno(), 2)
            table = ctypes.POINTER(ctypes.c_void_p)()
            assert driver.cuGetExportTable(ctypes.byref(table), bytes(range(16))) == 1
            assert not table
            known = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
            assert driver.cuGetExportTable(ctypes.byref(table), known) == 0
            assert table[0] == 13 * 8
            assert ctypes.CFUNCTYPE(ctypes.c_int)(table[3])() == 801
            os.dup2(told, 2)
            file.seek(0)
            lines = file.read().decode().splitlines()
    finally:
        os.dup2(told, 2)
        os.close(told)
    assert lines == [
        "vgpu: refused: the private table 000102030405060708090a0b0c0d0e0f",
        "vgpu: refused: place 3 of the private table 'runtime interface'",
    ]
