"""How long kernels of PTX take on the virtual GPU, against the same loops in C on one processor, in one run.

    python benchmarks/device_code.py --rounds 5

Needs nvcc and gcc. Both sides run on one processor, and the kernels' modelled time is zero. The processor's time for a
launch with its synchronization is compared with that for the loop: the smallest of all rounds, which take turns.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from ffm.vgpu.paths import library_folder

COUNT, SIDE, TILE = 1 << 22, 256, 16
WIDE, BODIES = 1024, 2048
KERNELS = """
extern "C" __global__ void saxpy(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2.5f * x[i] + y[i];
}
extern "C" __global__ void total(const float *x, float *out, int n)
{
    __shared__ float sums[256];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    sums[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(out, sums[0]);
}
extern "C" __global__ void exchanged(const float *x, float *out, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float part = x[i];
        for (int lanes = 16; lanes > 0; lanes /= 2)
            part += __shfl_down_sync(0xffffffff, part, lanes);
        sum += part;
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, sum);
}
extern "C" __global__ void product(const float *x, float *out, int side)
{
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < side; tile += 16) {
        left[threadIdx.y][threadIdx.x] = x[row * side + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = x[(tile + threadIdx.y) * side + column];
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    out[row * side + column] = sum;
}
extern "C" __global__ void smooth(const float *x, float *out, int side)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    const float *here = x + row * side + column;
    if (column > 0 && column < side - 1 && row > 0 && row < side - 1)
        out[row * side + column] = 0.25f * (here[-1] + here[1] + here[-side] + here[side]);
}
extern "C" __global__ void bodies(const float4 *bodies, float4 *pulls, int count)
{
    __shared__ float4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < count; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 256; ++j) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float near = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), pull = tile[j].w * near * near * near;
            x += dx * pull, y += dy * pull, z += dz * pull;
        }
        __syncthreads();
    }
    pulls[i] = make_float4(x, y, z, 0);
}
extern "C" __global__ void mandelbrot(const float *, float *out, int side)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, turn = 0;
    float a = 3.0f * column / side - 2, b = 3.0f * row / side - 1.5f, x = 0, y = 0;
    for (; turn < 256 && x * x + y * y < 4; ++turn) {
        float next = x * x - y * y + a;
        y = 2 * x * y + b, x = next;
    }
    out[row * side + column] = turn;
}
__device__ float normal(float d)
{
    float k = 1 / (1 + 0.2316419f * fabsf(d));
    float tail = 0.3989423f * expf(-0.5f * d * d) * k * (0.3193815f + k * (-0.3565638f + k * (1.781478f
                 + k * (-1.821256f + k * 1.330274f))));
    return d > 0 ? 1 - tail : tail;
}
extern "C" __global__ void options(const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float price = 5 + 25 * x[i], strike = 1 + 99 * x[n - 1 - i], years = 0.25f + 9 * x[i], root = sqrtf(years);
    float d = (logf(price / strike) + 0.065f * years) / (0.3f * root);
    out[i] = price * normal(d) - strike * expf(-0.02f * years) * normal(d - 0.3f * root);
}
"""
LOOPS = """
#include <math.h>
void saxpy(const float *x, float *y, int n) { for (int i = 0; i < n; ++i) y[i] = 2.5f * x[i] + y[i]; }
void total(const float *x, float *out, int n) { float sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; *out += sum; }
void exchanged(const float *x, float *out, int n) { total(x, out, n); }
void product(const float *x, float *out, int side)
{
    for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column) {
            float sum = 0;
            for (int k = 0; k < side; ++k)
                sum += x[row * side + k] * x[k * side + column];
            out[row * side + column] = sum;
        }
}
void smooth(const float *x, float *out, int side)
{
    for (int row = 1; row < side - 1; ++row)
        for (int column = 1; column < side - 1; ++column) {
            const float *here = x + row * side + column;
            out[row * side + column] = 0.25f * (here[-1] + here[1] + here[-side] + here[side]);
        }
}
typedef struct { float x, y, z, w; } float4;
void bodies(const float4 *bodies, float4 *pulls, int count)
{
    for (int i = 0; i < count; ++i) {
        float4 own = bodies[i];
        float x = 0, y = 0, z = 0;
        for (int j = 0; j < count; ++j) {
            float dx = bodies[j].x - own.x, dy = bodies[j].y - own.y, dz = bodies[j].z - own.z;
            float near = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), pull = bodies[j].w * near * near * near;
            x += dx * pull, y += dy * pull, z += dz * pull;
        }
        pulls[i] = (float4){x, y, z, 0};
    }
}
void mandelbrot(const float *x_, float *out, int side)
{
    for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column) {
            int turn = 0;
            float a = 3.0f * column / side - 2, b = 3.0f * row / side - 1.5f, x = 0, y = 0;
            for (; turn < 256 && x * x + y * y < 4; ++turn) {
                float next = x * x - y * y + a;
                y = 2 * x * y + b, x = next;
            }
            out[row * side + column] = turn;
        }
}
static float normal(float d)
{
    float k = 1 / (1 + 0.2316419f * fabsf(d));
    float tail = 0.3989423f * expf(-0.5f * d * d) * k * (0.3193815f + k * (-0.3565638f + k * (1.781478f
                 + k * (-1.821256f + k * 1.330274f))));
    return d > 0 ? 1 - tail : tail;
}
void options(const float *x, float *out, int n)
{
    for (int i = 0; i < n; ++i) {
        float price = 5 + 25 * x[i], strike = 1 + 99 * x[n - 1 - i], years = 0.25f + 9 * x[i], root = sqrtf(years);
        float d = (logf(price / strike) + 0.065f * years) / (0.3f * root);
        out[i] = price * normal(d) - strike * expf(-0.02f * years) * normal(d - 0.3f * root);
    }
}
"""
SHAPES = {
    "saxpy": ((COUNT // 256, 1), (256, 1), COUNT),
    "total": ((64, 1), (256, 1), COUNT),
    "exchanged": ((64, 1), (256, 1), COUNT),
    "product": ((SIDE // TILE, SIDE // TILE), (TILE, TILE), SIDE),
    "smooth": ((WIDE // 256, WIDE), (256, 1), WIDE),
    "bodies": ((BODIES // 256, 1), (256, 1), BODIES),
    "mandelbrot": ((WIDE // 256, WIDE), (256, 1), WIDE),
    "options": ((COUNT // 256, 1), (256, 1), COUNT),
}


def build(folder: Path) -> tuple[bytes, ctypes.CDLL]:
    """Compile both sides: the PTX, and a library of the loops."""
    (folder / "kernels.cu").write_text(KERNELS)
    (folder / "loops.c").write_text(LOOPS)
    (folder / "quick.vgpu").write_text("device.cache = none\nkernel.default = 0\ncall.compile = 0\n")
    os.environ["VGPU_CONFIGURATION"] = str(folder / "quick.vgpu")
    subprocess.run(["nvcc", "-arch=sm_90", "-ptx", "-o", "kernels.ptx", "kernels.cu"], check=True, cwd=folder)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", "loops.so", "loops.c", "-lm"], check=True, cwd=folder)
    return (folder / "kernels.ptx").read_bytes() + b"\0", ctypes.CDLL(str(folder / "loops.so"))


def checked(status: int) -> None:
    """Stop at a call that failed."""
    if status != 0:
        raise click.ClickException(f"the driver returned {status}")


class Gpu:
    """The virtual GPU, with a module and two arrays in its memory."""

    def __init__(self, code: bytes, values: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        """Load the code, upload the values, and allocate as much for results."""
        self.driver = ctypes.CDLL(str(library_folder() / "libcuda.so.1"))
        context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        self.values, self.results = ctypes.c_uint64(), ctypes.c_uint64()
        size = ctypes.c_size_t(values.nbytes)
        checked(self.driver.cuInit(0))
        checked(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        checked(self.driver.cuCtxSetCurrent(context))
        checked(self.driver.cuModuleLoadData(ctypes.byref(self.module), code))
        for address in (self.values, self.results):
            checked(self.driver.cuMemAlloc_v2(ctypes.byref(address), size))
            checked(self.driver.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), size))

    def run(self, name: str) -> None:
        """Run one kernel to its end."""
        (grid, block, count) = SHAPES[name]
        function, number = ctypes.c_void_p(), ctypes.c_int(count)
        checked(self.driver.cuModuleGetFunction(ctypes.byref(function), self.module, name.encode()))
        given = [ctypes.addressof(self.values), ctypes.addressof(self.results), ctypes.addressof(number)]
        checked(self.driver.cuLaunchKernel(function, *grid, 1, *block, 1, 0, None, (ctypes.c_void_p * 3)(*given), None))
        checked(self.driver.cuCtxSynchronize())


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Return the processor time of the work, in all threads: what else runs on the machine hardly counts."""
    begun = time.process_time()
    work(*arguments)
    return time.process_time() - begun


@click.command()
@click.option("--rounds", default=5, show_default=True, help="How often each side runs.")
def main(rounds: int) -> None:
    """Print both sides' times and their ratio for each kernel."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    values = np.random.default_rng(1).random(COUNT, np.float32)
    results = values.copy()
    with tempfile.TemporaryDirectory() as folder:
        code, loops = build(Path(folder))
        gpu = Gpu(code, values)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (values, results)]
        for name, (_, _, count) in SHAPES.items():
            gpu.run(name)  # compiles it
            loop = getattr(loops, name)
            pairs = [(seconds(gpu.run, name), seconds(loop, *pointers, count)) for _ in range(rounds)]
            kernel, plain = (min(times) for times in zip(*pairs, strict=True))
            click.echo(f"{name:10} {kernel * 1e3:8.2f} ms, in C {plain * 1e3:8.2f} ms: {kernel / plain:.1f} times")


if __name__ == "__main__":
    main()
