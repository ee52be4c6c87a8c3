"""Addresses separate from the memory behind them: cuMemCreate, cuMemAddressReserve, cuMemMap."""

from __future__ import annotations

import os
from typing import Any

import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Held, Pinned, array_at, checked, context, pattern, waits

pytestmark = pytest.mark.virtual_gpu

RESULT = driver.CUresult
UNIT = 2 << 20


def properties() -> Any:
    wanted = driver.CUmemAllocationProp()
    wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = 0
    return wanted


def allow(address: int, size: int) -> tuple[Any, ...]:
    access = driver.CUmemAccessDesc()
    access.location = properties().location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    answer: tuple[Any, ...] = driver.cuMemSetAccess(address, size, [access], 1)
    return answer


def physical(size: int = UNIT) -> Any:
    return checked(driver.cuMemCreate(size, properties(), 0))


def reserved(size: int) -> int:
    return int(checked(driver.cuMemAddressReserve(size, 0, 0, 0)))


def test_memory_is_reached_by_whatever_address_it_is_mapped_at() -> None:
    with context():
        first, second = reserved(UNIT), reserved(UNIT)
        handle = physical()
        sent, received = Pinned(UNIT), Pinned(UNIT)
        array_at(sent.address, UNIT)[:] = pattern(UNIT)
        checked(driver.cuMemMap(first, UNIT, 0, handle, 0))
        checked(allow(first, UNIT))
        checked(driver.cuMemcpyHtoD(first, sent.address, UNIT))
        checked(driver.cuMemUnmap(first, UNIT))
        checked(driver.cuMemMap(second, UNIT, 0, handle, 0))
        checked(allow(second, UNIT))
        checked(driver.cuMemcpyDtoH(received.address, second, UNIT))
        assert (array_at(received.address, UNIT) == array_at(sent.address, UNIT)).all()


def test_neighbours_are_one_range() -> None:
    with context():
        start = reserved(3 * UNIT)
        for place in range(3):
            checked(driver.cuMemMap(start + place * UNIT, UNIT, 0, physical(), 0))
        checked(allow(start, 3 * UNIT))
        checked(driver.cuMemsetD8(start, 7, 3 * UNIT))
        assert [int(part) for part in checked(driver.cuMemGetAddressRange(start + UNIT))] == [start, 3 * UNIT]
        checked(driver.cuMemUnmap(start + UNIT, UNIT))
        assert [int(part) for part in checked(driver.cuMemGetAddressRange(start))] == [start, UNIT]
        assert driver.cuMemsetD8(start, 7, 3 * UNIT) == (RESULT.CUDA_ERROR_INVALID_VALUE,)


def test_memory_counts_until_neither_a_handle_nor_a_mapping_is_left() -> None:
    with context():
        free, _ = checked(driver.cuMemGetInfo())
        start, handle = reserved(UNIT), physical()
        checked(driver.cuMemMap(start, UNIT, 0, handle, 0))
        checked(driver.cuMemRelease(handle))
        assert checked(driver.cuMemGetInfo())[0] == free - UNIT
        assert driver.cuMemAddressFree(start, UNIT) == (RESULT.CUDA_ERROR_INVALID_VALUE,)
        checked(driver.cuMemUnmap(start, UNIT))
        assert checked(driver.cuMemGetInfo())[0] == free
        checked(driver.cuMemAddressFree(start, UNIT))


def test_what_is_mapped_cannot_be_used_before_access_is_allowed() -> None:
    with context():
        start = reserved(UNIT)
        checked(driver.cuMemMap(start, UNIT, 0, physical(), 0))
        assert driver.cuMemGetAddressRange(start)[0] == RESULT.CUDA_ERROR_NOT_FOUND
        checked(allow(start, UNIT))
        assert int(checked(driver.cuMemGetAccess(properties().location, start))) == 3


@pytest.mark.parametrize("call", ["unmap", "allow"])
def test_changing_a_mapping_waits(call: str) -> None:
    with context() as made:
        start = reserved(UNIT)
        checked(driver.cuMemMap(start, UNIT, 0, physical(), 0))
        checked(allow(start, UNIT))
        held = Held(checked(driver.cuStreamCreate(0)))
        change = {"unmap": lambda: driver.cuMemUnmap(start, UNIT), "allow": lambda: allow(start, UNIT)}[call]
        assert waits(made, held, lambda: checked(change()))


def test_a_mapping_outlives_the_context_that_used_it() -> None:
    with context():
        start = reserved(UNIT)
        checked(driver.cuMemMap(start, UNIT, 0, physical(), 0))
        checked(allow(start, UNIT))
    assert int(checked(driver.cuCtxGetCurrent())) == 0
    checked(driver.cuMemUnmap(start, UNIT))
    checked(driver.cuMemAddressFree(start, UNIT))


def test_wrong_mappings_are_refused() -> None:
    refused = (RESULT.CUDA_ERROR_INVALID_VALUE,)
    with context():
        start, handle = reserved(2 * UNIT), physical()
        assert driver.cuMemCreate(UNIT + 1, properties(), 0)[0] == RESULT.CUDA_ERROR_INVALID_VALUE
        assert driver.cuMemMap(start, 2 * UNIT, 0, handle, 0) == refused  # more than there is
        assert driver.cuMemMap(start + 2 * UNIT, UNIT, 0, handle, 0) == refused  # nothing reserved
        checked(driver.cuMemMap(start, UNIT, 0, handle, 0))
        assert driver.cuMemMap(start, UNIT, 0, handle, 0) == refused  # already mapped
        assert allow(start, 2 * UNIT) == refused  # partially mapped
        assert driver.cuMemUnmap(start, 2 * UNIT) == refused
        assert driver.cuMemRelease(int(handle) + 99) == refused


def test_memory_is_shared_by_a_descriptor() -> None:
    descriptor = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    told = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    with context():
        assert checked(driver.cuDeviceGetAttribute(told, 0)) == 1
        first, second = reserved(UNIT), reserved(UNIT)
        shared = properties()
        shared.requestedHandleTypes = descriptor
        handle = checked(driver.cuMemCreate(UNIT, shared, 0))
        file = int(checked(driver.cuMemExportToShareableHandle(handle, descriptor, 0)))
        imported = checked(driver.cuMemImportFromShareableHandle(file, descriptor))
        os.close(file)
        for address, memory in ((first, handle), (second, imported)):
            checked(driver.cuMemMap(address, UNIT, 0, memory, 0))
            checked(allow(address, UNIT))
        checked(driver.cuMemsetD8(second, 7, UNIT))
        received = Pinned(UNIT)
        checked(driver.cuMemcpyDtoH(received.address, first, UNIT))
        assert (array_at(received.address, UNIT) == 7).all()
        private = physical()
        assert driver.cuMemExportToShareableHandle(private, descriptor, 0)[0] == RESULT.CUDA_ERROR_NOT_SUPPORTED
