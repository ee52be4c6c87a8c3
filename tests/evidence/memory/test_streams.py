"""Which streams' work has memory in common, from the recorded calls of a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.handles import NON_BLOCKING
from ffm.evidence.memory import kernels, uses
from ffm.evidence.memory.kernels import GivenMemory
from ffm.evidence.memory.streams import streams_with_memory
from ffm.evidence.program_order import operations_of
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.names import RecordedKernel, RecordedModule

FIRST, SECOND, THIRD = 0x10000, 0x20000, 0x21000
"""Allocations of 4096 bytes; the last two touch."""

HOST = 0x800000
STREAMS = (0x111, 0x222)
CODE, KERNEL = 0xC0, 0xC1
"""Handles of code without variables, and of a kernel of it."""

READER, WRITER, FINDER = 0xF1, 0xF2, 0xF3
"""Handles of kernels whose PTX is known: of a first and a second parameter, they write the second; the first; or what
an address in the first leads to.
"""

IMAGE = 0x700040
"""Where that is loaded from."""

PTX = """
.version 8.0
.target sm_90
.visible .entry reader(.param .u64 one, .param .u64 two)
{ .reg .b64 %r<4>;
  ld.param.u64 %r1, [one]; ld.param.u64 %r2, [two]; ld.global.u64 %r3, [%r1]; st.global.u64 [%r2], %r3; }
.visible .entry writer(.param .u64 one, .param .u64 two)
{ .reg .b64 %r<4>; ld.param.u64 %r1, [one]; st.global.u64 [%r1], 1; }
.visible .entry finder(.param .u64 one, .param .u64 two)
{ .reg .b64 %r<4>; ld.param.u64 %r1, [one]; ld.global.u64 %r3, [%r1]; st.global.u64 [%r3], %r1; }
"""

NAMES = (
    "start", "duration", "wait", "waits", "destination", "source", "stream", "handle", "bytes", "flags", "result",
    "process", "thread", "stack", "function",
)  # fmt: skip


def call(function: str, stream: int = 0, **fields: int) -> dict[str, int]:
    """A call on one of the streams, with the fields that differ from zero."""
    return {"function": load_catalogue()[function].index, "stream": STREAMS[stream], **fields}


def kernel(stream: int, led: int, handle: int = KERNEL) -> dict[str, int]:
    return call("cuLaunchKernel", stream, destination=led, handle=handle)


def followed(stream: int, list_: int, handle: int = READER) -> dict[str, int]:
    """The launch of a kernel whose PTX is known, with a list of `GIVEN`; all of its memory leads to the first."""
    return call("cuLaunchKernel", stream, destination=FIRST, source=list_, handle=handle)


GIVEN = {1: (FIRST, SECOND), 2: (FIRST, THIRD), 3: (SECOND, FIRST)}
"""What kernels are given: the first and the second parameter of each list."""


def upload(stream: int, device: int, host: int = HOST) -> dict[str, int]:
    flags = constant("FFM_OPERATION_HOST_SOURCE")
    return call("cuMemcpyHtoDAsync_v2", stream, source=host, destination=device, bytes=4096, flags=flags)


def download(stream: int, device: int, host: int = HOST) -> dict[str, int]:
    flags = constant("FFM_OPERATION_HOST_DESTINATION")
    return call("cuMemcpyDtoHAsync_v2", stream, source=device, destination=host, bytes=4096, flags=flags)


def unread(stream: int, device: int, host: int = HOST) -> dict[str, int]:
    """A download of which nothing is touched."""
    return {**download(stream, device, host), "unread": 1}


def load(bytes: int, code: int = CODE, made: int = KERNEL) -> list[dict[str, int]]:
    return [
        call("cuLibraryLoadData", destination=code, bytes=bytes),
        call("cuLibraryGetKernel", destination=made, handle=code),
    ]


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one place of one file has PTX."""
    found = {(Path("program"), 0x40): [PTX]}
    monkeypatch.setattr(kernels, "device_sources", lambda path, offset: found.get((path, offset)))


def given_memory() -> GivenMemory:
    rows = [(number, 8 * place, address) for number, two in GIVEN.items() for place, address in enumerate(two)]
    lists = np.zeros(len(rows), record_type("ffm_given"))
    lists["list"], lists["offset"], lists["allocation"] = zip(*rows, strict=True)
    named = [(READER, "reader"), (WRITER, "writer"), (FINDER, "finder")]
    modules = [RecordedModule("library", "", 0x600000), RecordedModule("program", "", 0x700000)]
    return GivenMemory(lists, [RecordedKernel(0, handle, name) for handle, name in named], modules)


def apart(*calls: dict[str, int], joined: tuple[tuple[int, int], ...] = (), variables: bool = False) -> bool:
    """Return whether the two streams are apart, after code was loaded and memory allocated."""
    before: list[dict[str, Any]] = [
        *(call("cuStreamCreate", place, destination=STREAMS[place], source=NON_BLOCKING) for place in (0, 1)),
        *load(0 if variables else constant("FFM_CODE_WITHOUT_VARIABLES")),
        *(call("cuMemAlloc_v2", destination=address, bytes=4096) for address in (FIRST, SECOND, THIRD)),
    ]
    rows = [{"start": 1_000 * place, "stack": place, **row} for place, row in enumerate([*before, *calls])]
    columns = {name: np.array([row.get(name, 0) for row in rows]) for name in NAMES}
    for name in ("destination", "source", "stream", "handle", "bytes"):
        columns[name] = columns[name].astype(np.uint64)
    unread = np.array([row.get("unread", 0) == 1 for row in rows])
    contexts = np.zeros(1, record_type("ffm_context"))
    operations = operations_of(columns)
    mine = [operations.stream[np.flatnonzero(columns["stream"] == handle)[-1]] for handle in STREAMS]
    pairs = np.array(list(joined), record_type("ffm_joined"))
    found = streams_with_memory(columns, operations, contexts, pairs, given_memory(), unread).apart
    assert (found == found.T).all()
    assert not found.diagonal().any()
    return bool(found[mine[0], mine[1]])


def test_kernels_use_what_their_parameters_lead_to() -> None:
    assert apart(kernel(0, FIRST), kernel(1, SECOND))
    assert not apart(kernel(0, FIRST), kernel(1, FIRST))
    assert not apart(kernel(0, FIRST), kernel(1, SECOND), joined=((FIRST, SECOND),))
    assert not apart(kernel(0, FIRST), kernel(1, SECOND), joined=((FIRST, THIRD), (SECOND, THIRD)))
    assert apart(kernel(0, SECOND), kernel(1, THIRD))
    assert apart(kernel(0, constant("FFM_LEADS_NOWHERE")), kernel(1, FIRST))
    assert not apart(kernel(0, 0), kernel(1, FIRST))


def test_what_any_kernel_may_find_is_in_common() -> None:
    anyones = ((0, THIRD),)
    assert not apart(kernel(0, FIRST), kernel(1, SECOND), joined=anyones)
    assert apart(kernel(0, FIRST), upload(1, SECOND), joined=anyones)
    assert not apart(kernel(0, FIRST), upload(1, THIRD), joined=anyones)


def test_kernels_of_code_with_variables_have_them_in_common_and_what_they_lead_to() -> None:
    nowhere = constant("FFM_LEADS_NOWHERE")
    assert not apart(kernel(0, FIRST), kernel(1, SECOND), variables=True)
    assert not apart(kernel(0, nowhere), kernel(1, nowhere), variables=True)
    assert apart(kernel(0, FIRST), upload(1, SECOND), variables=True)
    other = load(0, 0xD0, 0xD1)
    assert apart(*other, kernel(0, FIRST, 0xD1), kernel(1, SECOND))
    # A kernel may have left a variable's address where the others find it.
    assert not apart(*other, kernel(0, FIRST, 0xD1), kernel(0, SECOND, 0xD1), kernel(1, SECOND))
    assert not apart(
        *other, call("cuLibraryGetGlobal", destination=0x90000, handle=0xD0), kernel(0, FIRST), kernel(1, SECOND)
    )


def test_kernels_that_are_known_to_use_none_may_be_of_code_with_variables() -> None:
    none = {"bytes": constant("FFM_CODE_WITHOUT_VARIABLES")}
    first, second = {**kernel(0, FIRST), **none}, {**kernel(1, SECOND), **none}
    assert apart(first, second, variables=True)
    assert apart(first, kernel(1, SECOND), variables=True)
    assert not apart(kernel(0, FIRST), kernel(0, SECOND), second, variables=True)
    assert not apart(first, second, call("cuLibraryGetGlobal", destination=0x90000, handle=CODE), variables=True)


def test_handles_of_unknown_or_unloaded_code_may_have_variables() -> None:
    assert not apart(kernel(0, FIRST, 0xE1), kernel(1, SECOND, 0xE1))
    unload = call("cuLibraryUnload", handle=CODE)
    assert not apart(unload, kernel(0, FIRST), kernel(1, SECOND))
    assert not apart(*load(0), kernel(0, FIRST), kernel(1, SECOND))
    assert apart(kernel(0, FIRST), kernel(1, SECOND), unload)


def test_copies_use_their_addresses() -> None:
    assert apart(upload(0, FIRST), kernel(1, SECOND))
    assert not apart(upload(0, FIRST), kernel(1, FIRST))
    assert not apart(download(0, FIRST), kernel(1, FIRST))
    assert apart(upload(0, FIRST), upload(1, SECOND))
    assert apart(download(0, FIRST), download(1, SECOND, HOST + 4096))
    assert not apart(download(0, FIRST), download(1, SECOND, HOST + 4095))
    assert not apart(download(0, FIRST), upload(1, SECOND))
    assert not apart(call("cuMemcpyDtoDAsync_v2", 0, source=FIRST, destination=THIRD, bytes=8), kernel(1, FIRST))
    assert apart(call("cuMemcpyDtoDAsync_v2", 0, source=FIRST, destination=THIRD, bytes=8), download(1, FIRST))
    assert not apart(upload(0, 0x90000), kernel(1, FIRST))


@pytest.mark.parametrize(
    "function", ["cuGraphLaunch", "cuLaunchHostFunc", "cuStreamWriteValue32_v2", "cuMemcpyBatchAsync"]
)
def test_what_a_call_is_not_known_to_use_is_in_common(function: str) -> None:
    assert not apart(kernel(0, FIRST), call(function, 1))


@pytest.mark.parametrize("function", ["cuMemMap", "cuArrayCreate_v2", "cuIpcGetMemHandle", "cuTexObjectCreate"])
def test_memory_that_is_reached_otherwise_is_in_common(function: str) -> None:
    assert not apart(kernel(0, FIRST), kernel(1, SECOND), call(function, destination=0x90000, source=FIRST))


def test_memory_of_a_pool_is_used_where_it_is_allocated_and_freed() -> None:
    allocation = call("cuMemAllocAsync", 0, destination=0x30000, bytes=64)
    assert apart(allocation, kernel(0, FIRST), kernel(1, SECOND))
    assert not apart(allocation, kernel(0, FIRST), kernel(1, 0x30000))
    assert not apart(allocation, kernel(0, 0x30000), call("cuMemFreeAsync", 1, destination=0x30000))


def free(address: int, function: str = "cuMemFree_v2") -> dict[str, int]:
    return call(function, destination=address)


def allocate(address: int, bytes: int = 4096, function: str = "cuMemAlloc_v2") -> dict[str, int]:
    return call(function, destination=address, bytes=bytes)


def test_memory_that_a_waiting_free_gave_back_is_other_memory_when_it_is_allocated_again() -> None:
    assert not apart(upload(0, FIRST), upload(1, FIRST, HOST + 4096))
    assert apart(upload(0, FIRST), free(FIRST), allocate(FIRST), upload(1, FIRST, HOST + 4096))
    assert apart(upload(0, FIRST), free(FIRST), allocate(FIRST - 64, 8192), upload(1, FIRST - 64, HOST + 4096))
    again = [free(FIRST), allocate(FIRST), upload(1, FIRST, HOST + 4096), upload(0, FIRST, HOST + 8192)]
    assert not apart(upload(0, FIRST), *again)
    assert with_ptx(followed(0, 1, WRITER), free(FIRST), allocate(FIRST), followed(1, 1, WRITER))
    assert not with_ptx(followed(0, 1, WRITER), followed(1, 1, WRITER))


def test_memory_of_very_many_lives_is_told_apart_by_its_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    again = [upload(0, FIRST), free(FIRST), allocate(FIRST), upload(1, FIRST, HOST + 4096)]
    assert apart(*again)
    monkeypatch.setattr(uses, "MOST_USED", 7)  # four lives, two streams
    assert not apart(*again)


def test_memory_is_the_same_if_no_waiting_free_was_seen_or_the_use_lies_outside_of_a_life() -> None:
    other = upload(1, FIRST, HOST + 4096)
    assert not apart(upload(0, FIRST), allocate(FIRST), other)
    assert not apart(upload(0, FIRST), allocate(FIRST - 64, 8192), other)
    assert not apart(upload(0, FIRST), free(FIRST), other)
    assert not apart(upload(0, FIRST), free(FIRST), upload(0, FIRST), allocate(FIRST), other)
    assert not apart(
        upload(0, FIRST), free(FIRST), {**free(FIRST), "result": 1}, allocate(FIRST), upload(0, FIRST), other
    )
    assert not apart(upload(0, FIRST), free(FIRST, "cuMemFreeAsync"), allocate(FIRST), other)
    ordered = [allocate(0x30000, 4096, "cuMemAllocAsync"), upload(0, 0x30000), free(0x30000, "cuMemFreeAsync")]
    assert not apart(*ordered, allocate(0x30000, 4096, "cuMemAllocAsync"), upload(1, 0x30000, HOST + 4096))


def test_memory_that_kernels_find_by_themselves_is_the_same_however_often_it_was_freed() -> None:
    again = [free(FIRST), allocate(FIRST - 64, 128)]
    assert not apart(kernel(0, FIRST), *again, kernel(1, FIRST - 64))
    assert not apart(kernel(0, FIRST), *again, upload(1, FIRST - 64))


def some(copy: dict[str, int], bytes: int = 2048) -> dict[str, int]:
    """A copy of so many bytes."""
    return {**copy, "bytes": bytes}


def test_copies_of_different_slices_of_an_allocation_have_nothing_in_common() -> None:
    first, other = some(upload(0, FIRST)), some(download(1, FIRST + 2048, HOST + 8192))
    assert apart(first, other)
    assert not apart(first, some(download(1, FIRST + 2047, HOST + 8192)))
    assert not apart(first, other, some(upload(1, FIRST + 2047, HOST + 16384)))
    assert apart(some(download(0, FIRST)), some(download(1, FIRST + 1024, HOST + 8192)))
    assert apart(first, other, call("cuMemsetD8Async", 1, destination=FIRST + 2048, bytes=8))
    assert not apart(first, other, call("cuMemsetD8Async", 1, destination=FIRST, bytes=8))


def test_kernels_and_rows_have_all_slices_in_common_with_copies() -> None:
    halves = [some(upload(0, FIRST)), some(upload(0, FIRST + 2048, HOST + 8192))]
    assert not apart(*halves, kernel(1, FIRST))
    assert not apart(*halves, kernel(1, SECOND), joined=((FIRST, SECOND),))
    assert apart(*halves, kernel(1, SECOND))
    assert not with_ptx(*halves, followed(1, 1))
    assert not with_ptx(some(download(0, FIRST)), some(download(0, FIRST + 2048, HOST + 8192)), followed(1, 1, WRITER))
    assert with_ptx(some(download(0, FIRST)), some(download(0, FIRST + 2048, HOST + 8192)), followed(1, 1))
    rows = call("cuMemsetD2D8Async", 1, destination=FIRST + 2048, bytes=8)
    assert not apart(*halves, rows)


def test_what_is_read_for_nobody_is_not_in_common_but_what_is_overwritten() -> None:
    assert apart(kernel(0, FIRST), unread(1, FIRST))
    assert apart(kernel(0, FIRST), unread(1, FIRST), joined=((FIRST, SECOND),))
    assert not apart(kernel(0, FIRST), unread(1, FIRST), download(0, SECOND))
    assert not apart(kernel(0, FIRST), unread(1, FIRST), download(0, SECOND, HOST + 4095))
    assert apart(kernel(0, FIRST), unread(1, FIRST), download(0, SECOND, HOST + 4096))


def test_where_nobody_uses_what_comes_it_does_not_matter_what_comes_last() -> None:
    assert apart(kernel(0, FIRST), unread(1, FIRST), unread(0, SECOND))
    between = HOST + 4000
    assert not apart(unread(1, FIRST), unread(0, SECOND, between), download(0, SECOND, between + 4000))


def test_what_work_reads_of_downloads_is_not_for_nobody() -> None:
    assert not apart(kernel(0, FIRST), unread(1, FIRST), upload(1, SECOND, HOST + 4095))
    assert apart(kernel(0, FIRST), unread(1, FIRST), upload(1, SECOND, HOST + 4096))
    assert not apart(kernel(0, FIRST), unread(1, FIRST), {**call("cuGraphLaunch"), "stream": 0x333})


def test_what_nobody_reads_of_a_pool_must_not_be_read_when_it_is_freed() -> None:
    allocation = call("cuMemAllocAsync", 0, destination=0x30000, bytes=64)
    freed = call("cuMemFreeAsync", 0, destination=0x30000)
    assert not apart(allocation, unread(1, 0x30000), freed)
    assert apart(allocation, unread(1, FIRST), freed, kernel(0, FIRST))


ALL_JOINED = ((FIRST, SECOND), (FIRST, THIRD))


def with_ptx(*calls: dict[str, int], image: int = IMAGE) -> bool:
    """Whether the streams are apart after the code with PTX was loaded."""
    known = [
        call("cuLibraryLoadData", destination=0xF0, source=image),
        *(call("cuLibraryGetKernel", destination=handle, handle=0xF0) for handle in (READER, WRITER, FINDER)),
    ]
    return apart(*known, *calls, joined=ALL_JOINED)


def test_kernels_whose_ptx_is_known_use_what_it_says() -> None:
    assert with_ptx(followed(0, 1), followed(1, 2))
    assert not with_ptx(followed(0, 1), followed(1, 1))
    assert not with_ptx(followed(0, 1), followed(1, 3))
    assert not with_ptx(followed(0, 1), followed(1, 2, WRITER))
    assert with_ptx(followed(0, 1, WRITER), followed(1, 3, WRITER))
    assert not with_ptx(followed(0, 1), upload(1, FIRST))
    assert with_ptx(followed(0, 1), download(1, FIRST))
    assert with_ptx(followed(0, 1), upload(1, THIRD))


def test_kernels_whose_ptx_is_not_known_use_all_that_their_parameters_lead_to() -> None:
    assert not with_ptx(followed(0, 1), followed(1, 2, FINDER))
    assert not with_ptx(followed(0, 1), kernel(1, THIRD))
    assert not with_ptx(followed(0, 1), followed(1, 0))
    assert not with_ptx(followed(0, 1), followed(1, 2), image=IMAGE + 8)
    assert not with_ptx(followed(0, 1), call("cuModuleUnload", handle=0xAA), followed(1, 2))
    again = [
        call("cuLibraryLoadData", destination=0xFA, source=0x500000),
        call("cuLibraryGetKernel", destination=READER, handle=0xFA),
    ]
    assert not with_ptx(*again, followed(0, 1), followed(1, 2))
