"""Allocating and freeing, and what the driver reports about memory."""

from __future__ import annotations

import ctypes
import itertools
import mmap

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import PAGE, Held, Pinned, array_at, checked, context, load

pytestmark = pytest.mark.virtual_gpu

RESULT = driver.CUresult
ATTRIBUTE = driver.CUpointer_attribute
HOST = int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
DEVICE = int(driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)


def test_allocations_do_not_overlap_and_count_as_used() -> None:
    with context():
        free, total = checked(driver.cuMemGetInfo())
        sizes = [1, 511, 512, 513, 1 << 20, 3 << 20]
        blocks = sorted((int(checked(driver.cuMemAlloc(size))), size) for size in sizes)
        for (address, size), (behind, _) in itertools.pairwise(blocks):
            assert address + size <= behind
        assert all(address % 512 == 0 for address, _ in blocks)
        left, total_after = checked(driver.cuMemGetInfo())
        assert total_after == total
        assert free - left >= sum(sizes)
        for address, _ in blocks:
            checked(driver.cuMemFree(address))
        assert checked(driver.cuMemGetInfo())[0] == free


def test_a_freed_address_is_given_out_again() -> None:
    with context():
        first = int(checked(driver.cuMemAlloc(4096)))
        checked(driver.cuMemFree(first))
        assert int(checked(driver.cuMemAlloc(4096))) == first


def test_more_than_the_device_holds_is_refused() -> None:
    with context():
        _, total = checked(driver.cuMemGetInfo())
        assert driver.cuMemAlloc(total + 1)[0] == RESULT.CUDA_ERROR_OUT_OF_MEMORY


def test_wrong_frees_are_refused() -> None:
    with context():
        device = int(checked(driver.cuMemAlloc(4096)))
        pinned = Pinned(4096)
        refused = (RESULT.CUDA_ERROR_INVALID_VALUE,)
        assert driver.cuMemFree(device + 512) == refused
        assert driver.cuMemFree(pinned.address) == refused
        assert driver.cuMemFreeHost(device) == refused
        checked(driver.cuMemFree(device))
        assert driver.cuMemFree(device) == refused


def test_destroying_a_context_frees_its_memory() -> None:
    with context():
        free, _ = checked(driver.cuMemGetInfo())
        inner = checked(driver.cuCtxCreate(None, 0, 0))
        checked(driver.cuMemAlloc(1 << 20))
        checked(driver.cuCtxDestroy(inner))
        assert checked(driver.cuMemGetInfo())[0] == free


def test_address_range_of_any_address_inside() -> None:
    with context():
        device = int(checked(driver.cuMemAlloc(1000)))
        base, size = checked(driver.cuMemGetAddressRange(device + 999))
        assert (int(base), size) == (device, 1000)
        assert driver.cuMemGetAddressRange(4096)[0] == RESULT.CUDA_ERROR_NOT_FOUND


def test_pointer_attributes_of_each_kind() -> None:
    with context():
        device = int(checked(driver.cuMemAlloc(64)))
        pinned = Pinned(64).address
        managed = int(checked(driver.cuMemAllocManaged(64, 1)))
        for address, kind, is_managed in ((device, DEVICE, 0), (pinned, HOST, 0), (managed, DEVICE, 1)):
            attribute = ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
            assert int(checked(driver.cuPointerGetAttribute(attribute, address))) == kind
            attribute = ATTRIBUTE.CU_POINTER_ATTRIBUTE_IS_MANAGED
            assert int(checked(driver.cuPointerGetAttribute(attribute, address))) == is_managed
            attribute = ATTRIBUTE.CU_POINTER_ATTRIBUTE_RANGE_SIZE
            assert int(checked(driver.cuPointerGetAttribute(attribute, address + 63))) == 64
        unknown = np.zeros(4).ctypes.data
        attribute = ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        assert driver.cuPointerGetAttribute(attribute, unknown)[0] == RESULT.CUDA_ERROR_INVALID_VALUE


def test_managed_memory_is_the_same_for_program_and_gpu() -> None:
    with context():
        managed = int(checked(driver.cuMemAllocManaged(4096, 1)))
        seen = array_at(managed, 4096)
        seen[:] = 3
        device = checked(driver.cuMemAlloc(4096))
        checked(driver.cuMemcpyDtoD(device, managed, 4096))
        checked(driver.cuMemsetD8(managed, 4, 4096))
        arrived = np.zeros(4096, np.uint8)
        checked(driver.cuMemcpyDtoH(arrived.ctypes.data, device, 4096))
        assert (arrived == 3).all()
        assert (seen == 4).all()


@pytest.mark.parametrize(("bits", "value"), [(8, 7), (16, 0x0707), (32, 0x07070707)])
def test_first_forms_of_sets_take_whole_addresses(bits: int, value: int) -> None:
    with context():
        memory, host = checked(driver.cuMemAlloc(4096)), np.zeros(4096, np.uint8)
        assert int(memory) >> 32 != 0
        by_name = getattr(load(), f"cuMemsetD{bits}")
        assert by_name(ctypes.c_uint64(int(memory)), value, ctypes.c_size_t(4096 * 8 // bits)) == 0
        checked(driver.cuMemcpyDtoH(host, memory, 4096))
        assert (host == 7).all()


def test_registering_memory_twice_or_not_at_all() -> None:
    with context():
        mapping = mmap.mmap(-1, PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        checked(driver.cuMemHostRegister(address, PAGE, 0))
        assert int(checked(driver.cuMemHostGetDevicePointer(address, 0))) == address
        again = driver.cuMemHostRegister(address, PAGE, 0)[0]
        assert again == RESULT.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
        checked(driver.cuMemHostUnregister(address))
        gone = driver.cuMemHostUnregister(address)[0]
        assert gone == RESULT.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED


def test_pinned_memory_is_told_apart_from_registered_memory_as_on_an_h200() -> None:
    with context():
        assert int(checked(driver.cuMemAllocHost(0)) or 0) == 0
        pinned = int(checked(driver.cuMemHostAlloc(PAGE, driver.CU_MEMHOSTALLOC_PORTABLE)))
        combined = int(checked(driver.cuMemHostAlloc(PAGE, driver.CU_MEMHOSTALLOC_WRITECOMBINED)))
        assert driver.cuMemHostUnregister(pinned)[0] == RESULT.CUDA_ERROR_INVALID_VALUE
        assert driver.cuMemHostRegister(pinned, PAGE, 0)[0] == RESULT.CUDA_ERROR_INVALID_VALUE
        mapping = mmap.mmap(-1, PAGE)
        registered = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        checked(driver.cuMemHostRegister(registered, PAGE, 3))
        flags = [checked(driver.cuMemHostGetFlags(address)) for address in (pinned, combined, registered)]
        assert flags == [2, 6, 3]
        checked(driver.cuMemHostUnregister(registered))


def test_pool_reuses_a_block_in_the_stream_that_freed_it() -> None:
    with context():
        stream, other = checked(driver.cuStreamCreate(1)), checked(driver.cuStreamCreate(1))
        held = Held(stream)
        block = int(checked(driver.cuMemAllocAsync(4096, stream)))
        checked(driver.cuMemFreeAsync(block, stream))
        elsewhere = int(checked(driver.cuMemAllocAsync(4096, other)))
        assert elsewhere != block, "the block is in use until the held stream comes to the free"
        assert int(checked(driver.cuMemAllocAsync(4096, stream))) == block
        held.release()
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemFree(block))
        checked(driver.cuMemFreeAsync(elsewhere, other))


def test_pool_counts_what_it_holds() -> None:
    attribute = driver.CUmemPool_attribute
    with context():
        pool = checked(driver.cuDeviceGetDefaultMemPool(0))
        block = checked(driver.cuMemAllocAsync(1 << 20, 0))
        used = int(checked(driver.cuMemPoolGetAttribute(pool, attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)))
        assert used == 1 << 20
        checked(driver.cuMemFreeAsync(block, 0))
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemPoolTrimTo(pool, 0))
        for name in ("USED_MEM_CURRENT", "RESERVED_MEM_CURRENT"):
            value = getattr(attribute, f"CU_MEMPOOL_ATTR_{name}")
            assert int(checked(driver.cuMemPoolGetAttribute(pool, value))) == 0


def test_hints_about_managed_memory_change_nothing_but_time() -> None:
    with context():
        managed = int(checked(driver.cuMemAllocManaged(4096, 1)))
        array_at(managed, 4096)[:] = 6
        place = driver.CUmemLocation()
        place.type, place.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
        advice = driver.CUmem_advise.CU_MEM_ADVISE_SET_PREFERRED_LOCATION
        held = Held(0)
        checked(driver.cuMemPrefetchAsync(managed, 4096, place, 0, 0))
        checked(driver.cuMemAdvise(managed, 4096, advice, place))
        assert not held.is_over()
        held.release()
        checked(driver.cuCtxSynchronize())
        assert (array_at(managed, 4096) == 6).all()
        device = checked(driver.cuMemAlloc(4096))
        refused = driver.cuMemPrefetchAsync(device, 4096, place, 0, 0)[0]
        assert refused == RESULT.CUDA_ERROR_INVALID_VALUE
