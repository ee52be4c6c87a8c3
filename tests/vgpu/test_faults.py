"""Addresses that no allocation holds: an error where the call is made, or in its context when its turn comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Held, Pinned, checked, context

pytestmark = pytest.mark.virtual_gpu

SIZE = 4096
UNKNOWN = 0x1234000
"""Lower than any address that the system gives out."""
INVALID = (driver.CUresult.CUDA_ERROR_INVALID_VALUE,)
ILLEGAL = driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


def captured(stream: Any, work: Callable[[], None]) -> Any:
    checked(driver.cuStreamBeginCapture(stream, RELAXED))
    work()
    return checked(driver.cuGraphInstantiate(checked(driver.cuStreamEndCapture(stream)), 0))


def test_calls_with_addresses_of_no_allocation_are_refused() -> None:
    with context():
        device, stream = checked(driver.cuMemAlloc(SIZE)), checked(driver.cuStreamCreate(0))
        host = np.zeros(2 * SIZE, np.uint8).ctypes.data
        assert driver.cuMemcpyHtoD(UNKNOWN, host, 16) == INVALID
        assert driver.cuMemcpyHtoDAsync(UNKNOWN, host, 16, stream) == INVALID
        assert driver.cuMemcpyDtoH(host, UNKNOWN, 16) == INVALID
        assert driver.cuMemcpyDtoD(device, UNKNOWN, 16) == INVALID
        assert driver.cuMemcpyHtoD(device, host, 2 * SIZE) == INVALID
        assert driver.cuMemsetD8(UNKNOWN, 0, 16) == INVALID
        assert driver.cuMemsetD8Async(int(device) + 1, 0, SIZE, stream) == INVALID
        checked(driver.cuCtxSynchronize())


def device_memory() -> tuple[int, Callable[[], Any]]:
    pointer = checked(driver.cuMemAlloc(SIZE))
    return int(pointer), lambda: driver.cuMemFree(pointer)


def pinned_memory() -> tuple[int, Callable[[], Any]]:
    pinned = Pinned(SIZE)
    return pinned.address, lambda: driver.cuMemFreeHost(pinned.address)


@pytest.mark.parametrize("memory", [device_memory, pinned_memory])
@pytest.mark.parametrize("action", ["set", "copy to", "copy from"])
def test_work_whose_memory_was_freed_puts_its_context_into_error(
    memory: Callable[[], tuple[int, Callable[[], Any]]], action: str
) -> None:
    """The process lives on, and a context made afterwards works."""
    with context():
        stream, other = checked(driver.cuStreamCreate(1)), checked(driver.cuMemAlloc(SIZE))
        address, free = memory()

        def work() -> None:
            if action == "set":
                checked(driver.cuMemsetD8Async(address, 1, SIZE, stream))
            elif action == "copy to":
                checked(driver.cuMemcpyAsync(address, other, SIZE, stream))
            else:
                checked(driver.cuMemcpyAsync(other, address, SIZE, stream))

        graph = captured(stream, work)
        checked(driver.cuGraphLaunch(graph, stream))
        checked(driver.cuStreamSynchronize(stream))
        checked(free())
        checked(driver.cuGraphLaunch(graph, stream))
        assert driver.cuStreamSynchronize(stream)[0] == ILLEGAL
        assert driver.cuMemAlloc(SIZE)[0] == ILLEGAL
        assert driver.cuCtxSynchronize()[0] == ILLEGAL
    with context():
        checked(driver.cuMemAlloc(SIZE))
        checked(driver.cuCtxSynchronize())


def test_memory_freed_in_a_streams_order_may_be_used_by_earlier_work() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(1))
        held = Held(stream)
        for _ in range(3):
            pointer = checked(driver.cuMemAllocAsync(SIZE, stream))
            checked(driver.cuMemsetD8Async(pointer, 1, SIZE, stream))
            checked(driver.cuMemFreeAsync(pointer, stream))
        held.release()
        checked(driver.cuStreamSynchronize(stream))
