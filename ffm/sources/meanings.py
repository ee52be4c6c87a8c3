"""What a call means, by its name in the runtime's or the driver's interface: the catalogue's row of the driver."""

from __future__ import annotations

import re
from functools import cache

from ffm.driver.catalogue import DriverFunction, load_catalogue

_RENAMED = {
    "cudaDeviceSynchronize": "cuCtxSynchronize",
    "cudaThreadSynchronize": "cuCtxSynchronize",
    "cudaMalloc": "cuMemAlloc",
    "cudaMalloc3D": "cuMemAllocPitch",
    "cudaMallocPitch": "cuMemAllocPitch",
    "cudaMallocHost": "cuMemAllocHost",
    "cudaMallocManaged": "cuMemAllocManaged",
    "cudaMallocAsync": "cuMemAllocAsync",
    "cudaMallocFromPoolAsync": "cuMemAllocFromPoolAsync",
    "cudaHostAlloc": "cuMemHostAlloc",
    "cudaHostRegister": "cuMemHostRegister",
    "cudaHostUnregister": "cuMemHostUnregister",
    "cudaFree": "cuMemFree",
    "cudaFreeHost": "cuMemFreeHost",
    "cudaFreeAsync": "cuMemFreeAsync",
    "cudaLaunch": "cuLaunch",
    "cudaLaunchKernelExC": "cuLaunchKernelEx",
    "cudaLaunchHostFunc": "cuLaunchHostFunc",
    "cudaMemPrefetchAsync": "cuMemPrefetchAsync",
    "clFinish": "cuStreamSynchronize",
    "clWaitForEvents": "cuEventSynchronize",
    "clEnqueueNDRangeKernel": "cuLaunchKernel",
    "clEnqueueReadBuffer": "cuMemcpyDtoHAsync",
    "clEnqueueWriteBuffer": "cuMemcpyHtoDAsync",
}
"""The runtime's functions whose driver functions have other names (the pages of both in CUDA's API references), and
those of OpenCL that do the same.
"""

_COPY = re.compile(r"cudaMemcpy\w*?(Async)?(_ptsz|_ptds)?")
_SET = re.compile(r"cudaMemset\w*?(Async)?(_ptsz|_ptds)?")


@cache
def meaning(name: str) -> DriverFunction | None:
    """Return the driver function that does the same as a call; None if it is in no table."""
    if copy := _COPY.fullmatch(name):
        return _driver_function("cuMemcpyAsync" if copy[1] else "cuMemcpy")
    if set_ := _SET.fullmatch(name):
        return _driver_function("cuMemsetD8Async" if set_[1] else "cuMemsetD8")
    return _driver_function(_RENAMED.get(name, re.sub(r"^cuda(?=[A-Z])", "cu", name)))


@cache
def _driver_functions() -> dict[str, DriverFunction]:
    found: dict[str, DriverFunction] = {}
    for function in load_catalogue().functions:
        found[function.name] = function
        found.setdefault(re.sub(r"_v\d+$", "", function.name), function)
    return found


def _driver_function(name: str) -> DriverFunction | None:
    return _driver_functions().get(name)
