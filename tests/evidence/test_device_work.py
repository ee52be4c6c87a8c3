"""What driver functions do on the GPU, from their names and recorded arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.device_work import device_work
from ffm.evidence.handles import CONTEXT_SHIFT, NON_BLOCKING
from ffm.evidence.program_order import NOT_READY
from ffm.instrument.recording.layout import constant
from ffm.model.device import Action, DeviceWork
from ffm.results.documents.measured import ContextDevice, Tracing

UPLOAD, DOWNLOAD = constant("FFM_OPERATION_HOST_SOURCE"), constant("FFM_OPERATION_HOST_DESTINATION")
PRIVATE = constant("FFM_FUNCTION_PRIVATE")


def work_of(*calls: dict[str, Any], devices: list[int] | None = None) -> DeviceWork:
    """Describe calls; each names a `function` and the fields that differ from zero. `devices` are those of the first
    process's contexts.
    """
    defaults = {
        "start": 0, "duration": 100_000, "wait": 0, "after_wait": 0, "waits": 0, "bytes": 0, "destination": 0,
        "source": 0, "stream": 0, "handle": 0, "flags": 0, "result": 0, "process": 0, "thread": 0, "stack": 0,
    }  # fmt: skip
    rows = [{**defaults, "start": 1_000_000 * place, "stack": place, **call} for place, call in enumerate(calls)]
    for row in rows:
        name = row["function"]
        row["function"] = PRIVATE if name == "private" else load_catalogue()[name].index
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name in ("destination", "source", "stream", "handle"):
        columns[name] = columns[name].astype(np.uint64)
    identity = columns["process"] * 100 + columns["thread"]
    _, threads = np.unique(identity, return_inverse=True)
    tracing = None
    if devices is not None:
        told = [ContextDevice(process=0, context=one, device=device, uuid="") for one, device in enumerate(devices)]
        tracing = cast(Tracing, SimpleNamespace(devices=told, threads=[], locks=None, processor_times=None))
    return device_work(columns, threads.astype(np.int32), np.full(len(threads), -1), tracing)


def actions(*calls: dict[str, Any]) -> list[Action]:
    return [Action(value) for value in work_of(*calls).action.tolist()]


def test_calls_enqueue_and_wait_in_their_own_order() -> None:
    big = 1 << 20
    assert actions(
        {"function": "cuLaunchKernel"},
        {"function": "cuMemcpyDtoH_v2", "flags": DOWNLOAD, "wait": 90_000, "waits": 1},
        {"function": "cuMemcpyHtoD_v2", "flags": UPLOAD, "wait": 90_000, "waits": 1, "bytes": big},
        {"function": "cuMemcpyHtoDAsync_v2", "flags": UPLOAD, "bytes": big},
        {"function": "cuMemsetD8_v2"},
        {"function": "cuMemsetD8_v2", "waits": 1},
        {"function": "cuMemFree_v2", "wait": 10, "waits": 1},
        {"function": "cuMemAlloc_v2"},
        {"function": "cuCtxSynchronize", "waits": 1},
        {"function": "cuStreamSynchronize", "waits": 1},
        {"function": "private", "waits": 1},
    ) == [
        Action.ENQUEUE,
        Action.ENQUEUE_AND_WAIT,
        Action.ENQUEUE_AND_WAIT,
        Action.ENQUEUE,
        Action.ENQUEUE,
        Action.SET_AND_WAIT,
        Action.WAIT_CONTEXT,
        Action.NONE,
        Action.WAIT_CONTEXT,
        Action.WAIT_STREAM,
        Action.ENQUEUE_AND_WAIT,
    ]


@pytest.mark.parametrize(
    ("query", "wait"), [("cuStreamQuery", Action.WAIT_STREAM), ("cuEventQuery", Action.WAIT_EVENT)]
)
def test_a_loop_that_polls_ends_with_a_wait(query: str, wait: Action) -> None:
    asks = {"function": query, "stream": 0x7000, "handle": 0x8000, "stack": 0}
    unfinished = {**asks, "result": NOT_READY}
    launch = {"function": "cuLaunchKernel", "stream": 0x7000}
    assert actions(launch, unfinished, unfinished, asks)[1:] == [Action.NONE, Action.NONE, wait]
    assert actions(launch, asks, asks)[1:] == [Action.NONE, Action.NONE]
    synchronize = {"function": "cuCtxSynchronize", "wait": 90_000, "waits": 1}
    assert actions(launch, unfinished, synchronize, asks)[1:] == [Action.NONE, Action.WAIT_CONTEXT, Action.NONE]
    elsewhere = [actions(launch, unfinished, {**asks, other: 1}) for other in ("thread", "process")]
    assert [found[1:] for found in elsewhere] == [[Action.NONE, Action.NONE]] * 2


def test_an_upload_that_the_cpu_copies_waits_first() -> None:
    """From pageable memory: most of the call is copying into a staging buffer, not waiting."""
    staged = {"function": "cuMemcpyHtoD_v2", "flags": UPLOAD, "bytes": 1 << 20, "wait": 20_000, "waits": 1}
    assert actions(staged) == [Action.WAIT_AND_ENQUEUE]


def test_a_short_upload_waits_first_unless_its_source_is_pinned() -> None:
    """However long it waits for the work before it: it is over when the CPU has copied the bytes."""
    pinned = {"function": "cuMemAllocHost_v2", "destination": 0x10000, "bytes": 4096}
    upload = {"function": "cuMemcpyHtoD_v2", "flags": UPLOAD, "bytes": 4096, "wait": 90_000, "waits": 1}
    work = actions(pinned, {**upload, "source": 0x10000}, {**upload, "source": 0x90000})
    assert work[1:] == [Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE]


def test_streams_are_numbered_through_all_processes() -> None:
    launch = {"function": "cuLaunchKernel"}
    work = work_of(
        {**launch, "stream": 0}, {**launch, "stream": 1}, {**launch, "stream": 0x7000},
        {**launch, "process": 1, "stream": 0x7000},
    )  # fmt: skip
    assert work.stream[0] == work.stream[1] != work.stream[2] != work.stream[3]
    assert work.stream_process.tolist() == [0, 0, 1]
    assert work.legacy.tolist() == [work.stream[0], -1]
    assert work.process_of_thread.tolist() == [0, 1]


def test_the_default_stream_does_not_order_streams_made_without_it() -> None:
    made = {"function": "cuStreamCreate", "duration": 1_000}
    launch = {"function": "cuLaunchKernel"}
    work = work_of(
        {**made, "destination": 0x7000, "source": 0},
        {**made, "destination": 0x8000, "source": NON_BLOCKING},
        launch,
        {**launch, "stream": 0x7000},
        {**launch, "stream": 0x8000},
        {**launch, "stream": 0x9000},  # its creation was not seen
    )
    assert work.independent is not None
    assert work.independent[work.stream[2:]].tolist() == [False, False, True, False]


def test_a_handle_used_again_for_a_stream_of_the_other_kind_is_another_stream() -> None:
    made = {"function": "cuStreamCreate", "destination": 0x7000}
    launch = {"function": "cuLaunchKernel", "stream": 0x7000}
    wait = {"function": "cuCtxSynchronize", "waits": 1}
    work = work_of(made, launch, wait, {**made, "source": NON_BLOCKING}, launch, wait, made, launch)
    assert work.independent is not None
    assert work.independent[work.stream[[1, 4, 7]]].tolist() == [False, True, False]


def test_each_thread_has_its_own_default_stream() -> None:
    launch = {"function": "cuLaunchKernel_ptsz"}
    first, second, named = work_of(launch, {**launch, "thread": 1}, {**launch, "thread": 1, "stream": 2}).stream
    assert first != second == named


def test_events_are_known_by_their_handles() -> None:
    work = work_of(
        {"function": "cuEventRecord", "handle": 0x10},
        {"function": "cuStreamWaitEvent", "handle": 0x10, "stream": 0x7000},
        {"function": "cuEventSynchronize", "handle": 0x20, "waits": 1},
    )
    assert [Action(value) for value in work.action] == [
        Action.RECORD_EVENT,
        Action.STREAM_WAIT_EVENT,
        Action.WAIT_EVENT,
    ]
    assert work.event.tolist() == [0, 0, 1]
    assert work.events == 2


@pytest.mark.parametrize(
    ("form", "known"),
    [
        ("cuMemcpyWithAttributesAsync", "cuMemcpyAsync"),
        ("cuMemHostRegister", "cuMemHostRegister_v2"),
        ("cuLaunchCooperativeKernel", "cuLaunchKernel"),
    ],
)
def test_other_forms_of_a_call_do_the_same(form: str, known: str) -> None:
    def done(function: str) -> DeviceWork:
        launch = {"function": "cuLaunchKernel", "stream": 9}
        call = {"function": function, "stream": 9, "destination": 0x500, "bytes": 64, "flags": UPLOAD}
        return work_of(launch, call, {"function": "cuMemHostUnregister", "destination": 0x500}, call)

    one, other = done(form), done(known)
    assert (one.action.tolist(), one.partner.tolist()) == (other.action.tolist(), other.partner.tolist())
    assert load_catalogue()[form].memory == load_catalogue()[known].memory


def test_a_free_serves_the_next_allocation_of_its_place() -> None:
    allocation = {"function": "cuMemAlloc_v2", "destination": 0x500, "stack": 1}
    free = {"function": "cuMemFree_v2", "destination": 0x500, "stack": 2, "waits": 1}
    assert work_of(allocation, free, allocation, free).partner.tolist() == [-1, 2, 1, 3]


def test_a_failed_allocation_gives_no_memory() -> None:
    allocation = {"function": "cuMemAlloc_v2", "destination": 0x500, "stack": 1}
    free = {"function": "cuMemFree_v2", "destination": 0x500, "stack": 2, "waits": 1}
    assert work_of(allocation, free, {**allocation, "result": 2}).partner.tolist() == [-1, 1, -1]


def test_a_context_is_waited_for_on_its_own_device() -> None:
    """Three contexts on three devices; no work was put on the last. One wait names its context by an argument."""
    launch, wait = {"function": "cuLaunchKernel"}, {"function": "cuCtxSynchronize", "wait": 5_000, "waits": 1}
    second, third = {"flags": 1 << CONTEXT_SHIFT}, {"flags": 2 << CONTEXT_SHIFT}
    named = {"function": "cuCtxSynchronize_v2", "wait": 5_000, "waits": 1}
    calls = (launch, {**launch, **second}, wait, {**wait, **second}, {**wait, **third}, named)
    work = work_of(*calls, devices=[0, 1, 2])
    assert work.stream.tolist() == [0, 1, 0, 1, -1, -1]
    assert [Action(value) for value in work.action[2:]] == [
        Action.WAIT_CONTEXT,
        Action.WAIT_CONTEXT,
        Action.WAIT_STREAM,
        Action.WAIT_CONTEXT,
    ]
    assert work_of(*calls, devices=[0, 0, 0]).stream[2:].tolist() == [-1, -1, -1, -1]
