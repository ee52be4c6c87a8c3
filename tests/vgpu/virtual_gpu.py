"""What the tests of the virtual driver share: NVIDIA's bindings on it, and a GPU that can be held back."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from cuda.bindings import driver

from ffm.vgpu.paths import library_folder

LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE


def load() -> ctypes.CDLL:
    """Load the virtual driver under the name that the bindings look for."""
    return ctypes.CDLL(str(library_folder() / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)


def checked(answer: tuple[Any, ...]) -> Any:
    """Return what a call of the bindings returned besides its status, which must be success."""
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise AssertionError(f"{status!r}")
    return values[0] if len(values) == 1 else tuple(values)


@contextmanager
def context() -> Iterator[Any]:
    """Initialize the driver and create a context for the calling thread."""
    load()
    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    made = checked(driver.cuCtxCreate(None, 0, device))
    try:
        yield made
    finally:
        checked(driver.cuCtxDestroy(made))


class Pinned:
    """Page-locked memory, as a NumPy array of bytes."""

    def __init__(self, size: int) -> None:
        self.address = int(checked(driver.cuMemAllocHost(size)))
        self.bytes = array_at(self.address, size)


def array_at(address: int, size: int) -> np.ndarray:
    """The bytes of this process, not copied."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def pattern(size: int, seed: int = 1) -> np.ndarray:
    """Bytes that differ from each other and from zero here and there."""
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


class Held:
    """Holds back a stream's GPU work until `release`."""

    def __init__(self, stream: Any) -> None:
        self._word = Pinned(4).bytes.view(np.uint32)
        self._word[0] = 0
        address = self._word.ctypes.data
        checked(driver.cuStreamWaitValue32(stream, address, 1, 0))
        self._behind = checked(driver.cuEventCreate(0))
        checked(driver.cuEventRecord(self._behind, stream))

    def is_over(self) -> bool:
        """Return whether the GPU has continued."""
        return bool(driver.cuEventQuery(self._behind)[0] == driver.CUresult.CUDA_SUCCESS)

    def release(self) -> None:
        self._word[0] = 1


def waits(made: Any, held: Held, call: Callable[[], Any]) -> bool:
    """Return whether `call`, made in another thread, returns only after the GPU was released.

    A call that does not wait is recognized because it returns while the GPU is held back.
    """
    order: list[str] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            checked(driver.cuCtxSetCurrent(made))
            call()
        except BaseException as failure:
            failures.append(failure)
        order.append("returned")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.05)
    order.append("released")
    held.release()
    thread.join()
    if failures:
        raise failures[0]
    return order == ["released", "returned"]


def protect(address: int, size: int, protection: int) -> None:
    """Call mprotect on whole pages."""
    if LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
