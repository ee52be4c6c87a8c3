"""Several devices (`devices = N`): each has its own memory, engines, contexts, streams and pools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from ffm.vgpu.paths import library_folder
from tests.vgpu.ptx import Program, download, kernel, upload
from tests.vgpu.runtime_programs import OURS, STATIC, compile_program
from tests.vgpu.virtual_gpu import Held, Pinned, checked, load, pattern, waits

HERE = Path(__file__).resolve().parent
Status = driver.CUresult
SIZE = 1 << 20


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    path = tmp_path / "devices.vgpu"
    path.write_text("devices = 3\ndevice.memory = 1\n")
    return str(path)


@contextmanager
def contexts(configuration: str) -> Iterator[list[Any]]:
    """Create a context on each of three devices; the last one is current."""
    os.environ.setdefault("VGPU_CONFIGURATION", configuration)
    load()
    checked(driver.cuInit(0))
    made = [checked(driver.cuCtxCreate(None, 0, device)) for device in range(3)]
    try:
        yield made
    finally:
        for one in made:
            checked(driver.cuCtxDestroy(one))


def use(context: Any) -> None:
    checked(driver.cuCtxSetCurrent(context))


@pytest.mark.virtual_gpu
def test_devices_differ_by_identity_and_own_their_memory(configuration: str) -> None:
    with contexts(configuration) as made:
        assert checked(driver.cuDeviceGetCount()) == 3
        assert driver.cuDeviceGet(3)[0] == Status.CUDA_ERROR_INVALID_DEVICE
        names = [checked(driver.cuDeviceGetPCIBusId(13, device)) for device in range(3)]
        assert (
            len(set(names)) == len({bytes(checked(driver.cuDeviceGetUuid(device)).bytes) for device in range(3)}) == 3
        )
        assert [int(checked(driver.cuDeviceGetByPCIBusId(name))) for name in names] == [0, 1, 2]
        free = []
        for device, one in enumerate(made):
            use(one)
            assert int(checked(driver.cuCtxGetDevice())) == device
            pointer = checked(driver.cuMemAlloc(SIZE << device))
            ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            assert checked(driver.cuPointerGetAttribute(ordinal, pointer)) == device
            free.append(checked(driver.cuMemGetInfo())[0])
        total = checked(driver.cuDeviceTotalMem(0))
        assert [total - left for left in free] == [SIZE, 2 * SIZE, 4 * SIZE]


@pytest.mark.virtual_gpu
def test_copies_between_devices_bring_the_bytes(configuration: str) -> None:
    expected = pattern(SIZE)
    with contexts(configuration) as made:
        pointers = []
        for one in made:
            use(one)
            pointers.append(checked(driver.cuMemAlloc(SIZE)))
        use(made[0])
        checked(driver.cuMemcpyHtoD(pointers[0], expected.ctypes.data, SIZE))
        checked(driver.cuMemcpyPeer(pointers[1], made[1], pointers[0], made[0], SIZE))
        checked(driver.cuMemcpy(pointers[2], pointers[1], SIZE))
        use(made[2])
        found = np.zeros_like(expected)
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemcpyDtoH(found.ctypes.data, pointers[2], SIZE))
        # Nothing orders this behind the other device's copy, of which it may see a part.
        assert ((found == 0) | (found == expected)).all()
        use(made[0])
        checked(driver.cuCtxSynchronize())
        checked(driver.cuMemcpyDtoH(found.ctypes.data, pointers[2], SIZE))
        assert (found == expected).all()


@pytest.mark.virtual_gpu
def test_peer_access_is_enabled_once_by_direction(configuration: str) -> None:
    with contexts(configuration) as made:
        use(made[0])
        assert checked(driver.cuDeviceCanAccessPeer(0, 1)) == 1
        assert checked(driver.cuDeviceCanAccessPeer(1, 1)) == 0
        assert driver.cuCtxDisablePeerAccess(made[1])[0] == Status.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
        checked(driver.cuCtxEnablePeerAccess(made[1], 0))
        assert driver.cuCtxEnablePeerAccess(made[1], 0)[0] == Status.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        assert driver.cuCtxEnablePeerAccess(made[0], 0)[0] == Status.CUDA_ERROR_INVALID_CONTEXT
        use(made[1])
        assert driver.cuCtxDisablePeerAccess(made[0])[0] == Status.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
        use(made[0])
        checked(driver.cuCtxDisablePeerAccess(made[1]))


@pytest.mark.virtual_gpu
def test_waiting_for_one_device_does_not_wait_for_another(configuration: str) -> None:
    with contexts(configuration) as made:
        use(made[0])
        held = Held(checked(driver.cuStreamCreate(0)))
        use(made[1])
        checked(driver.cuCtxSynchronize())
        assert not held.is_over()
        held.release()
        use(made[0])
        held = Held(checked(driver.cuStreamCreate(0)))
        assert waits(made[0], held, lambda: checked(driver.cuCtxSynchronize()))


@pytest.mark.virtual_gpu
def test_streams_wait_for_events_of_other_devices(configuration: str) -> None:
    with contexts(configuration) as made:
        use(made[0])
        event, stream = checked(driver.cuEventCreate(0)), checked(driver.cuStreamCreate(0))
        held = Held(stream)
        checked(driver.cuEventRecord(event, stream))
        use(made[1])
        other, behind = checked(driver.cuStreamCreate(0)), checked(driver.cuEventCreate(0))
        checked(driver.cuStreamWaitEvent(other, event, 0))
        checked(driver.cuEventRecord(behind, other))
        assert driver.cuEventRecord(event, other)[0] == Status.CUDA_ERROR_INVALID_HANDLE
        assert driver.cuEventQuery(behind)[0] == Status.CUDA_ERROR_NOT_READY
        held.release()
        checked(driver.cuStreamSynchronize(other))
        assert driver.cuEventElapsedTime(event, behind)[0] == Status.CUDA_ERROR_INVALID_HANDLE


@pytest.mark.virtual_gpu
def test_peer_copy_comes_after_both_devices_work_and_before_what_follows(configuration: str) -> None:
    with contexts(configuration) as made:
        use(made[1])
        source = checked(driver.cuMemAlloc(16))
        checked(driver.cuMemsetD8(source, 0, 16))
        held = Held(checked(driver.cuStreamCreate(0)))
        use(made[0])
        destination, landed = checked(driver.cuMemAlloc(16)), Pinned(16)
        checked(driver.cuMemsetD8(destination, 1, 16))
        checked(driver.cuMemcpyPeer(destination, made[0], source, made[1], 16))
        behind = checked(driver.cuEventCreate(0))
        checked(driver.cuMemcpyDtoHAsync(landed.address, destination, 16, 0))
        checked(driver.cuEventRecord(behind, 0))
        assert driver.cuEventQuery(behind)[0] == Status.CUDA_ERROR_NOT_READY
        held.release()
        checked(driver.cuCtxSynchronize())
        assert not landed.bytes.any()


FAULTS = {
    "st.global.u32 [16], 1;": Status.CUDA_ERROR_ILLEGAL_ADDRESS,
    "ld.global.u32 %r1, [%a0+2]; st.global.u32 [%a0], %r1;": Status.CUDA_ERROR_MISALIGNED_ADDRESS,
    "again: bra again;": Status.CUDA_ERROR_LAUNCH_TIMEOUT,
}


@pytest.mark.virtual_gpu(fresh=True)
@pytest.mark.parametrize("body", FAULTS)
def test_a_fault_ends_the_contexts_of_its_device_alone(tmp_path: Path, body: str) -> None:
    path = tmp_path / "faults.vgpu"
    settings = "devices = 3\ndevice.time_limit = 1\ndevice.pageable_memory_access = 0\ndevice.cache = none\n"
    path.write_text(settings + "call.compile = 0\nkernel.default = 0\n")
    text, good = kernel("bad", 1, body), kernel("good", 1, "st.global.u32 [%a0], 7;")
    with contexts(str(path)) as made:
        programs, addresses = [], []
        for one in made:
            use(one)
            programs.append(Program(text + good))
            addresses.append(upload(np.zeros(16, np.uint32)))
        use(made[1])
        assert programs[1].launch("bad", 2, 32, addresses[1]) == FAULTS[body]
        assert driver.cuMemAlloc(4)[0] == FAULTS[body]
        for device in (0, 2):
            use(made[device])
            assert programs[device].launch("good", 1, 1, addresses[device]) == Status.CUDA_SUCCESS
            assert download(addresses[device], np.zeros(1, np.uint32))[0] == 7
        checked(driver.cuCtxDestroy(made[1]))
        made[1] = checked(driver.cuCtxCreate(None, 0, 1))
        address = upload(np.zeros(1, np.uint32))
        assert Program(good).launch("good", 1, 1, address) == Status.CUDA_SUCCESS
        assert download(address, np.zeros(1, np.uint32))[0] == 7


@pytest.mark.virtual_gpu
def test_contexts_of_a_device_are_pushed_popped_and_share_its_memory(configuration: str) -> None:
    with contexts(configuration) as made:
        second = checked(driver.cuCtxCreate(None, 0, 1))
        assert int(checked(driver.cuCtxGetDevice())) == 1
        mine = checked(driver.cuMemAlloc(SIZE))
        free = checked(driver.cuMemGetInfo())[0]
        checked(driver.cuCtxPushCurrent(made[1]))
        assert checked(driver.cuMemGetInfo())[0] == free
        held = Held(checked(driver.cuStreamCreate(0)))
        assert int(checked(driver.cuCtxPopCurrent())) == int(made[1])
        assert int(checked(driver.cuCtxGetCurrent())) == int(second)
        checked(driver.cuCtxSynchronize())
        assert not held.is_over()
        held.release()
        primary = checked(driver.cuDevicePrimaryCtxRetain(1))
        assert int(primary) not in (int(second), int(made[1]))
        assert int(checked(driver.cuDevicePrimaryCtxRetain(1))) == int(primary)
        checked(driver.cuCtxPushCurrent(primary))
        assert checked(driver.cuMemGetInfo())[0] == free
        checked(driver.cuCtxPopCurrent())
        checked(driver.cuDevicePrimaryCtxRelease(1))
        checked(driver.cuDevicePrimaryCtxRelease(1))
        use(second)
        checked(driver.cuMemFree(mine))
        checked(driver.cuCtxDestroy(second))


@pytest.mark.virtual_gpu
def test_a_context_that_was_attached_ends_with_its_last_detachment(configuration: str) -> None:
    with contexts(configuration):
        made = checked(driver.cuCtxCreate(None, 0, 0))
        assert int(checked(driver.cuCtxAttach(0))) == int(made)
        checked(driver.cuCtxDetach(made))
        assert int(checked(driver.cuCtxGetCurrent())) == int(made)
        checked(driver.cuCtxDetach(made))
        assert driver.cuCtxDetach(made)[0] == Status.CUDA_ERROR_INVALID_CONTEXT
        primary = checked(driver.cuDevicePrimaryCtxRetain(0))
        checked(driver.cuCtxPushCurrent(primary))
        assert driver.cuCtxAttach(1)[0] == Status.CUDA_ERROR_INVALID_VALUE
        assert driver.cuCtxDetach(primary)[0] == Status.CUDA_ERROR_INVALID_CONTEXT
        checked(driver.cuCtxPopCurrent())
        checked(driver.cuDevicePrimaryCtxRelease(0))


@pytest.mark.virtual_gpu
def test_pools_belong_to_devices(configuration: str) -> None:
    with contexts(configuration) as made:
        pools = [checked(driver.cuDeviceGetMemPool(device)) for device in range(3)]
        assert len({int(pool) for pool in pools}) == 3
        assert driver.cuDeviceSetMemPool(0, pools[1])[0] == Status.CUDA_ERROR_INVALID_VALUE
        use(made[1])
        pointer = checked(driver.cuMemAllocAsync(SIZE, 0))
        ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        assert checked(driver.cuPointerGetAttribute(ordinal, pointer)) == 1
        checked(driver.cuMemFreeAsync(pointer, 0))


@pytest.mark.parametrize("runtime", [OURS, STATIC], ids=["ours", "NVIDIA's"])
def test_program_uses_two_devices(tmp_path: Path, runtime: tuple[str, ...]) -> None:
    """Kernels, peer copies and default streams, on either runtime. 3 seconds each."""
    program = tmp_path / "devices"
    compile_program(HERE / "programs" / "devices.cpp", program, runtime)
    (tmp_path / "devices.vgpu").write_text("devices = 2\n")
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(library_folder())},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "all answered\n"), done.stdout + done.stderr


@pytest.mark.parametrize("count", ["0", "1.5", "17", "two"])
def test_wrong_number_of_devices_is_refused(tmp_path: Path, count: str) -> None:
    configuration = tmp_path / "wrong.vgpu"
    configuration.write_text(f"devices = {count}\n")
    code = f"import ctypes; print(ctypes.CDLL('{library_folder() / 'libcuda.so.1'}').cuInit(0))"
    done = subprocess.run(
        ["python3", "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "VGPU_CONFIGURATION": str(configuration)},
    )  # fmt: skip
    assert done.stdout == "1\n"
    assert f":1: '{count}' is no whole number from 1 to 16" in done.stderr
