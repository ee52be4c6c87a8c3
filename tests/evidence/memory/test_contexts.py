"""Which contexts' work has memory in common, from the recorded calls of a process with two devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.memory.contexts import contexts_apart
from ffm.evidence.program_order import operations_of
from ffm.instrument.recording.layout import constant, record_type

BUFFERS = (0x10000, 0x20000)
"""Of 4096 bytes, one on each device."""

HOST = 0x800000


def call(function: str, context: int, **fields: int) -> dict[str, Any]:
    """A call in a context, with the fields that differ from zero."""
    flags = fields.pop("flags", 0) | context << constant("FFM_OPERATION_CONTEXT_SHIFT")
    return {"function": load_catalogue()[function].index, "flags": flags, **fields}


def kernel(context: int, flag: str = "FFM_OPERATION_DEVICE_ONLY") -> dict[str, Any]:
    return call("cuLaunchKernel", context, flags=constant(flag) if flag else 0)


def upload(context: int, host: int, bytes: int = 4096, device: int | None = None) -> dict[str, Any]:
    to = BUFFERS[context if device is None else device]
    flags = constant("FFM_OPERATION_HOST_SOURCE")
    return call("cuMemcpyHtoDAsync_v2", context, source=host, destination=to, bytes=bytes, flags=flags)


def download(context: int, host: int, bytes: int = 4096) -> dict[str, Any]:
    flags = constant("FFM_OPERATION_HOST_DESTINATION")
    return call("cuMemcpyDtoHAsync_v2", context, source=BUFFERS[context], destination=host, bytes=bytes, flags=flags)


def apart(*calls: dict[str, Any], devices: tuple[int, ...] = (0, 1)) -> bool:
    """Return whether contexts 0 and 1 are apart, both ways, after each has allocated its buffer."""
    names = (
        "start", "duration", "wait", "waits", "destination", "source", "stream", "handle", "bytes", "flags", "result",
        "process", "thread", "stack", "function",
    )  # fmt: skip
    allocations = [
        call("cuMemAlloc_v2", context, destination=address, bytes=4096) for context, address in enumerate(BUFFERS)
    ]
    rows = [{"start": 1_000 * place, "stack": place, **row} for place, row in enumerate([*allocations, *calls])]
    columns = {name: np.array([row.get(name, 0) for row in rows]) for name in names}
    for name in ("destination", "source", "stream", "handle", "bytes"):
        columns[name] = columns[name].astype(np.uint64)
    contexts = np.zeros(len(devices), record_type("ffm_context"))
    contexts["number"], contexts["device"] = np.arange(len(devices)), devices
    found = contexts_apart(columns, operations_of(columns), contexts)
    assert (found == found.T).all()
    assert not found.diagonal().any()
    return bool(found[0, 1])


def test_kernels_of_two_devices_are_apart_unless_one_reaches_what_the_other_uses() -> None:
    assert apart(kernel(0), kernel(1))
    assert apart(kernel(0, ""), kernel(1))
    assert not apart(kernel(0, ""), kernel(1, ""))
    assert not apart(kernel(0, ""), upload(1, HOST))
    assert not apart(kernel(0), kernel(1), call("cuCtxEnablePeerAccess", 1, handle=77))


def test_what_a_device_or_a_call_is_not_known_to_do_is_in_common() -> None:
    assert not apart(kernel(0), kernel(1), devices=(0, 0))
    assert not apart(kernel(0), kernel(1), devices=(0,))
    for unknown in ("cuGraphLaunch", "cuLaunchHostFunc", "cuStreamWriteValue32_v2", "cuMemcpyBatchAsync"):
        assert not apart(kernel(0), kernel(1), call(unknown, 1)), unknown
    for opened in ("cuMemMap", "cuMemAllocAsync", "cuIpcGetMemHandle", "cuImportExternalMemory"):
        assert not apart(call(opened, 1, destination=0x90000, bytes=64), kernel(0), kernel(1)), opened
    private = {"function": constant("FFM_FUNCTION_PRIVATE"), "flags": 0}
    assert not apart(kernel(0), kernel(1), private)


def test_a_context_that_ended_may_have_given_its_number_to_another_device() -> None:
    ends = call("cuDevicePrimaryCtxReset_v2", 0)
    assert apart(kernel(0), kernel(1), ends)
    assert not apart(kernel(0), ends, kernel(1))


@pytest.mark.parametrize(("begin", "together"), [(HOST, True), (HOST + 4095, True), (HOST + 4096, False)])
def test_copies_are_apart_if_they_use_different_memory_of_the_host(begin: int, together: bool) -> None:
    assert apart(download(0, HOST), upload(1, begin)) is not together
    assert apart(upload(0, begin), download(1, HOST)) is not together
    assert apart(download(0, begin), download(1, HOST)) is not together
    assert apart(upload(0, begin), upload(1, HOST))


def test_a_copy_uses_the_device_that_its_address_is_on() -> None:
    peer = call("cuMemcpyPeerAsync", 0, source=BUFFERS[0], destination=BUFFERS[1], bytes=64)
    assert not apart(peer, kernel(1))
    assert not apart(upload(0, HOST, device=1), kernel(1))
    assert apart(upload(0, HOST), kernel(1))
    elsewhere = call("cuMemsetD8Async", 0, destination=0x70000, bytes=64)
    assert not apart(elsewhere, kernel(1))
    assert apart(call("cuMemsetD8Async", 0, destination=BUFFERS[0] + 64, bytes=64), kernel(1))


def test_rows_of_a_pitched_copy_may_be_anywhere_in_host_memory() -> None:
    flags = constant("FFM_OPERATION_HOST_SOURCE")
    rows = call("cuMemcpy2DAsync_v2", 0, source=HOST, destination=BUFFERS[0], bytes=64, flags=flags)
    assert apart(rows, kernel(1))
    assert not apart(rows, download(1, HOST + 0x100000))


def test_addresses_that_two_devices_had_one_after_the_other_name_neither() -> None:
    again = call("cuMemAlloc_v2", 1, destination=BUFFERS[0] + 2048, bytes=4096)
    assert not apart(again, kernel(0), kernel(1))
