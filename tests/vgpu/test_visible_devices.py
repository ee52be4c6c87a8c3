"""CUDA_VISIBLE_DEVICES: which devices a process sees, and in which order ("CUDA Environment Variables")."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ffm.vgpu.paths import library_folder
from tests.vgpu.runtime_programs import OURS, STATIC, compile_program

NO_DEVICE = 100

# Prints what cuInit answers and the UUID and the bus of each device that the process sees.
DEVICES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from cuda.bindings import driver
from tests.vgpu.virtual_gpu import checked, load
load()
status, = driver.cuInit(0)
seen = []
if status == driver.CUresult.CUDA_SUCCESS:
    for number in range(checked(driver.cuDeviceGetCount())):
        device = checked(driver.cuDeviceGet(number))
        name = checked(driver.cuDeviceGetPCIBusId(13, device))
        assert int(checked(driver.cuDeviceGetByPCIBusId(name))) == number
        seen.append([bytes(checked(driver.cuDeviceGetUuid(device)).bytes).hex(), name.decode().rstrip("\\0")])
print(json.dumps([int(status), seen]))
"""


def environment(folder: Path, visible: str | None, devices: int = 4) -> dict[str, str]:
    """Return the environment of a process on a machine with so many devices."""
    configuration = folder / "devices.vgpu"
    configuration.write_text(f"devices = {devices}\n")
    variables = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    variables["VGPU_CONFIGURATION"] = str(configuration)
    return variables if visible is None else {**variables, "CUDA_VISIBLE_DEVICES": visible}


def seen(folder: Path, visible: str | None, devices: int = 4) -> tuple[int, list[tuple[str, str]]]:
    """Return what cuInit answers, and the UUID and the bus of each device that a process sees."""
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, str(Path(__file__).parents[2])],
        capture_output=True, text=True, check=True, env=environment(folder, visible, devices),
    )  # fmt: skip
    status, found = json.loads(done.stdout)
    return status, [(uuid, bus) for uuid, bus in found]


def uuid_name(uuid: str) -> str:
    """Write the hexadecimal digits as nvidia-smi does."""
    return "GPU-" + "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The UUID and the bus of each of four devices."""
    status, all_devices = seen(tmp_path_factory.mktemp("machine"), None)
    assert status == 0
    assert len(set(all_devices)) == 4
    return all_devices


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        ("2", [2]),
        ("2,1", [2, 1]),
        (" 3 , 0", [3, 0]),
        ("0,2,-1,1", [0, 2]),
        ("1,4,0", [1]),
        ("1,none,0", [1]),
        ("1,,0", [1]),
        ("2nd,0", [2, 0]),
        ("1,MIG-1,0", [1]),
    ],
)
def test_process_sees_the_devices_before_the_first_invalid_number(
    tmp_path: Path, machine: list[tuple[str, str]], visible: str, numbers: list[int]
) -> None:
    assert seen(tmp_path, visible) == (0, [machine[number] for number in numbers])


@pytest.mark.parametrize("visible", ["", "-1", "4", "none", "NoDevFiles", "1,0,1"])
def test_a_process_without_visible_devices_cannot_use_the_driver(tmp_path: Path, visible: str) -> None:
    assert seen(tmp_path, visible) == (NO_DEVICE, [])


def test_devices_are_named_by_the_beginning_of_their_uuid(tmp_path: Path, machine: list[tuple[str, str]]) -> None:
    names = [uuid_name(uuid) for uuid, _ in machine]
    ambiguous, unique = "GPU-76677075-0", names[3][: len("GPU-76677075-03")]
    assert all(name.startswith(ambiguous) for name in names)
    assert seen(tmp_path, f"{names[2]},{unique}") == (0, [machine[2], machine[3]])
    assert seen(tmp_path, f"{names[2]},0,{names[1]}") == (0, [machine[2], machine[0], machine[1]])
    assert seen(tmp_path, f"{names[1]},{ambiguous},0") == (0, [machine[1]])
    assert seen(tmp_path, f"{names[1]},{names[1]}0,0") == (0, [machine[1]])
    assert seen(tmp_path, ambiguous, devices=1) == (0, [machine[0]])


COUNT = """
#include <cstdio>
#include <cuda_runtime_api.h>
int main()
{
    int count = -1; // stays so if there is no device
    cudaError_t error = cudaGetDeviceCount(&count);
    std::printf("%d %d\\n", static_cast<int>(error), count);
}
"""


@pytest.mark.parametrize("runtime", [OURS, STATIC], ids=["ours", "NVIDIA's"])
def test_the_runtime_counts_the_visible_devices(tmp_path: Path, runtime: tuple[str, ...]) -> None:
    source, program = tmp_path / "count.cpp", tmp_path / "count"
    source.write_text(COUNT)
    compile_program(source, program, runtime)
    for visible, expected in ((None, "0 4\n"), ("3,1", "0 2\n"), ("", "100 -1\n")):
        variables = {**environment(tmp_path, visible), "LD_LIBRARY_PATH": str(library_folder())}
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True, env=variables)
        assert done.stdout == expected


# Imports memory from standard input, and prints the number of its device.
IMPORT = """
import sys
sys.path.insert(0, sys.argv[1])
from cuda.bindings import driver
from tests.vgpu.virtual_gpu import checked, load
load()
checked(driver.cuInit(0))
kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
status, handle = driver.cuMemImportFromShareableHandle(0, kind)
if status == driver.CUresult.CUDA_SUCCESS:
    print(checked(driver.cuMemGetAllocationPropertiesFromHandle(handle)).location.id)
else:
    print(status.name)
"""

# Creates memory on device 1 and runs IMPORT on it, with the devices that the second argument names.
EXPORT = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from cuda.bindings import driver
from tests.vgpu.virtual_gpu import checked, load
load()
checked(driver.cuInit(0))
properties = driver.CUmemAllocationProp()
properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
properties.requestedHandleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
properties.location.id = 1
handle = checked(driver.cuMemCreate(2 << 20, properties, 0))
descriptor = checked(driver.cuMemExportToShareableHandle(handle, properties.requestedHandleTypes, 0))
subprocess.run(
    [sys.executable, "-c", sys.argv[3], sys.argv[1]],
    stdin=descriptor, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": sys.argv[2]},
)
"""


@pytest.mark.parametrize(("visible", "found"), [("2,1", "0"), ("3,0,2", "2"), ("0,1", "CUDA_ERROR_INVALID_VALUE")])
def test_shared_memory_stays_on_its_device(tmp_path: Path, visible: str, found: str) -> None:
    """The exporting process sees the machine's devices 1 and 2; the memory is on the machine's 2, its own 1."""
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, str(Path(__file__).parents[2]), visible, IMPORT],
        capture_output=True, text=True, check=False, env=environment(tmp_path, "1,2"),
    )  # fmt: skip
    assert done.stdout == f"{found}\n", done.stderr
