"""Device code with nothing to run: its kernels take their time and change nothing, if so configured (`device.code =
pass`).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from cuda.bindings import driver

from ffm.vgpu.paths import library_folder
from tests.vgpu.cubins import PTX, SCALE, container, cubin
from tests.vgpu.virtual_gpu import array_at, checked, context, load

CONFIGURATION = "device.code = pass\ncall.compile = 100\nkernel.scale = 30000\n"
KERNELS = {"scale": SCALE, "empty": []}
VARIABLES = {"counter": 40, "weights": 24}
PTX_KIND, CUBIN_KIND = 1, 2
PLAIN, ZSTANDARD, LZ4, ONE_ARCHITECTURE = 0x11, 0x8011, 0x2011, 0x100011
Status = driver.CUresult


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    path = tmp_path / "pass.vgpu"
    path.write_text(CONFIGURATION)
    return str(path)


def let_pass(configuration: str) -> None:
    """Make the driver of this process read the configuration; all tests here write the same one."""
    os.environ.setdefault("VGPU_CONFIGURATION", configuration)


def parameters(function: Any) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while (answer := driver.cuFuncGetParamInfo(function, len(found)))[0] == Status.CUDA_SUCCESS:
        found.append((int(answer[1]), int(answer[2])))
    return found


def check(module: Any) -> None:
    for name, places in KERNELS.items():
        assert parameters(checked(driver.cuModuleGetFunction(module, name.encode()))) == places
    function = checked(driver.cuModuleGetFunction(module, next(iter(KERNELS)).encode()))
    assert driver.cuFuncSetBlockShape(function, 32, 2, 1)[0] == Status.CUDA_SUCCESS
    assert driver.cuFuncSetBlockShape(function, 0, 1, 1)[0] == Status.CUDA_ERROR_INVALID_VALUE
    assert driver.cuModuleGetFunction(module, b"not_a_kernel")[0] == Status.CUDA_ERROR_NOT_FOUND
    for name, size in VARIABLES.items():
        (address, told), again = (checked(driver.cuModuleGetGlobal(module, name.encode())) for _ in range(2))
        assert (int(again[0]), again[1], told) == (int(address), size, size)
        assert not array_at(int(address), size).any()
    assert driver.cuModuleGetGlobal(module, b"scale")[0] == Status.CUDA_ERROR_NOT_FOUND


MACHINE_CODE = cubin(KERNELS, VARIABLES)
SIZE_OF_CODE = 16 + 8
LARGER_THAN_ITS_CONTAINER = (
    (whole := container((CUBIN_KIND, 90, PLAIN, MACHINE_CODE, 0)))[:SIZE_OF_CODE]
    + (1 << 40).to_bytes(8, "little")
    + whole[SIZE_OF_CODE + 8 :]
)


@pytest.mark.parametrize(
    "image",
    [
        MACHINE_CODE,
        PTX,
        container((PTX_KIND, 80, PLAIN, PTX, 0)),
        container((CUBIN_KIND, 90, PLAIN, MACHINE_CODE, 0), (PTX_KIND, 90, PLAIN, b"nothing", 0)),
        container((CUBIN_KIND, 90, PLAIN, cubin({}, {}), 0), (CUBIN_KIND, 90, ONE_ARCHITECTURE, MACHINE_CODE, 0)),
        container((CUBIN_KIND, 80, PLAIN, cubin({}, {}), 0), (PTX_KIND, 80, PLAIN, PTX, 0)),
    ],
    ids=["cubin", "PTX", "container of PTX", "container of both", "for this architecture only", "PTX for a later GPU"],
)
@pytest.mark.virtual_gpu
def test_kernels_and_variables_are_known(configuration: str, image: bytes) -> None:
    let_pass(configuration)
    with context():
        module = checked(driver.cuModuleLoadData(image))
        check(module)
        checked(driver.cuModuleUnload(module))


@pytest.mark.virtual_gpu
@pytest.mark.parametrize("image", [MACHINE_CODE, PTX], ids=["cubin", "PTX"])
def test_a_module_is_loaded_from_a_file(configuration: str, image: bytes, tmp_path: Path) -> None:
    let_pass(configuration)
    file = tmp_path / "module"
    with context():
        assert driver.cuModuleLoad(bytes(file))[0] == Status.CUDA_ERROR_FILE_NOT_FOUND
        file.write_bytes(b"")
        assert driver.cuModuleLoad(bytes(file))[0] == Status.CUDA_ERROR_INVALID_IMAGE
        file.write_bytes(image)
        module = checked(driver.cuModuleLoad(bytes(file)))
        check(module)
        checked(driver.cuModuleUnload(module))


@pytest.mark.parametrize(
    ("image", "error"),
    [
        (container((CUBIN_KIND, 100, PLAIN, MACHINE_CODE, 0)), Status.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (container((PTX_KIND, 100, PLAIN, PTX, 0)), Status.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (container((CUBIN_KIND, 90, ZSTANDARD, MACHINE_CODE, 10)), Status.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (container((CUBIN_KIND, 90, LZ4, MACHINE_CODE, 1 << 60)), Status.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (LARGER_THAN_ITS_CONTAINER, Status.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (cubin(KERNELS, {}, described=False), Status.CUDA_ERROR_INVALID_IMAGE),
        (cubin(KERNELS, {}, machine=62), Status.CUDA_ERROR_INVALID_IMAGE),
        (MACHINE_CODE[:40] + b"\xff" * 8 + MACHINE_CODE[48:], Status.CUDA_ERROR_INVALID_IMAGE),
        (PTX.replace(b".u32", b".what"), Status.CUDA_ERROR_INVALID_PTX),
    ],
    ids=[
        "later GPU",
        "later PTX",
        "not compressed",
        "huge",
        "beyond the end",
        "parameters unknown",
        "another machine's",
        "cut off",
        "bad PTX",
    ],
)
@pytest.mark.virtual_gpu
def test_code_that_cannot_be_read_is_refused(configuration: str, image: bytes, error: Any) -> None:
    let_pass(configuration)
    with context():
        assert driver.cuModuleLoadData(image)[0] == error


@pytest.mark.virtual_gpu
def test_a_kernel_takes_its_time_and_changes_nothing(configuration: str) -> None:
    let_pass(configuration)
    with context():
        library = checked(driver.cuLibraryLoadData(MACHINE_CODE, None, None, 0, None, None, 0))
        kernel = checked(driver.cuLibraryGetKernel(library, b"scale"))
        address, size = checked(driver.cuLibraryGetGlobal(library, b"counter"))
        given = (ctypes.c_uint64(int(address)), ctypes.c_uint32(10), (ctypes.c_uint8 * 24)(), ctypes.c_uint8(1))
        values = (ctypes.c_void_p * 4)(*map(ctypes.addressof, given))
        checked(driver.cuMemsetD8(address, 7, size))
        begun = time.perf_counter()
        checked(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(values), 0))
        runs = driver.cuStreamQuery(0)[0] == Status.CUDA_ERROR_NOT_READY
        assert runs or time.perf_counter() - begun >= 0.03
        checked(driver.cuCtxSynchronize())
        assert time.perf_counter() - begun >= 0.03
        assert (array_at(int(address), size) == 7).all()
        assert driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)[0] == Status.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuLibraryUnload(library))


class Extents(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


@pytest.mark.virtual_gpu
def test_the_runtime_launches_kernels_of_libraries_that_the_program_loads(configuration: str) -> None:
    let_pass(configuration)
    runtime = ctypes.CDLL(str(library_folder() / "libcudart.so.13"))
    launch = runtime.cudaLaunchKernel
    launch.argtypes = [ctypes.c_void_p, Extents, Extents, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    assert runtime.cudaLibraryLoadData(ctypes.byref(library), MACHINE_CODE, None, None, 0, None, None, 0) == 0
    assert runtime.cudaLibraryGetKernel(ctypes.byref(kernel), library, b"empty") == 0
    assert launch(kernel, Extents(1, 1, 1), Extents(32, 1, 1), None, 0, None) == 0
    assert runtime.cudaDeviceSynchronize() == 0
    assert runtime.cudaLibraryUnload(library) == 0
    invalid_device_function = 98
    assert launch(kernel, Extents(1, 1, 1), Extents(32, 1, 1), None, 0, None) == invalid_device_function


SOURCE = """
#include <cstdio>
__device__ int counter[10];
__constant__ double weights[3];
struct Box { double corners[3]; };
__global__ void scale(float *data, int count, Box box, bool flag)
{
    if (flag && count < 10)
        data[threadIdx.x] *= weights[0] + box.corners[1] + counter[count];
}
int main()
{
    double given[3] = {1, 2, 3}, found[3] = {};
    float *data;
    bool right = cudaMalloc(&data, 400) == cudaSuccess && cudaMemset(data, 0, 400) == cudaSuccess;
    scale<<<1, 32>>>(data, 5, Box{}, true);
    right = right && cudaGetLastError() == cudaSuccess;
    right = right && cudaMemcpyToSymbol(weights, given, sizeof given) == cudaSuccess;
    right = right && cudaMemcpyFromSymbol(found, weights, sizeof found) == cudaSuccess && found[2] == 3;
    std::printf("%d %s\\n", right, cudaGetErrorString(cudaDeviceSynchronize()));
}
"""


@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
@pytest.mark.parametrize("compression", ["none", "size", "speed"])
@pytest.mark.parametrize("code", ["arch=compute_90,code=sm_90", "arch=compute_80,code=compute_80"])
def test_what_nvcc_compiles_runs_as_far_as_the_host_goes(
    configuration: str, tmp_path: Path, code: str, compression: str
) -> None:
    program, source = tmp_path / "scale", tmp_path / "scale.cu"
    source.write_text(SOURCE)
    options = ["-cudart", "shared", "-gencode", code, f"--compress-mode={compression}"]
    subprocess.run(["nvcc", *options, "-o", program, source], check=True)
    portable = "compute_80" in code  # what runs by default
    for changed, first_word in (({"VGPU_CONFIGURATION": configuration}, "1"), ({}, "1" if portable else "0")):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder()), **changed}
        done = subprocess.run([program], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == f"{first_word} no error\n"
        advised = "`device.code = pass` for PyCUDA and Warp" in done.stderr and "VGPU_CONFIGURATION" in done.stderr
        assert advised == (first_word == "0")


@pytest.mark.virtual_gpu(fresh=True)
def test_a_word_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.vgpu"
    wrong.write_text("device.code = walk\n")
    os.environ["VGPU_CONFIGURATION"] = str(wrong)
    load()
    assert driver.cuInit(0)[0] != Status.CUDA_SUCCESS
