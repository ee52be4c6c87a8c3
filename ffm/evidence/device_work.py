"""What each traced operation does on the GPU, from the driver functions and their recorded arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Awaits, DefaultStream, Direction, DriverFunction, Effect, load_catalogue
from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import Memory as DriverMemory
from ffm.instrument.recording.layout import constant
from ffm.model.device import Action, DeviceWork
from ffm.model.hoisting import reused_memory
from ffm.results.columns import Columns

LEGACY_STREAM, LEGACY_HANDLE, PER_THREAD_HANDLE = 0, 1, 2
"""`CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` in CUDA's `cuda.h`: handles of the default streams."""

PER_THREAD_STREAMS = 1 << 60
"""A thread's own default stream gets this number plus the thread's; no pointer is that large."""

STAGED_SHARE = 0.5
"""If more than this share of an upload call is spent without waiting, the CPU itself copies the bytes."""

STAGED_BYTES = 64 * 1024
"""Pageable uploads up to this size return once they are staged (CUDA Driver API, "API synchronization behavior")."""

_WAITS = {
    Awaits.CONTEXT: Action.WAIT_CONTEXT,
    Awaits.STREAM: Action.WAIT_STREAM,
    Awaits.EVENT: Action.WAIT_EVENT,
}


def device_work(columns: Columns, thread: NDArray[np.int32], measured: NDArray[np.int64]) -> DeviceWork:
    """Describe the operations of a run.

    Args:
        columns: from `ffm.evidence.operations.operation_columns`, sorted by process, thread and start.
        thread: the model's number of each row's thread, counted over all processes.
        measured: as in `DeviceWork`.
    """
    action = _actions(columns)
    process = columns["process"].astype(np.int64)
    stream, stream_process, legacy = _streams(columns, action)
    event, events = _events(columns, action, process)
    transfers = _of(lambda function: function.kind in (DriverKind.TRANSFER, DriverKind.SET))[columns["function"]]
    process_of_thread = np.zeros(int(thread.max(initial=-1)) + 1, np.int32)
    process_of_thread[thread] = process
    return DeviceWork(
        action=action,
        stream=stream,
        event=event,
        partner=_partners(columns),
        copied=np.where(transfers, columns["bytes"], 0).astype(np.int64),
        measured=measured,
        process_of_thread=process_of_thread,
        legacy=legacy,
        stream_process=stream_process,
        events=events,
    )


def _of(chosen: Callable[[DriverFunction], bool]) -> NDArray[np.bool_]:
    """Return a table over recorded function indices that says whether a function of the catalogue is chosen."""
    table = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, bool)
    for function in load_catalogue().functions:
        table[function.index] = chosen(function)
    return table


def _actions(columns: Columns) -> NDArray[np.uint8]:
    """Return the `Action` of each row."""
    function, waits = columns["function"], columns["waits"] > 0
    flags = columns["flags"]
    upload = (flags & constant("FFM_OPERATION_HOST_SOURCE")) != 0

    def kind(*kinds: DriverKind) -> NDArray[np.bool_]:
        return _of(lambda entry: entry.kind in kinds)[function]

    action = np.full(len(function), Action.NONE, np.uint8)
    action[waits] = Action.WAIT_CONTEXT
    copies = kind(DriverKind.TRANSFER, DriverKind.SET, DriverKind.MIGRATION)
    action[copies] = np.where(waits[copies], Action.ENQUEUE_AND_WAIT, Action.ENQUEUE)
    action[kind(DriverKind.SET) & waits] = Action.SET_AND_WAIT
    asynchronous = _of(lambda entry: entry.asynchronous)[function]
    action[copies & asynchronous & upload] = Action.ENQUEUE
    action[copies & upload & ~asynchronous & _staged(columns)] = Action.WAIT_AND_ENQUEUE
    action[kind(DriverKind.LAUNCH, DriverKind.HOST_FUNCTION)] = Action.ENQUEUE
    action[function == constant("FFM_FUNCTION_PRIVATE")] = Action.ENQUEUE_AND_WAIT
    for entry in load_catalogue().of_kind(DriverKind.SYNCHRONIZATION):
        action[function == entry.index] = _WAITS[entry.awaits]
    action[_of(lambda entry: entry.effect is Effect.RECORD_EVENT)[function]] = Action.RECORD_EVENT
    action[_of(lambda entry: entry.effect is Effect.WAIT_EVENT)[function]] = Action.STREAM_WAIT_EVENT
    return action


def _staged(columns: Columns) -> NDArray[np.bool_]:
    """Return whether an upload's source is pageable, so that the CPU spends most of the call copying the bytes."""
    stack = columns["stack"]
    count = int(stack.max(initial=-1)) + 1
    duration = np.bincount(stack, weights=columns["duration"], minlength=count)
    wait = np.bincount(stack, weights=columns["wait"], minlength=count)
    working = (duration - wait > STAGED_SHARE * duration)[stack]
    return working & (columns["bytes"] > STAGED_BYTES) | (columns["waits"] > 0) & working & (columns["wait"] < 1000)


def _streams(
    columns: Columns, action: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Number the streams over all processes; also return each stream's process, and each process's legacy stream."""
    per_thread = _of(lambda function: function.default_stream is DefaultStream.PER_THREAD)[columns["function"]]
    handle = columns["stream"].astype(np.uint64)
    own = (handle == PER_THREAD_HANDLE) | ((handle == LEGACY_STREAM) & per_thread)
    handle = np.where(handle == LEGACY_HANDLE, np.uint64(LEGACY_STREAM), handle)
    handle = np.where(own, np.uint64(PER_THREAD_STREAMS) + columns["thread"].astype(np.uint64), handle)
    process = columns["process"].astype(np.int64)
    processes = int(process.max(initial=-1)) + 1
    used = (action != Action.NONE) & (action != Action.WAIT_CONTEXT) & (action != Action.WAIT_EVENT)
    stream = np.full(len(handle), -1, np.int32)
    identity = np.empty(int(used.sum()), [("process", np.int64), ("handle", np.uint64)])
    identity["process"], identity["handle"] = process[used], handle[used]
    distinct, numbers = np.unique(identity, return_inverse=True)
    stream[used] = numbers
    legacy = np.full(processes, -1, np.int32)
    default = np.flatnonzero(distinct["handle"] == LEGACY_STREAM)
    legacy[distinct["process"][default]] = default
    return stream, distinct["process"].astype(np.int32), legacy


def _events(columns: Columns, action: NDArray[np.uint8], process: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Number the events over all processes, and count them."""
    used = np.isin(action, (Action.RECORD_EVENT, Action.WAIT_EVENT, Action.STREAM_WAIT_EVENT))
    event = np.full(len(action), -1, np.int32)
    identity = np.empty(int(used.sum()), [("process", np.int64), ("handle", np.uint64)])
    identity["process"], identity["handle"] = process[used], columns["handle"][used]
    distinct, numbers = np.unique(identity, return_inverse=True)
    event[used] = numbers
    return event, len(distinct)


def _partners(columns: Columns) -> NDArray[np.int32]:
    """Return, for each free, the later allocation that could have used its memory, and the reverse; -1 for none."""
    allocates = _of(lambda function: function.kind is DriverKind.ALLOCATION and _kept(function))[columns["function"]]
    frees = _of(lambda function: function.kind is DriverKind.FREE and _kept(function))[columns["function"]]
    rows = np.flatnonzero((allocates | frees) & (columns["result"] == 0))
    rows = rows[np.lexsort((columns["start"][rows], columns["process"][rows]))]
    found = reused_memory(
        columns["process"][rows], columns["stack"][rows], columns["destination"][rows], allocates[rows]
    )
    partner = np.full(len(allocates), -1, np.int32)
    partner[rows] = np.where(found >= 0, rows[np.maximum(found, 0)] if len(rows) else -1, -1)
    return partner


def _kept(function: DriverFunction) -> bool:
    """Return whether the program can keep what the function allocates or frees for later."""
    return function.direction is Direction.NONE and function.memory in (
        DriverMemory.DEVICE,
        DriverMemory.PINNED,
        DriverMemory.MANAGED,
    )
