"""What the driver reports about the parameters of kernels, and launches with packed ones (CUDA Driver API)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Pinned, checked, context, load

pytestmark = pytest.mark.virtual_gpu

BUFFER_POINTER, BUFFER_SIZE, END = 1, 2, 0
INVALID_VALUE = driver.CUresult.CUDA_ERROR_INVALID_VALUE
RUN = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_void_p)
)


class Parameters(ctypes.Structure):
    """The parameters of `store(int *target, short small, double scale)`, packed."""

    _fields_ = (("target", ctypes.c_uint64), ("small", ctypes.c_int16), ("scale", ctypes.c_double))


class Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", RUN),
        ("parameters", ctypes.POINTER(ctypes.c_uint32 * 2)),
        ("count", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
    )


class Image(ctypes.Structure):
    _fields_ = (
        ("header", ctypes.c_uint8 * 64),
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("first", ctypes.POINTER(Entry)),
    )


class Kernel:
    """A loaded kernel that stores scale * small where target points."""

    def __init__(self) -> None:
        layout = [(getattr(Parameters, name).offset, getattr(Parameters, name).size) for name, _ in Parameters._fields_]
        self._parameters = (ctypes.c_uint32 * 2 * 3)(*((ctypes.c_uint32 * 2)(*pair) for pair in layout))
        self._entry = Entry(b"store", RUN(self._run), self._parameters, 3, None)
        header = (ctypes.c_uint8 * 64)(*b"\x7fELF")
        self._image = Image(header, 0x55504776, 3, ctypes.pointer(self._entry))
        self.library = checked(driver.cuLibraryLoadData(ctypes.addressof(self._image), None, None, 0, None, None, 0))
        self.kernel = checked(driver.cuLibraryGetKernel(self.library, b"store"))
        self.function = checked(driver.cuKernelGetFunction(self.kernel))

    def _run(self, _grid: Any, _block: Any, arguments: Any) -> None:
        target = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64))[0]
        small = ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_int16))[0]
        scale = ctypes.cast(arguments[2], ctypes.POINTER(ctypes.c_double))[0]
        ctypes.cast(target, ctypes.POINTER(ctypes.c_int32))[0] = int(scale * small)

    def launch(self, extra: Any) -> driver.CUresult:
        """Launch one thread with `extra`, and wait for it."""
        status = driver.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, 0, 0, ctypes.addressof(extra))[0]
        checked(driver.cuCtxSynchronize())
        return status


def packed(parameters: Parameters, size: ctypes.c_size_t) -> Any:
    """The `extra` of cuLaunchKernel; what it points to lives as long as it."""
    words = BUFFER_POINTER, ctypes.addressof(parameters), BUFFER_SIZE, ctypes.addressof(size), END
    extra = (ctypes.c_void_p * len(words))(*words)
    extra.pointed_to = parameters, size
    return extra


@pytest.mark.parametrize("of_kernel", [False, True], ids=["cuFuncGetParamInfo", "cuKernelGetParamInfo"])
def test_offset_and_size_of_every_parameter(of_kernel: bool) -> None:
    with context():
        kernel = Kernel()
        ask: Callable[[int], Any] = (
            (lambda index: driver.cuKernelGetParamInfo(kernel.kernel, index))
            if of_kernel
            else (lambda index: driver.cuFuncGetParamInfo(kernel.function, index))
        )
        assert [checked(ask(index)) for index in range(3)] == [(0, 8), (8, 2), (16, 8)]
        assert ask(3)[0] == INVALID_VALUE


@pytest.mark.parametrize("name", ["cuFuncGetParamInfo", "cuKernelGetParamInfo"])
def test_the_size_need_not_be_asked_for_and_the_offset_must(name: str) -> None:
    with context():
        kernel = Kernel()
        call = getattr(load(), name)
        call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        handle = int(kernel.kernel if name == "cuKernelGetParamInfo" else kernel.function)
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        assert call(handle, 2, ctypes.byref(offset), None) == 0
        assert offset.value == 16
        assert call(handle, 2, None, ctypes.byref(size)) == int(INVALID_VALUE)
        assert call(None, 0, ctypes.byref(offset), None) == int(INVALID_VALUE)


def test_packed_parameters_reach_the_kernel() -> None:
    with context():
        kernel = Kernel()
        target = Pinned(4)
        parameters = Parameters(target.address, -3, 2.5)
        assert kernel.launch(packed(parameters, ctypes.c_size_t(24))) == driver.CUresult.CUDA_SUCCESS
        assert target.bytes.view("int32")[0] == -7


@pytest.mark.parametrize("size", [23, 0])
def test_a_buffer_that_is_too_short_is_refused(size: int) -> None:
    with context():
        assert Kernel().launch(packed(Parameters(), ctypes.c_size_t(size))) == INVALID_VALUE


def test_an_unknown_word_among_packed_parameters_is_refused() -> None:
    with context():
        assert Kernel().launch((ctypes.c_void_p * 3)(9, 0, END)) == INVALID_VALUE


PTX = b"""
// a comment
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 data) { ret; }
.visible .entry half() { ret; }
"""


@pytest.mark.parametrize(
    ("image", "error"),
    [
        (b"\x7fELF and so on", driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU),
        (b"no image at all", driver.CUresult.CUDA_ERROR_INVALID_IMAGE),
        (PTX.replace(b"sm_80", b"sm_120"), driver.CUresult.CUDA_ERROR_INVALID_PTX),
        (b".text without a version", driver.CUresult.CUDA_ERROR_INVALID_IMAGE),
    ],
    ids=["machine code", "text", "later device", "other text"],
)
def test_images_that_cannot_be_loaded_say_why(image: bytes, error: Any) -> None:
    with context():
        assert driver.cuModuleLoadData(image)[0] == error
        assert driver.cuLibraryLoadData(image, None, None, 0, None, None, 0)[0] == error


@pytest.mark.virtual_gpu(fresh=True)
def test_compiled_kernels_are_known_and_refused_where_that_is_configured(tmp_path: Path) -> None:
    refusing = tmp_path / "refuse.vgpu"
    refusing.write_text("device.code = refuse\n")
    os.environ["VGPU_CONFIGURATION"] = str(refusing)
    with context():
        module = checked(driver.cuModuleLoadData(PTX))
        for name in (b"twice", b"half"):
            assert driver.cuModuleGetFunction(module, name)[0] == driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
        assert driver.cuModuleGetFunction(module, b"other")[0] == driver.CUresult.CUDA_ERROR_NOT_FOUND
        checked(driver.cuModuleUnload(module))
