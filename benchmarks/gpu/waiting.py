"""Which calls wait for the GPU, measured call by call: `python benchmarks/gpu/waiting.py [LIBRARY]`.

The GPU is kept busy, and the call is made in a separate thread. If that thread is still in the call after a while, the
call waits. Prints one line of JSON for each, [call, [waits, what the virtual GPU claims]]; a call that failed has a
text.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ffm.instrument.probing.probe import Probe
from ffm.instrument.probing.probe_driver import Driver, ProbeError

BYTES = 1 << 20
FEW_BYTES = 1 << 15
"""Of a pageable upload that is staged at once."""
PAUSE = 0.08
"""Seconds after which a call that has not returned counts as waiting. Other calls take less than a millisecond."""
PATIENCE = 10.0
MANAGED_GLOBAL = 1
"""`CU_MEM_ATTACH_GLOBAL` of cuda.h."""
NON_BLOCKING = 1
"""`CU_STREAM_NON_BLOCKING` of cuda.h."""

_MODULE = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n"

Call = tuple[str, tuple[Any, ...]]


class Measured:
    """A context whose stream can be kept busy, with memory of each kind."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.here = Probe(driver).surroundings
        self._kept: list[mmap.mmap] = []
        self.size = ctypes.c_size_t(BYTES)
        self.device, self.other = self.device_memory(), self.device_memory()
        self.pinned = self.pinned_memory()
        self.pageable = ctypes.create_string_buffer(BYTES)

    def device_memory(self) -> ctypes.c_uint64:
        """Return device memory of `BYTES` bytes."""
        address = ctypes.c_uint64()
        self.driver("cuMemAlloc_v2", ctypes.byref(address), self.size)
        return address

    def pinned_memory(self) -> ctypes.c_void_p:
        """Return pinned host memory of `BYTES` bytes."""
        address = ctypes.c_void_p()
        self.driver("cuMemAllocHost_v2", ctypes.byref(address), self.size)
        return address

    def managed_memory(self) -> ctypes.c_uint64:
        """Return managed memory of `BYTES` bytes."""
        address = ctypes.c_uint64()
        self.driver("cuMemAllocManaged", ctypes.byref(address), self.size, ctypes.c_uint(MANAGED_GLOBAL))
        return address

    def pages(self) -> ctypes.c_void_p:
        """Return ordinary host memory of `BYTES` bytes that begins with a page."""
        pages = mmap.mmap(-1, BYTES)
        self._kept.append(pages)  # it is unmapped with its last user
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(pages)))

    def registered_memory(self) -> ctypes.c_void_p:
        """Return registered host memory of `BYTES` bytes."""
        address = self.pages()
        self.driver("cuMemHostRegister_v2", address, self.size, ctypes.c_uint(0))
        return address

    def module(self) -> ctypes.c_void_p:
        """Return a loaded module."""
        module = ctypes.c_void_p()
        self.driver("cuModuleLoadData", ctypes.byref(module), _MODULE)
        return module

    def created(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """Return the handle that a call writes to the address which it gets first."""
        handle = ctypes.c_void_p()
        self.driver(function, ctypes.byref(handle), *arguments)
        return handle

    def graph(self) -> ctypes.c_void_p:
        """Return a graph of one node that sets memory."""
        stream = self.created("cuStreamCreate", ctypes.c_uint(NON_BLOCKING))
        graph = ctypes.c_void_p()
        self.driver("cuStreamBeginCapture_v2", stream, ctypes.c_uint(0))
        self.driver("cuMemsetD8Async", self.device, ctypes.c_ubyte(1), self.size, stream)
        self.driver("cuStreamEndCapture", stream, ctypes.byref(graph))
        return graph

    def executable_graph(self) -> ctypes.c_void_p:
        """Return it in executable form."""
        return self.created("cuGraphInstantiateWithFlags", self.graph(), ctypes.c_ulonglong(0))

    def waits(self, call: Call) -> bool:
        """Return whether a call waits for the GPU. Raises `ProbeError` if it fails."""
        name, arguments = call
        failure: list[str] = []

        def make() -> None:
            try:
                self.driver("cuCtxSetCurrent", self.here.context)
                self.driver(name, *arguments)
            except ProbeError as error:
                failure.append(str(error))

        self.here.occupation.occupy()
        self.driver("cuEventRecord", self.here.event, self.here.stream)
        thread = threading.Thread(target=make, daemon=True)
        thread.start()
        thread.join(PAUSE)
        waited = thread.is_alive()
        self.here.occupation.release()
        thread.join(PATIENCE)
        if thread.is_alive():
            raise ProbeError("it did not return when the GPU continued")
        self.driver("cuCtxSynchronize")
        if failure:
            raise ProbeError(failure[0])
        return waited


def cases(gpu: Measured) -> Iterator[tuple[str, bool, Callable[[], Call]]]:
    """Yield the calls: name, whether the virtual GPU claims that it waits, how to make it."""
    here, size, byte = gpu.here, gpu.size, ctypes.c_ubyte(1)
    flags = ctypes.c_uint(0)
    stream, event = here.stream, here.event
    device, other, pinned, pageable = gpu.device, gpu.other, gpu.pinned, gpu.pageable
    taken = ctypes.c_uint64()
    yield "cuCtxSynchronize", True, lambda: ("cuCtxSynchronize", ())
    yield "cuStreamSynchronize", True, lambda: ("cuStreamSynchronize", (stream,))
    yield "cuEventSynchronize", True, lambda: ("cuEventSynchronize", (event,))
    yield "cuMemcpyDtoH, pageable", True, lambda: ("cuMemcpyDtoH_v2", (pageable, device, size))
    yield "cuMemcpyDtoH, pinned", True, lambda: ("cuMemcpyDtoH_v2", (pinned, device, size))
    yield "cuMemcpyDtoHAsync, pageable", True, lambda: ("cuMemcpyDtoHAsync_v2", (pageable, device, size, stream))
    yield "cuMemcpyDtoHAsync, pinned", False, lambda: ("cuMemcpyDtoHAsync_v2", (pinned, device, size, stream))
    yield "cuMemcpyHtoD, pageable", True, lambda: ("cuMemcpyHtoD_v2", (device, pageable, size))
    few = ctypes.c_size_t(FEW_BYTES)
    yield "cuMemcpyHtoD, few bytes", True, lambda: ("cuMemcpyHtoD_v2", (device, pageable, few))
    yield "cuMemcpyHtoD, pinned", True, lambda: ("cuMemcpyHtoD_v2", (device, pinned, size))
    yield "cuMemcpyHtoDAsync, pageable", False, lambda: ("cuMemcpyHtoDAsync_v2", (device, pageable, size, stream))
    yield "cuMemcpyHtoDAsync, pinned", False, lambda: ("cuMemcpyHtoDAsync_v2", (device, pinned, size, stream))
    yield "cuMemcpyDtoD", False, lambda: ("cuMemcpyDtoD_v2", (device, other, size))
    yield "cuMemcpyDtoDAsync", False, lambda: ("cuMemcpyDtoDAsync_v2", (device, other, size, stream))
    yield "cuMemsetD8, device", False, lambda: ("cuMemsetD8_v2", (device, byte, size))
    yield "cuMemsetD8, pinned", True, lambda: ("cuMemsetD8_v2", (pinned, byte, size))
    yield "cuMemsetD8, managed", True, lambda: ("cuMemsetD8_v2", (gpu.managed_memory(), byte, size))
    yield "cuMemsetD8Async", False, lambda: ("cuMemsetD8Async", (device, byte, size, stream))
    yield "cuMemFree", True, lambda: ("cuMemFree_v2", (gpu.device_memory(),))
    yield "cuMemFree, managed", True, lambda: ("cuMemFree_v2", (gpu.managed_memory(),))
    yield "cuMemFreeHost", True, lambda: ("cuMemFreeHost", (gpu.pinned_memory(),))
    yield "cuMemHostUnregister", True, lambda: ("cuMemHostUnregister", (gpu.registered_memory(),))
    yield "cuModuleUnload", True, lambda: ("cuModuleUnload", (gpu.module(),))
    yield "cuMemAlloc", False, lambda: ("cuMemAlloc_v2", (ctypes.byref(taken), size))
    yield "cuMemAllocHost", False, lambda: ("cuMemAllocHost_v2", (ctypes.byref(taken), size))
    yield "cuMemAllocAsync", False, lambda: ("cuMemAllocAsync", (ctypes.byref(taken), size, stream))
    yield "cuMemFreeAsync", False, lambda: ("cuMemFreeAsync", (gpu.device_memory(), stream))
    handle, other_stream = ctypes.c_void_p(), gpu.created("cuStreamCreate", ctypes.c_uint(NON_BLOCKING))
    far = ctypes.byref(handle)
    yield (
        "cuMemAllocManaged",
        False,
        lambda: ("cuMemAllocManaged", (ctypes.byref(taken), size, ctypes.c_uint(MANAGED_GLOBAL))),
    )
    yield "cuMemHostRegister", False, lambda: ("cuMemHostRegister_v2", (gpu.pages(), size, flags))
    yield "cuMemGetInfo", False, lambda: ("cuMemGetInfo_v2", (ctypes.byref(taken), ctypes.byref(ctypes.c_size_t())))
    yield "cuModuleLoadData", True, lambda: ("cuModuleLoadData", (far, _MODULE))
    yield (
        "cuLibraryLoadData",
        False,
        lambda: ("cuLibraryLoadData", (far, _MODULE, None, None, flags, None, None, flags)),
    )
    yield "cuStreamCreate", False, lambda: ("cuStreamCreate", (far, flags))
    yield "cuStreamDestroy, idle", False, lambda: ("cuStreamDestroy_v2", (gpu.created("cuStreamCreate", flags),))
    yield "cuEventCreate", False, lambda: ("cuEventCreate", (far, flags))
    yield "cuEventDestroy", False, lambda: ("cuEventDestroy_v2", (gpu.created("cuEventCreate", flags),))
    yield (
        "cuGraphInstantiate",
        False,
        lambda: ("cuGraphInstantiateWithFlags", (far, gpu.graph(), ctypes.c_ulonglong(0))),
    )
    yield "cuGraphLaunch", False, lambda: ("cuGraphLaunch", (gpu.executable_graph(), stream))
    yield "cuGraphExecDestroy", False, lambda: ("cuGraphExecDestroy", (gpu.executable_graph(),))
    yield "cuStreamSynchronize, other stream", False, lambda: ("cuStreamSynchronize", (other_stream,))
    yield "cuMemcpyPeer", False, lambda: ("cuMemcpyPeer", (device, here.context, other, here.context, size))
    yield "cuCtxSetLimit, stack size", True, lambda: ("cuCtxSetLimit", (ctypes.c_uint(0), ctypes.c_size_t(2048)))
    yield "cuEventRecord", False, lambda: ("cuEventRecord", (event, stream))
    yield "cuStreamWaitEvent", False, lambda: ("cuStreamWaitEvent", (stream, event, flags))


def main(path: str) -> int:
    """Measure all calls on the driver at `path`; return the exit status."""
    gpu = Measured(Driver(path))
    for name, claimed, prepare in cases(gpu):
        answer: bool | str
        try:
            answer = gpu.waits(prepare())
        except ProbeError as error:
            answer = str(error)
        print(json.dumps([name, [answer, claimed]]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "libcuda.so.1"))
