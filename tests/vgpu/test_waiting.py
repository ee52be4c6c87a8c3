"""Which driver calls wait for the GPU (CUDA Driver API, "API synchronization behavior"; ffm/vgpu/README.md)."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import PAGE, Held, Pinned, array_at, checked, context, load, waits

pytestmark = pytest.mark.virtual_gpu

SIZE = 4096
MANAGED = 1  # CU_MEM_ATTACH_GLOBAL
NON_BLOCKING = 1


class Scene:
    """Memory of every kind, and a stream whose work is held back."""

    def __init__(self) -> None:
        self.device = checked(driver.cuMemAlloc(SIZE))
        self.other_device = checked(driver.cuMemAlloc(SIZE))
        self.pinned = Pinned(SIZE)
        self.managed = checked(driver.cuMemAllocManaged(SIZE, MANAGED))
        self.pageable = np.zeros(SIZE, np.uint8)
        self.mapping = mmap.mmap(-1, PAGE)
        self.registered = ctypes.addressof(ctypes.c_char.from_buffer(self.mapping))
        checked(driver.cuMemHostRegister(self.registered, PAGE, 0))
        self.image = (ctypes.c_uint32 * 20)(0x464C457F, *bytes(15), 0x55504776, 3)
        self.module = checked(driver.cuModuleLoadData(ctypes.addressof(self.image)))
        self.stream = checked(driver.cuStreamCreate(0))
        self.free_stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        self.event = checked(driver.cuEventCreate(0))
        self.held = Held(self.stream)
        checked(driver.cuEventRecord(self.event, self.stream))

    def host(self) -> int:
        return self.pageable.ctypes.data


def box(scene: Scene) -> driver.CUDA_MEMCPY2D:
    """Eight rows of 64 bytes, from the device to pageable memory."""
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcDevice = scene.device
    copy.srcPitch = 64
    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    copy.dstHost = scene.host()
    copy.dstPitch = 64
    copy.WidthInBytes = 64
    copy.Height = 8
    return copy


def private_calls() -> Any:
    """The table that closed libraries use, as an array of addresses."""
    library = load()
    identity = (ctypes.c_char * 16)(*b"vgpu-private-t1\0")
    table = ctypes.POINTER(ctypes.c_void_p)()
    assert library.cuGetExportTable(ctypes.byref(table), identity) == 0
    return table


def private_fetch(scene: Scene) -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)(
        private_calls()[1]
    )
    assert function(scene.host(), int(scene.device), 4, int(scene.stream)) == 0


def private_is_idle(scene: Scene) -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(private_calls()[3])
    idle = ctypes.c_int(1)
    assert function(int(scene.stream), ctypes.byref(idle)) == 0
    assert idle.value == 0


WAITING: dict[str, Callable[[Scene], Any]] = {
    "cuCtxSynchronize": lambda s: checked(driver.cuCtxSynchronize()),
    "cuStreamSynchronize": lambda s: checked(driver.cuStreamSynchronize(s.stream)),
    "cuStreamSynchronize(legacy)": lambda s: checked(driver.cuStreamSynchronize(0)),
    "cuEventSynchronize": lambda s: checked(driver.cuEventSynchronize(s.event)),
    "cuMemcpyDtoH(pageable)": lambda s: checked(driver.cuMemcpyDtoH(s.host(), s.device, SIZE)),
    "cuMemcpyDtoH(pinned)": lambda s: checked(driver.cuMemcpyDtoH(s.pinned.address, s.device, SIZE)),
    "cuMemcpyDtoHAsync(pageable)": lambda s: checked(driver.cuMemcpyDtoHAsync(s.host(), s.device, SIZE, s.stream)),
    "cuMemcpyHtoD(pageable)": lambda s: checked(driver.cuMemcpyHtoD(s.device, s.host(), SIZE)),
    "cuMemcpyHtoD(pinned)": lambda s: checked(driver.cuMemcpyHtoD(s.device, s.pinned.address, SIZE)),
    "cuMemcpyHtoD(registered)": lambda s: checked(driver.cuMemcpyHtoD(s.device, s.registered, SIZE)),
    "cuMemcpy(device to pageable)": lambda s: checked(driver.cuMemcpy(s.host(), s.device, SIZE)),
    "cuMemcpy(pinned to pageable)": lambda s: checked(driver.cuMemcpy(s.host(), s.pinned.address, SIZE)),
    "cuMemcpy2D": lambda s: checked(driver.cuMemcpy2D(box(s))),
    "cuMemsetD8(managed)": lambda s: checked(driver.cuMemsetD8(s.managed, 1, SIZE)),
    "cuMemsetD32(pinned)": lambda s: checked(driver.cuMemsetD32(s.pinned.address, 1, SIZE // 4)),
    "cuMemFree": lambda s: checked(driver.cuMemFree(s.other_device)),
    "cuMemFree(managed)": lambda s: checked(driver.cuMemFree(s.managed)),
    "cuMemFreeHost": lambda s: checked(driver.cuMemFreeHost(s.pinned.address)),
    "cuMemHostUnregister": lambda s: checked(driver.cuMemHostUnregister(s.registered)),
    "cuModuleLoadData": lambda s: checked(driver.cuModuleLoadData(ctypes.addressof(s.image))),
    "cuModuleUnload": lambda s: checked(driver.cuModuleUnload(s.module)),
    "private fetch": private_fetch,
}

NOT_WAITING: dict[str, Callable[[Scene], Any]] = {
    "cuMemcpyHtoDAsync(pageable)": lambda s: checked(driver.cuMemcpyHtoDAsync(s.device, s.host(), SIZE, s.stream)),
    "cuMemcpyHtoDAsync(pinned)": lambda s: checked(
        driver.cuMemcpyHtoDAsync(s.device, s.pinned.address, SIZE, s.stream)
    ),
    "cuMemcpyDtoHAsync(pinned)": lambda s: checked(
        driver.cuMemcpyDtoHAsync(s.pinned.address, s.device, SIZE, s.stream)
    ),
    "cuMemcpyDtoHAsync(registered)": lambda s: checked(
        driver.cuMemcpyDtoHAsync(s.registered, s.device, SIZE, s.stream)
    ),
    "cuMemcpyDtoD": lambda s: checked(driver.cuMemcpyDtoD(s.other_device, s.device, SIZE)),
    "cuMemcpyDtoDAsync": lambda s: checked(driver.cuMemcpyDtoDAsync(s.other_device, s.device, SIZE, s.stream)),
    "cuMemsetD8(device)": lambda s: checked(driver.cuMemsetD8(s.device, 1, SIZE)),
    "cuMemsetD8Async(managed)": lambda s: checked(driver.cuMemsetD8Async(s.managed, 1, SIZE, s.stream)),
    "cuMemAlloc": lambda s: checked(driver.cuMemAlloc(SIZE)),
    "cuMemAllocHost": lambda s: checked(driver.cuMemAllocHost(SIZE)),
    "cuMemAllocAsync": lambda s: checked(driver.cuMemAllocAsync(SIZE, s.stream)),
    "cuMemFreeAsync": lambda s: checked(driver.cuMemFreeAsync(s.other_device, s.stream)),
    "cuMemFree(0)": lambda s: checked(driver.cuMemFree(0)),
    "cuEventRecord": lambda s: checked(driver.cuEventRecord(s.event, s.stream)),
    "cuStreamWaitEvent": lambda s: checked(driver.cuStreamWaitEvent(s.free_stream, s.event, 0)),
    "cuStreamWriteValue32": lambda s: checked(driver.cuStreamWriteValue32(s.stream, s.device, 1, 0)),
    "cuStreamDestroy": lambda s: checked(driver.cuStreamDestroy(s.stream)),
    "cuStreamSynchronize(another, non-blocking)": lambda s: checked(driver.cuStreamSynchronize(s.free_stream)),
    "private question": private_is_idle,
}


@pytest.mark.parametrize("name", WAITING)
def test_call_waits_for_the_work_before_it(name: str) -> None:
    with context() as made:
        scene = Scene()
        assert waits(made, scene.held, lambda: WAITING[name](scene))


@pytest.mark.parametrize("name", NOT_WAITING)
def test_call_returns_while_the_gpu_is_busy(name: str) -> None:
    with context():
        scene = Scene()
        NOT_WAITING[name](scene)
        assert not scene.held.is_over()
        scene.held.release()
        checked(driver.cuCtxSynchronize())


def test_destroying_a_context_waits_for_its_work() -> None:
    with context() as outer:
        inner = checked(driver.cuCtxCreate(None, 0, 0))
        held = Held(checked(driver.cuStreamCreate(0)))
        checked(driver.cuCtxPopCurrent())
        assert waits(outer, held, lambda: checked(driver.cuCtxDestroy(inner)))


def test_queries_tell_that_work_is_left_and_do_not_wait() -> None:
    not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
    with context():
        scene = Scene()
        assert driver.cuStreamQuery(scene.stream)[0] == not_ready
        assert driver.cuStreamQuery(0)[0] == not_ready
        assert driver.cuEventQuery(scene.event)[0] == not_ready
        checked(driver.cuStreamQuery(scene.free_stream))
        scene.held.release()
        checked(driver.cuCtxSynchronize())
        checked(driver.cuStreamQuery(scene.stream))
        checked(driver.cuEventQuery(scene.event))


def test_large_upload_from_pageable_memory_waits_for_staging_buffers() -> None:
    with context() as made:
        size = 64 << 20
        device = checked(driver.cuMemAlloc(size))
        stream = checked(driver.cuStreamCreate(0))
        source = np.arange(size, dtype=np.uint8)
        arrived = np.zeros_like(source)
        held = Held(stream)
        assert waits(made, held, lambda: checked(driver.cuMemcpyHtoDAsync(device, source.ctypes.data, size, stream)))
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, size))
        assert np.array_equal(source, arrived)


def test_bytes_arrive_with_the_wait_and_not_before() -> None:
    with context():
        scene = Scene()
        checked(driver.cuMemsetD8Async(scene.device, 7, SIZE, scene.stream))
        for target in (scene.pinned.address, scene.registered):
            checked(driver.cuMemcpyDtoHAsync(target, scene.device, SIZE, scene.stream))
        assert not array_at(scene.pinned.address, SIZE).any()
        assert not array_at(scene.registered, SIZE).any()
        scene.held.release()
        checked(driver.cuStreamSynchronize(scene.stream))
        assert (array_at(scene.pinned.address, SIZE) == 7).all()
        assert (array_at(scene.registered, SIZE) == 7).all()
