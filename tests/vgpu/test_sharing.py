"""Device memory that one process hands to another (`cuIpcGetMemHandle`)."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import Status, download, quick_gpu, upload
from tests.vgpu.virtual_gpu import checked

pytestmark = pytest.mark.virtual_gpu

# Prints the memory's bytes, adds one to each, and says what else the driver answers.
OTHER = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from cuda.bindings import driver
from tests.vgpu.ptx import download, quick_gpu
from tests.vgpu.virtual_gpu import checked
handle = driver.CUipcMemHandle()
ctypes.memmove(handle.getPtr(), bytes.fromhex(sys.argv[2]), 64)
with quick_gpu():
    address = checked(driver.cuIpcOpenMemHandle(handle, 1))
    assert int(checked(driver.cuIpcOpenMemHandle(handle, 1))) == int(address)
    values = download(address, np.zeros(300, np.uint32))
    print(values.sum())
    values += 1
    checked(driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))
    assert driver.cuMemFree(address)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    for expected in (0, 0, 1):
        assert driver.cuIpcCloseMemHandle(address)[0] == expected
    assert driver.cuMemcpyDtoH(values.ctypes.data, address, 4)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
"""


def open_elsewhere(handle: driver.CUipcMemHandle) -> str:
    """Return what another process prints that opens the memory."""
    command = [sys.executable, "-c", OTHER, str(Path(__file__).parents[2]), ctypes.string_at(handle.getPtr(), 64).hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_another_process_reads_and_writes_device_memory() -> None:
    values = np.arange(300, dtype=np.uint32)
    with quick_gpu():
        neighbour, address = upload(values * 7), upload(values)
        handle = checked(driver.cuIpcGetMemHandle(address))
        assert open_elsewhere(handle) == f"{values.sum()}\n"
        assert (download(address, values) == values + 1).all()
        assert (download(neighbour, values) == values * 7).all()
        assert open_elsewhere(checked(driver.cuIpcGetMemHandle(address))) == f"{(values + 1).sum()}\n"
        assert driver.cuMemFree(address)[0] == Status.CUDA_SUCCESS


def test_what_cannot_be_shared_or_opened_is_refused() -> None:
    with quick_gpu():
        handle = checked(driver.cuIpcGetMemHandle(upload(np.zeros(4, np.uint32))))
        assert driver.cuIpcOpenMemHandle(handle, 1)[0] == Status.CUDA_ERROR_INVALID_CONTEXT  # one's own memory
        assert driver.cuIpcOpenMemHandle(handle, 0)[0] == Status.CUDA_ERROR_INVALID_VALUE
        ctypes.memset(handle.getPtr(), 0, 64)
        assert driver.cuIpcOpenMemHandle(handle, 1)[0] == Status.CUDA_ERROR_INVALID_HANDLE
        pinned = checked(driver.cuMemAllocHost(64))
        assert driver.cuIpcGetMemHandle(int(pinned))[0] == Status.CUDA_ERROR_INVALID_VALUE
        assert driver.cuIpcCloseMemHandle(int(pinned))[0] == Status.CUDA_ERROR_INVALID_VALUE
