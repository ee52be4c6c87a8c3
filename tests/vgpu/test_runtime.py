"""A compiled program on libcudart, portable kernels and libvblas."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.vgpu.paths import library_folder
from tests.vgpu.runtime_programs import OURS, compile_program

HERE = Path(__file__).resolve().parent
CONFIGURATION = "kernel.slow_fill = 200000  # microseconds\nkernel.fill = 1 + 0.5 per thread\n"

Scene = Callable[..., list[str]]


@pytest.fixture(scope="module", params=[(), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)], ids=["legacy", "ptsz"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Run one scene of the program, built for either default stream, and return its lines."""
    folder = tmp_path_factory.mktemp("runtime")
    program = folder / "runtime"
    compile_program(HERE / "programs" / "runtime.cu", program, (*OURS, "-lvblas"), "-O1", *request.param)
    (folder / "runtime.vgpu").write_text(CONFIGURATION)

    def run(name: str, **environment: str) -> list[str]:
        done = subprocess.run(
            [str(program), name], capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return run


def test_kernels_run_over_the_whole_grid(scene: Scene) -> None:
    assert scene("kernels") == [
        "fill 1",
        "count 1440 77",
        "box 0 321 333",
        "block too large: cudaErrorInvalidConfiguration",
        "unregistered: cudaErrorInvalidDeviceFunction",
        "then: cudaSuccess",
    ]


def test_results_without_a_needed_wait_are_wrong(scene: Scene) -> None:
    assert scene("missing_wait") == ["before 1 after 2", "unordered 2"]


def test_kernels_reach_memory_that_is_protected_from_the_program(scene: Scene) -> None:
    assert scene("protected_pages") == ["protected 10 77"] * 2


def test_kernel_that_does_not_end_holds_its_own_stream_only(scene: Scene) -> None:
    assert scene("overlap") == ["while held 0 2, cudaErrorNotReady", "released 1"]


def test_closed_library_sums(scene: Scene) -> None:
    assert scene("library") == ["sum 0 1 1 0", "invalid 7 1", "destroyed 0"]


def test_device_works_again_after_a_reset(scene: Scene) -> None:
    assert scene("reset") == ["after reset 4"]


def test_child_forked_before_first_use_has_a_gpu_of_its_own(scene: Scene) -> None:
    assert scene("fork_before_use") == ["child cudaSuccess", "child ended 0", "parent goes on"]


def test_child_forked_after_use_is_refused(scene: Scene) -> None:
    expected = ["child cudaErrorInitializationError", "child ended 0", "parent goes on"]
    assert scene("fork_after_use") == expected


def test_named_configuration_comes_before_the_one_beside_the_program(scene: Scene, tmp_path: Path) -> None:
    configuration = tmp_path / "fast"
    configuration.write_text("kernel.slow_fill = 1\n")
    lines = scene("missing_wait", VGPU_CONFIGURATION=str(configuration))
    assert lines[0].endswith("after 2")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("call.free = 10\ncall.fre = 1\n", ":2: unknown key 'call.fre'"),
        ("copy.latency = fast\n", ":1: 'fast' is not a number from 0"),
        ("kernel.fill = 3 + 4\n", ":1: a kernel's duration is 'MICROSECONDS + NANOSECONDS per thread'"),
        ("device.memory = inf\n", ":1: 'inf' is not a number from 0"),
        ("call.launch = 1e300\n", ":1: '1e300' is not a number from 0"),
        ("kernel.fill = 1 + 1e300 per thread\n", ":1: a kernel's duration is"),
        ("kernel.fill = nan\n", ":1: a kernel's duration is 'MICROSECONDS + NANOSECONDS per thread', not 'nan'"),
        ("device.memory\n", ":1: expected 'key = value'"),
    ],
)
def test_wrong_configuration_is_named_and_refused(scene: Scene, tmp_path: Path, text: str, cause: str) -> None:
    configuration = tmp_path / "wrong"
    configuration.write_text(text)
    with pytest.raises(AssertionError, match="InvalidValue") as failure:
        scene("kernels", VGPU_CONFIGURATION=str(configuration))
    assert str(configuration) + cause in str(failure.value)


def test_configuration_that_cannot_be_read_is_refused(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="cannot be read"):
        scene("kernels", VGPU_CONFIGURATION=str(tmp_path / "absent"))


MANAGED_PROGRAM = """
#include <cstdio>
__managed__ int total[4] = {1, 2, 3, 4};
__device__ __managed__ float scale = 0.5f;
__global__ void add() { total[threadIdx.x] += 10 * scale; }
int main()
{
    total[0] = 5;
    scale = 2;
    add<<<1, 4>>>();
    cudaError_t over = cudaDeviceSynchronize();
    std::printf("%s %d %d %d %d\\n", cudaGetErrorName(over), total[0], total[1], total[2], total[3]);
    int back[4], given[4] = {6, 7, 8, 9};
    cudaMemcpyToSymbol(total, given, sizeof given);
    cudaError_t copied = cudaMemcpyFromSymbol(back, total, sizeof back);
    std::printf("%s %d %d\\n", cudaGetErrorName(copied), back[3], total[3]);
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float2>();
    std::printf("%d %d %d %d\\n", texel.x, texel.y, texel.z, texel.f == cudaChannelFormatKindFloat);
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_managed_variables_are_the_programs_and_the_gpus(tmp_path: Path) -> None:
    """4 seconds, all of it for compiling."""
    (tmp_path / "managed.cu").write_text(MANAGED_PROGRAM)
    subprocess.run(
        ["nvcc", "-arch=sm_90", "-cudart", "shared", "-o", "managed", "managed.cu"], cwd=tmp_path, check=True
    )  # fmt: skip
    done = subprocess.run(
        [tmp_path / "managed"], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(library_folder())},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["cudaSuccess 25 22 23 24", "cudaSuccess 9 9", "32 32 0 1"], done.stderr
