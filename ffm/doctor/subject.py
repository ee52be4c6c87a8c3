"""A small program that loads a driver and reports its answers: `python -m ffm.doctor.subject ORDER ANSWER`.

`ffm.doctor.examination` runs it with or without hooks in place. ORDER and ANSWER are JSON files (`Order`, `Answer`
of that module). It needs a driver, but no GPU.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

from ffm.instrument.probing.probe_driver import Driver, ProbeError, loaded_at

LEGACY_STREAM, PER_THREAD_STREAM = 1, 2
"""`CU_GET_PROC_ADDRESS_LEGACY_STREAM` and `…_PER_THREAD_DEFAULT_STREAM` of cuda.h."""

_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR` of cuda.h."""


def examine(order: dict[str, Any]) -> dict[str, Any]:
    """Load the driver and query everything. Raises `ProbeError` if it cannot be loaded."""
    driver = Driver(order["library"])
    if not driver.has("initialise"):
        raise ProbeError(f"{order['library']} is not a CUDA driver: it does not export cuInit")
    base, path = loaded_at(driver.address("initialise"))
    version = ctypes.c_int()
    initialised = driver.result("initialise", ctypes.c_uint(0))
    driver.result("driver_version", ctypes.byref(version))
    return {
        "path": path,
        "version": version.value,
        "initialised": initialised,
        "meaning": driver.meaning(initialised) if initialised else "",
        **(_device(driver) if initialised == 0 else {}),
        "entry_points": entry_points(driver, base, order["names"], order["versions"]),
    }


def _device(driver: Driver) -> dict[str, Any]:
    """Return name and compute capability of the first device; nothing if there is none."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    if driver.result("device", ctypes.byref(device), ctypes.c_int(0)) != 0:
        return {}
    driver.result("device_name", name, ctypes.c_int(256), device)
    driver.result("device_attribute", ctypes.byref(major), ctypes.c_int(_CAPABILITY_MAJOR), device)
    driver.result("device_attribute", ctypes.byref(minor), ctypes.c_int(_CAPABILITY_MINOR), device)
    return {"device": name.value.decode(errors="replace"), "capability": [major.value, minor.value]}


def entry_points(driver: Driver, base: int, names: list[str], versions: list[int]) -> list[list[Any]]:
    """Return [requested name, version, flags, offset] for all answers of `cuGetProcAddress`.

    A version and variant with the same answer as the version before is left out.
    """
    if not driver.has("entry_point"):
        return []
    found: list[list[Any]] = []
    pointer = ctypes.c_void_p()
    for name in names:
        for flags in (LEGACY_STREAM, PER_THREAD_STREAM):
            last = None
            for version in versions:
                pointer.value = None
                result = driver.result(
                    "entry_point",
                    name.encode(),
                    ctypes.byref(pointer),
                    ctypes.c_int(version),
                    ctypes.c_uint64(flags),
                )
                if result == 0 and pointer.value and pointer.value != last:
                    last = pointer.value
                    found.append([name, version, flags, last - base])
    return found


def main(arguments: list[str]) -> int:
    """Execute the order in the first file, write the answer to the second; return the exit status."""
    if len(arguments) != 2:
        print("usage: python -m ffm.doctor.subject ORDER ANSWER", file=sys.stderr)
        return 2
    order = json.loads(Path(arguments[0]).read_text())
    try:
        answer = examine(order)
    except ProbeError as error:
        answer = {"error": str(error)}
    Path(arguments[1]).write_text(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
