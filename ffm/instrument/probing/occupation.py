"""Ways to keep a stream busy until the host releases it."""

from __future__ import annotations

import ctypes
import time
from typing import Protocol

from ffm.instrument.probing.probe_driver import Driver, ProbeError

_STREAM_WAIT_VALUE_GEQ = 0
_NOT_READY = 600
"""`CUDA_ERROR_NOT_READY` of `cuda.h`: a stream still has work."""
_HOST_ALLOCATION_MAPPED = 2

# Polls a word in host memory until it is as large as expected. The driver compiles it for its GPU.
_KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry wait_for_host(.param .u64 place, .param .u32 expected)
{
    .reg .pred %again;
    .reg .b32 %value, %wanted;
    .reg .b64 %address;
    ld.param.u64 %address, [place];
    ld.param.u32 %wanted, [expected];
look:
    ld.volatile.u32 %value, [%address];
    setp.lt.u32 %again, %value, %wanted;
    @%again bra look;
    ret;
}
"""


_SETTLES_S = 0.01
"""Work that does not wait for the host is over after this time."""


class Occupation(Protocol):
    """Keeps one stream busy."""

    name: str

    def occupy(self) -> None:
        """Make the stream wait for `release`. Raises `ProbeError` if the driver cannot."""

    def release(self) -> None:
        """Let the stream continue."""


class _MappedWord:
    """A word of pinned host memory that the GPU can read."""

    def __init__(self, driver: Driver) -> None:
        memory = ctypes.c_void_p()
        driver("allocate_mapped", ctypes.byref(memory), ctypes.c_size_t(4), ctypes.c_uint(_HOST_ALLOCATION_MAPPED))
        self.value = ctypes.c_uint32.from_address(memory.value or 0)
        self.value.value = 0
        self.address = ctypes.c_uint64()
        driver("device_address", ctypes.byref(self.address), memory, ctypes.c_uint(0))


class KernelOccupation:
    """A kernel that polls a word in host memory."""

    name = "kernel"

    def __init__(self, driver: Driver, stream: ctypes.c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._rounds = 0
        module = ctypes.c_void_p()
        self.function = ctypes.c_void_p()
        driver("load_module", ctypes.byref(module), _KERNEL)
        driver("find_kernel", ctypes.byref(self.function), module, b"wait_for_host")
        self._word = _MappedWord(driver)

    def occupy(self) -> None:
        """Make the stream wait for `release`."""
        self._rounds += 1
        expected = ctypes.c_uint32(self._rounds)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(self._word.address), ctypes.addressof(expected))
        sizes = [ctypes.c_uint(1)] * 6  # one block of one thread
        self._driver("launch", self.function, *sizes, ctypes.c_uint(0), self._stream, parameters, None)

    def release(self) -> None:
        """Let the stream continue."""
        self._word.value.value = self._rounds


class HostFunctionOccupation:
    """A host function in the stream that waits for a semaphore."""

    name = "host_function"

    def __init__(self, driver: Driver, stream: ctypes.c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._libc = ctypes.CDLL(None)
        # A `sem_t` has 32 bytes on Linux x86-64.
        self._semaphore = ctypes.create_string_buffer(64)
        self._libc.sem_init(self._semaphore, 0, 0)

    def occupy(self) -> None:
        """Make the stream wait for `release`."""
        wait = ctypes.cast(self._libc.sem_wait, ctypes.c_void_p)
        self._driver("launch_host_function", self._stream, wait, ctypes.byref(self._semaphore))

    def release(self) -> None:
        """Let the stream continue."""
        self._libc.sem_post(self._semaphore)


class WaitValueOccupation:
    """A wait of the stream for a value in pinned host memory."""

    name = "stream_wait_value"

    def __init__(self, driver: Driver, stream: ctypes.c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._rounds = 0
        self._word = _MappedWord(driver)

    def occupy(self) -> None:
        """Make the stream wait for `release`."""
        self._rounds += 1
        rounds, flags = ctypes.c_uint32(self._rounds), ctypes.c_uint(_STREAM_WAIT_VALUE_GEQ)
        self._driver("wait_for_value", self._stream, self._word.address, rounds, flags)

    def release(self) -> None:
        """Let the stream continue."""
        self._word.value.value = self._rounds


_WAYS = (KernelOccupation, HostFunctionOccupation, WaitValueOccupation)


def occupation_of(driver: Driver, stream: ctypes.c_void_p) -> Occupation:
    """Return the first way that works with the driver, tried once. Raises `ProbeError` if there is none.

    A kernel comes first because that is what programs wait for; a driver without a real GPU or a compiler may refuse
    it, or accept it and run nothing.
    """
    refusals: list[str] = []
    for way in _WAYS:
        try:
            occupation = way(driver, stream)
            occupation.occupy()
        except ProbeError as error:
            refusals.append(str(error))
            continue
        busy = _is_busy(driver, stream)
        # One round with nobody waiting, so that the driver's one-time work on first use is done.
        occupation.release()
        driver("synchronize_stream", stream)
        if busy:
            return occupation
        refusals.append(f"a {occupation.name} does not keep it busy")
    raise ProbeError(f"the GPU cannot be kept busy: {'; '.join(dict.fromkeys(refusals))}")


def _is_busy(driver: Driver, stream: ctypes.c_void_p) -> bool:
    """Return whether a stream keeps being busy; a driver that cannot tell is believed."""
    if not driver.has("query_stream"):
        return True
    time.sleep(_SETTLES_S)
    return driver.result("query_stream", stream) == _NOT_READY
