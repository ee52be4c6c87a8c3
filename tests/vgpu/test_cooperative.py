"""Cooperative launches, whose blocks wait for each other, and the limits that a kernel sets itself."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import Program, Status, download, kernel, quick_gpu, upload
from tests.vgpu.virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu

DECLARED = """
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
"""
# Each block adds its number to a word, waits for the others, and writes the sum that it finds; three times.
ROUNDS = """
    .reg .b32 %s<4>;
    .reg .b64 %g;
    .param .b32 scope; .param .b64 handle; .param .b64 given; .param .b32 flags; .param .b32 error;
    st.param.b32 [scope], 1;
    call (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %g, [handle];
    st.param.b64 [given], %g;
    st.param.b32 [flags], 0;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0;
again:
    setp.eq.u32 %p, %r0, 0;
    mul.wide.u32 %w0, %r2, 4; add.u64 %w0, %a0, %w0;
    @%p red.global.add.u32 [%w0], %r1;
    call (error), cudaCGSynchronize, (given, flags);
    ld.param.b32 %s1, [error];
    ld.global.u32 %s2, [%w0];
    mad.lo.u32 %r3, %r2, 512, %r1; mul.wide.u32 %w1, %r3, 4; add.u64 %w1, %a1, %w1;
    st.global.u32 [%w1], %s2;
    add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, 3;
    @%q bra again;
    @%p st.global.u32 [%a2], %s1;
"""


def launch_cooperatively(program: Program, blocks: int, threads: int, *arguments: Any) -> driver.CUresult:
    """Launch the kernel `k`, and return the launch's or the synchronization's error."""
    function = checked(driver.cuModuleGetFunction(program.module, b"k"))
    values = [ctypes.c_uint64(int(argument)) for argument in arguments]
    pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
    shape = (blocks, 1, 1, threads, 1, 1)
    status = driver.cuLaunchCooperativeKernel(function, *shape, 0, 0, ctypes.addressof(pointers))[0]
    return status if status != Status.CUDA_SUCCESS else driver.cuCtxSynchronize()[0]


def test_blocks_wait_for_each_other_in_a_cooperative_launch() -> None:
    sums, found, error = np.zeros(3, np.uint32), np.zeros((3, 512), np.uint32), np.ones(1, np.uint32)
    with quick_gpu():
        addresses = [upload(array) for array in (sums, found, error)]
        assert launch_cooperatively(Program(DECLARED + kernel("k", 3, ROUNDS)), 300, 64, *addresses) == 0
        found, error = download(addresses[1], found), download(addresses[2], error)
    assert (found[:, :300] == sum(range(300))).all()
    assert error[0] == 0


def test_blocks_of_an_ordinary_launch_cannot() -> None:
    error = np.zeros(1, np.uint32)
    with quick_gpu():
        addresses = [upload(array) for array in (np.zeros(3, np.uint32), np.zeros((3, 512), np.uint32), error)]
        assert Program(DECLARED + kernel("k", 3, ROUNDS)).launch("k", 2, 64, *addresses) == 0
        assert download(addresses[2], error)[0] != 0


def test_a_grid_that_does_not_fit_at_once_is_no_cooperative_one() -> None:
    with quick_gpu():
        assert checked(driver.cuDeviceGetAttribute(attribute("COOPERATIVE_LAUNCH"), 0)) == 1
        program = Program(kernel("k", 0, ".shared .b8 some[40000];"))
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        resident = checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 1024, 0))
        assert resident == 2
        at_once = resident * checked(driver.cuDeviceGetAttribute(attribute("MULTIPROCESSOR_COUNT"), 0))
        assert launch_cooperatively(program, at_once, 1024) == Status.CUDA_SUCCESS
        too_large = Status.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        assert launch_cooperatively(program, at_once + 1, 1024) == too_large


def test_as_much_shared_memory_is_available_as_leaves_room_for_the_blocks() -> None:
    with quick_gpu():
        program = Program(kernel("k", 0, ""))
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        available = driver.cuOccupancyAvailableDynamicSMemPerBlock
        assert checked(available(function, 1, 32)) == 48 << 10
        asked = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        assert driver.cuFuncSetAttribute(function, asked, 100 << 10)[0] == Status.CUDA_SUCCESS
        assert checked(available(function, 1, 32)) == 227 << 10
        assert checked(available(function, 4, 32)) == (228 // 4 - 1) << 10
        assert checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 32, 56 << 10)) == 4
        assert checked(available(function, 3, 1024)) == 0
        assert available(function, 0, 32)[0] == Status.CUDA_ERROR_INVALID_VALUE


@pytest.mark.parametrize(
    ("body", "thread_bytes", "shared", "limit", "grid", "block"),
    [
        ("", 0, 0, 0, 2, 1024),
        ("", 0, 0, 100, 32, 64),  # 2,048 threads; blocks of 96 leave 32 idle
        (".shared .b8 some[40000];", 0, 0, 0, 2, 1024),
        ("", 0, 113 << 10, 0, 2, 1024),
        ("", 1 << 10, 0, 0, 1, 224),  # 227 KiB hold 7 warps
    ],
)
def test_the_largest_block_size_with_which_most_threads_run(
    body: str, thread_bytes: int, shared: int, limit: int, grid: int, block: int
) -> None:
    with quick_gpu():
        program = Program(kernel("k", 0, body))
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        shared_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda threads: threads * thread_bytes)
        asked = driver.CUoccupancyB2DSize((thread_bytes and ctypes.cast(shared_of, ctypes.c_void_p).value) or 0)
        answer = checked(driver.cuOccupancyMaxPotentialBlockSize(function, asked, shared, limit))
        multiprocessors = checked(driver.cuDeviceGetAttribute(attribute("MULTIPROCESSOR_COUNT"), 0))
        assert tuple(answer) == (grid * multiprocessors, block)


def test_clusters_of_one_block_only_are_active() -> None:
    with quick_gpu():
        program = Program(kernel("k", 0, ""))
        function = checked(driver.cuModuleGetFunction(program.module, b"k"))
        config = driver.CUlaunchConfig()
        config.gridDimX, config.blockDimX = 8, 1024
        config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
        assert checked(driver.cuOccupancyMaxPotentialClusterSize(function, config)) == 1
        allowed = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        assert driver.cuFuncSetAttribute(function, allowed, 1)[0] == Status.CUDA_SUCCESS
        assert driver.cuOccupancyMaxActiveClusters(function, config)[0] == Status.CUDA_ERROR_INVALID_VALUE
        size = driver.CUlaunchAttribute()
        size.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size.value.clusterDim.x = size.value.clusterDim.y = size.value.clusterDim.z = 1
        config.attrs, config.numAttrs = [size], 1
        at_once = 2 * checked(driver.cuDeviceGetAttribute(attribute("MULTIPROCESSOR_COUNT"), 0))
        assert checked(driver.cuOccupancyMaxActiveClusters(function, config)) == at_once
        size.value.clusterDim.x = 2
        config.attrs = [size]
        too_large = Status.CUDA_ERROR_INVALID_CLUSTER_SIZE
        assert driver.cuOccupancyMaxActiveClusters(function, config)[0] == too_large


@pytest.mark.parametrize(("limit", "allowed", "refused"), [(".maxntid 64, 2, 1", 128, 129), (".reqntid 64", 64, 32)])
def test_blocks_are_as_large_as_the_kernel_was_compiled_for(limit: str, allowed: int, refused: int) -> None:
    with quick_gpu():
        program = Program(kernel("k", 0, "").replace(") {", f") {limit} {{", 1))
        assert program.launch("k", 1, allowed) == Status.CUDA_SUCCESS
        assert program.launch("k", 1, refused) == Status.CUDA_ERROR_INVALID_VALUE


def attribute(name: str) -> driver.CUdevice_attribute:
    """The driver's number for an attribute of the device."""
    found: driver.CUdevice_attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return found
