"""Copies and sets: every byte arrives, and only where it should."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import PAGE, Held, Pinned, array_at, checked, context, pattern, protect

pytestmark = pytest.mark.virtual_gpu

INVALID_VALUE = driver.CUresult.CUDA_ERROR_INVALID_VALUE
HOST = driver.CUmemorytype.CU_MEMORYTYPE_HOST
DEVICE = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
UNIFIED = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
SIZES = [1, 3, 4096, 65536, 65537, (2 << 20) - 1, (5 << 20) + 3]


@pytest.mark.parametrize("size", SIZES)
def test_round_trip_through_pageable_memory(size: int) -> None:
    with context():
        device = checked(driver.cuMemAlloc(size))
        sent, arrived = pattern(size), np.zeros(size, np.uint8)
        checked(driver.cuMemcpyHtoD(device, sent.ctypes.data, size))
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, size))
        assert np.array_equal(sent, arrived)


@pytest.mark.parametrize("size", SIZES)
def test_round_trip_through_pinned_memory_on_a_stream(size: int) -> None:
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device, copy = checked(driver.cuMemAlloc(size)), checked(driver.cuMemAlloc(size))
        sent, arrived = Pinned(size), Pinned(size)
        sent.bytes[:] = pattern(size)
        checked(driver.cuMemcpyHtoDAsync(device, sent.address, size, stream))
        checked(driver.cuMemcpyDtoDAsync(copy, device, size, stream))
        checked(driver.cuMemcpyDtoHAsync(arrived.address, copy, size, stream))
        checked(driver.cuStreamSynchronize(stream))
        assert np.array_equal(sent.bytes, arrived.bytes)


def test_pageable_source_may_change_once_the_call_has_returned() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device = checked(driver.cuMemAlloc(4096))
        source, arrived = pattern(4096), np.zeros(4096, np.uint8)
        expected = source.copy()
        held = Held(stream)
        checked(driver.cuMemcpyHtoDAsync(device, source.ctypes.data, 4096, stream))
        source[:] = 0
        held.release()
        checked(driver.cuStreamSynchronize(stream))
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, 4096))
        assert np.array_equal(arrived, expected)


def test_pinned_source_is_read_when_the_gpu_comes_to_it() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device = checked(driver.cuMemAlloc(4096))
        source, arrived = Pinned(4096), np.zeros(4096, np.uint8)
        held = Held(stream)
        checked(driver.cuMemcpyHtoDAsync(device, source.address, 4096, stream))
        source.bytes[:] = 9
        held.release()
        checked(driver.cuStreamSynchronize(stream))
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, 4096))
        assert (arrived == 9).all()


@pytest.mark.parametrize("protection", [mmap.PROT_READ, 0])
@pytest.mark.parametrize("kind", ["pinned", "managed", "registered private", "registered shared"])
def test_gpu_ignores_the_protection_of_the_programs_pages(kind: str, protection: int) -> None:
    size = 4 * PAGE
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device = checked(driver.cuMemAlloc(size))
        if kind == "pinned":
            address = Pinned(size).address
        elif kind == "managed":
            address = int(checked(driver.cuMemAllocManaged(size, 1)))
        else:
            sharing = mmap.MAP_PRIVATE if kind.endswith("private") else mmap.MAP_SHARED
            mapping = mmap.mmap(-1, size, sharing | mmap.MAP_ANONYMOUS)
            address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
            checked(driver.cuMemHostRegister(address, size, 0))
        host = array_at(address, size)
        host[:] = pattern(size)
        expected = host.copy()
        protect(address, size, protection)
        checked(driver.cuMemcpyHtoDAsync(device, address, size, stream))
        checked(driver.cuMemsetD8Async(address, 0, size, stream))
        checked(driver.cuMemcpyDtoHAsync(address + PAGE, device, PAGE, stream))
        checked(driver.cuStreamSynchronize(stream))
        protect(address, size, mmap.PROT_READ | mmap.PROT_WRITE)
        assert np.array_equal(host[PAGE : 2 * PAGE], expected[:PAGE])
        assert not host[:PAGE].any()
        assert not host[2 * PAGE :].any()


def rows(width: int, height: int, pitch: int) -> tuple[np.ndarray, np.ndarray]:
    """A pitched array and the view of its used bytes."""
    whole = pattern(pitch * height)
    return whole, whole.reshape(height, pitch)[:, :width]


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("width", [1, 100, 512])
def test_rows_with_different_pitches(width: int, pinned: bool) -> None:
    height, host_pitch = 37, 600
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device, device_pitch = checked(driver.cuMemAllocPitch(width, height, 4))
        sent, used = rows(width, height, host_pitch)
        target = Pinned(host_pitch * height).bytes if pinned else np.zeros(host_pitch * height, np.uint8)
        target[:] = 5
        up, down = driver.CUDA_MEMCPY2D(), driver.CUDA_MEMCPY2D()
        up.srcMemoryType, up.srcHost, up.srcPitch = HOST, sent.ctypes.data, host_pitch
        up.dstMemoryType, up.dstDevice, up.dstPitch = DEVICE, device, device_pitch
        down.srcMemoryType, down.srcDevice, down.srcPitch = DEVICE, device, device_pitch
        down.dstMemoryType, down.dstHost, down.dstPitch = HOST, target.ctypes.data, host_pitch
        for copy in (up, down):
            copy.WidthInBytes, copy.Height = width, height
            checked(driver.cuMemcpy2DAsync(copy, stream))
        checked(driver.cuStreamSynchronize(stream))
        arrived = target.reshape(height, host_pitch)
        assert np.array_equal(arrived[:, :width], used)
        assert (arrived[:, width:] == 5).all()


def test_box_at_an_offset() -> None:
    shape = (4, 5, 64)
    with context():
        device = checked(driver.cuMemAlloc(int(np.prod(shape))))
        checked(driver.cuMemsetD8(device, 0, int(np.prod(shape))))
        sent, arrived = pattern(2 * 3 * 16), np.zeros(shape, np.uint8)
        copy = driver.CUDA_MEMCPY3D()
        copy.srcMemoryType, copy.srcHost, copy.srcPitch, copy.srcHeight = HOST, sent.ctypes.data, 16, 3
        copy.dstMemoryType, copy.dstDevice, copy.dstPitch, copy.dstHeight = DEVICE, device, 64, 5
        copy.dstXInBytes, copy.dstY, copy.dstZ = 8, 1, 2
        copy.WidthInBytes, copy.Height, copy.Depth = 16, 3, 2
        checked(driver.cuMemcpy3D(copy))
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, arrived.nbytes))
        expected = np.zeros(shape, np.uint8)
        expected[2:4, 1:4, 8:24] = sent.reshape(2, 3, 16)
        assert np.array_equal(arrived, expected)


def test_unified_addresses_decide_the_direction() -> None:
    with context():
        device = checked(driver.cuMemAlloc(64))
        sent, arrived = pattern(64), np.zeros(64, np.uint8)
        checked(driver.cuMemcpy(device, sent.ctypes.data, 64))
        checked(driver.cuMemcpy(arrived.ctypes.data, device, 64))
        assert np.array_equal(sent, arrived)


@pytest.mark.parametrize(("bits", "value"), [(8, 0xAB), (16, 0xABCD), (32, 0xABCDEF01)])
def test_sets_of_every_width(bits: int, value: int) -> None:
    count, width = 100, bits // 8
    with context():
        device = checked(driver.cuMemAlloc(count * width))
        set_all = getattr(driver, f"cuMemsetD{bits}")
        set_rows = getattr(driver, f"cuMemsetD2D{bits}")
        checked(set_all(device, 0, count))
        checked(set_rows(device, 10 * width, value, 4, 10))
        arrived = np.zeros(count, f"u{width}")
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, arrived.nbytes))
        expected = np.zeros((10, 10), f"u{width}")
        expected[:, :4] = value
        assert np.array_equal(arrived, expected.reshape(-1))


def test_a_range_that_was_written_in_part_is_cleared() -> None:
    """Pages that nobody wrote need no clearing: the others must not be missed."""
    size = 5 << 20
    with context():
        device = int(checked(driver.cuMemAlloc(size)))
        expected = np.zeros(size, np.uint8)
        for first, behind in ((0, 3 * PAGE), (1 << 20, (1 << 20) + 1), (size - PAGE - 3, size)):
            sent = expected[first:behind] = pattern(behind - first)
            checked(driver.cuMemcpyHtoD(device + first, sent.ctypes.data, behind - first))
        arrived = np.empty_like(expected)
        for first, count in ((5, size - 10), (2, 2), (0, size)):
            checked(driver.cuMemsetD8(device + first, 0, count))
            expected[first : first + count] = 0
            checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, size))
            assert np.array_equal(arrived, expected)
        checked(driver.cuMemFree(device))


def test_copies_beyond_an_allocation_are_refused() -> None:
    with context():
        device = checked(driver.cuMemAlloc(100))
        host = np.zeros(200, np.uint8)
        assert driver.cuMemcpyHtoD(device, host.ctypes.data, 101) == (INVALID_VALUE,)
        assert driver.cuMemcpyDtoH(host.ctypes.data, int(device) + 1, 100) == (INVALID_VALUE,)
        assert driver.cuMemsetD8(device, 0, 101) == (INVALID_VALUE,)
        assert driver.cuMemcpyDtoH(host.ctypes.data, host.ctypes.data, 100) == (INVALID_VALUE,)
        assert driver.cuMemcpyHtoD(12345, host.ctypes.data, 1) == (INVALID_VALUE,)
