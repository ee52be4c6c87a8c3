"""What each traced operation does on the GPU, from the driver functions and their recorded arguments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import ABSENT, DriverFunction, load_catalogue
from ffm.driver.vocabulary import Awaits, Effect
from ffm.driver.vocabulary import Direction as DriverDirection
from ffm.driver.vocabulary import Kind as DriverKind
from ffm.driver.vocabulary import Memory as DriverMemory
from ffm.evidence.calls import calls_where, only_enqueue, waiting
from ffm.evidence.filled_devices import filled_devices
from ffm.evidence.handles import StreamTable, contexts_of, events_of, streams_of
from ffm.evidence.named_work import device_of_contexts, devices_of
from ffm.evidence.program_order import NOT_READY, polled_until_done
from ffm.evidence.threads.lock_waits import lock_waits_of_rows
from ffm.evidence.threads.processor_times import delayed_by_own
from ffm.evidence.threads.thread_lives import lives_of_rows
from ffm.evidence.transfers.staged_copies import staged_uploads
from ffm.instrument.recording.layout import constant
from ffm.model.codes import is_one_of
from ffm.model.device import IDLE, Action, DeviceWork, Direction, stream_of_device
from ffm.model.estimators.hoisting import reused_memory
from ffm.model.grouping import begins_of, parts
from ffm.model.necessity.program import StreamKind
from ffm.model.waiting.call_patterns import unfinished_queries
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import MappedColumns
from ffm.results.documents.measured import ContextDevice, Tracing

WAITS = {
    Awaits.CONTEXT: Action.WAIT_CONTEXT,
    Awaits.STREAM: Action.WAIT_STREAM,
    Awaits.EVENT: Action.WAIT_EVENT,
}
"""What a synchronization does, by what it awaits."""

_ORDERS = {Effect.RECORD_EVENT: Action.RECORD_EVENT, Effect.WAIT_EVENT: Action.STREAM_WAIT_EVENT}

_COPIES = (DriverKind.TRANSFER, DriverKind.SET, DriverKind.MIGRATION)


def device_work(
    columns: Columns,
    thread: NDArray[np.int32],
    measured: NDArray[np.int32] | NDArray[np.int64],
    tracing: Tracing | None = None,
    arriving: NDArray[np.int32] | NDArray[np.int64] | None = None,
) -> DeviceWork:
    """Describe the operations of a run.

    Args:
        columns: from `ffm.evidence.operations.operation_columns`, sorted by process, thread and start.
        thread: the model's number of each row's thread, counted over all processes.
        measured, arriving: as in `DeviceWork`.
        tracing: what stage 2 recorded of threads and devices.
    """
    action = _actions(columns)
    _end_polling(columns, thread, action)
    _let_go(columns)
    devices = [] if tracing is None else tracing.devices
    number, streams = streams_of(columns)
    stream, stream_process, legacy, independent, device = _streams(columns, action, number, streams, devices)
    if device is not None:
        _wait_for_devices(columns, action, stream, stream_process, device, devices)
    _let_go(columns)
    asked = _asked(columns, number)
    del number  # it takes much memory
    event, events = _events(columns, action)
    _let_go(columns)
    transfers = calls_where(
        columns["function"], lambda function: function.kind in (DriverKind.TRANSFER, DriverKind.SET)
    )
    process_of_thread = np.zeros(int(thread.max(initial=-1)) + 1, np.int32)
    process_of_thread[:] = columns["process"][begins_of(thread, len(process_of_thread))[:-1]]
    return DeviceWork(
        action=action,
        stream=stream,
        event=event,
        partner=_partners(columns),
        copied=np.multiply(columns["bytes"], transfers, dtype=np.int64),
        measured=measured,
        arriving=arriving,
        process_of_thread=process_of_thread,
        legacy=legacy,
        stream_process=stream_process,
        events=events,
        independent=independent,
        stream_device=device,
        lives=lives_of_rows(tracing.threads, columns, thread) if tracing is not None and tracing.threads else None,
        locks=None if tracing is None or tracing.locks is None else lock_waits_of_rows(tracing.locks, columns, thread),
        delayed=_delayed(tracing, columns, thread),
        direction=_directions(columns, transfers),
        after_wait=_after_waits(columns, action),
        fills=filled_devices(columns, stream, devices),
        asked=asked,
    )


def _delayed(tracing: Tracing | None, columns: Columns, thread: NDArray[np.int32]) -> NDArray[np.int64] | None:
    if tracing is None or tracing.processor_times is None:
        return None
    return delayed_by_own(tracing.processor_times, columns, thread)


def _let_go(columns: Columns) -> None:
    """Release the memory of the parts of a mapped file that were read."""
    if isinstance(columns, MappedColumns):
        columns.release()


def _actions(columns: Columns) -> NDArray[np.uint8]:
    """Return the `Action` of each row."""
    function, waits = columns["function"], columns["waits"] > 0
    # One table holds what functions do if they do not wait, and behind it what they do if they wait.
    table = np.concatenate([_actions_of_functions(waits=False), _actions_of_functions(waits=True)])
    action = np.empty(len(function), np.uint8)
    for part in parts(len(function)):
        action[part] = table.take(function[part] + waits[part] * np.int32(len(table) // 2))
    rows = np.flatnonzero(calls_where(function, lambda entry: entry.kind in _COPIES and entry.effect not in _ORDERS))
    rows = rows[(columns["flags"][rows] & constant("FFM_OPERATION_HOST_SOURCE")) != 0]
    asynchronous = calls_where(function[rows], lambda entry: entry.asynchronous)
    action[rows[asynchronous]] = Action.ENQUEUE
    rows = rows[~asynchronous]
    if len(rows):
        action[rows[staged_uploads(columns, rows)]] = Action.WAIT_AND_ENQUEUE
    if waits.any():
        action[waits & only_enqueue(columns)] = Action.LOAD_AND_ENQUEUE
    return action


def _end_polling(columns: Columns, thread: NDArray[np.int32], action: NDArray[np.uint8]) -> None:
    """Let the queries that end polling loops wait for what they ask about, in place: such a loop lasts as long as that
    work, whatever its own calls take.
    """
    queries = calls_where(columns["function"], lambda function: function.kind is DriverKind.QUERY)
    if not queries.any():
        return
    polled = np.flatnonzero(polled_until_done({**columns, "thread": thread}, queries, waiting(columns)))
    of_event = calls_where(columns["function"][polled], lambda function: function.awaits is Awaits.EVENT)
    action[polled] = np.where(of_event, Action.WAIT_EVENT, Action.WAIT_STREAM)


def _actions_of_functions(*, waits: bool) -> NDArray[np.uint8]:
    """Return a table over recorded function indices with the `Action` of calls that wait, or do not wait; uploads say
    more.
    """
    table = np.full(constant("FFM_FUNCTION_PRIVATE") + 1, Action.WAIT_CONTEXT if waits else Action.NONE, np.uint8)
    table[constant("FFM_FUNCTION_PRIVATE")] = Action.ENQUEUE_AND_WAIT
    for function in load_catalogue().functions:
        if function.effect in _ORDERS:
            table[function.index] = _ORDERS[function.effect]
        elif function.effect is Effect.LOAD_CODE and not waits:
            table[function.index] = Action.LOAD
        elif function.kind is DriverKind.SYNCHRONIZATION:
            table[function.index] = WAITS[function.awaits]
        elif function.kind in _COPIES and waits:
            sets = function.kind is DriverKind.SET
            table[function.index] = Action.SET_AND_WAIT if sets else Action.ENQUEUE_AND_WAIT
        elif function.kind in (*_COPIES, DriverKind.LAUNCH, DriverKind.HOST_FUNCTION):
            table[function.index] = Action.ENQUEUE
    return table


def _streams(
    columns: Columns,
    action: NDArray[np.uint8],
    number: NDArray[np.int64],
    streams: StreamTable,
    devices: list[ContextDevice],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32] | None]:
    """Number the streams that the model tells apart, of those that `streams_of` found; also return each stream's
    process, each process's legacy stream, which streams that does not order, and each stream's device.

    The model has one legacy stream in each process: those of several contexts get the same number, unless they are on
    different devices. Then the first one is the process's, and does not order streams of other devices. Streams that
    had the same handle one after the other also get one number, unless the earlier one may still have had work to do,
    because the model's passes take longer with each further stream. A stream whose creation was not seen counts as
    ordered, as streams are by default.
    """
    device = devices_of(streams, devices)
    used = ~is_one_of(action, (Action.NONE, Action.WAIT_CONTEXT, Action.WAIT_EVENT, Action.LOAD))
    is_legacy = streams.kind == StreamKind.LEGACY
    follows = np.zeros(len(streams.kind), np.bool_)
    follows[1:] = (streams.process[1:] == streams.process[:-1]) & is_legacy[1:] & is_legacy[:-1]
    if device is not None:
        follows[1:] &= device[1:] == device[:-1]
    independent = (streams.kind == StreamKind.INDEPENDENT) & (streams.epoch > 0)
    same = np.append(False, independent[1:] == independent[:-1])
    if device is not None:
        same[1:] &= device[1:] == device[:-1]
    follows |= same & _over_before(columns, action, number, used, streams)
    lane = np.cumsum(~follows) - 1
    uses = np.zeros(len(lane), np.int64)
    for part in parts(len(number), len(lane)):
        uses += np.bincount(number[part][used[part]], minlength=len(lane))
    distinct = np.unique(lane[uses > 0])
    stream = np.full(len(number), -1, np.int32)
    lane_of = np.searchsorted(distinct, lane).astype(np.int32)
    for part in parts(len(number)):
        stream[part] = np.where(used[part], lane_of[number[part]], np.int32(-1))
    first = np.flatnonzero(~follows)[distinct]
    legacy = np.full(int(columns["process"].max(initial=-1)) + 1, -1, np.int32)
    defaults = np.flatnonzero(is_legacy[first])[::-1]  # the last assignment, of a process's first one, stays
    legacy[streams.process[first[defaults]]] = defaults
    process = streams.process[first].astype(np.int32)
    if device is None:
        return stream, process, legacy, independent[first], None
    ordering = legacy[process]
    elsewhere = (ordering >= 0) & (device[first][ordering] != device[first])
    return stream, process, legacy, independent[first] | elsewhere, device[first].clip(0)


def _wait_for_devices(
    columns: Columns,
    action: NDArray[np.uint8],
    stream: NDArray[np.int32],
    stream_process: NDArray[np.int32],
    stream_device: NDArray[np.int32],
    devices: list[ContextDevice],
) -> None:
    """Restrict synchronizations of a context to its device if their process has several, in place. If no work was put
    on that, they wait for no stream.
    """
    places = set(zip(stream_process.tolist(), stream_device.tolist(), strict=True))
    if len(places) == len({process for process, _ in places}):
        return
    current = calls_where(columns["function"], lambda entry: entry.awaits is Awaits.CONTEXT and entry.handle == ABSENT)
    rows = np.flatnonzero((action == Action.WAIT_CONTEXT) & current)
    process = columns["process"][rows].astype(np.int64)
    device = device_of_contexts(process, contexts_of({"flags": columns["flags"][rows]}), devices)
    stream[rows] = stream_of_device(process, device, stream_process, stream_device)
    action[rows[stream[rows] == IDLE]] = Action.WAIT_STREAM
    stream[rows] = stream[rows].clip(-1)


def _over_before(
    columns: Columns,
    action: NDArray[np.uint8],
    number: NDArray[np.int64],
    used: NDArray[np.bool_],
    streams: StreamTable,
) -> NDArray[np.bool_]:
    """Return the streams before whose first use the CPU had waited for all work of the one before with their handle.

    Args:
        columns: as in `device_work`.
        action: as in `DeviceWork`.
        number: the stream of each row,
        used: and whether it uses it.
        streams: numbered so that those with the same handle follow each other.
    """
    after, before = slice(1, None), slice(None, -1)
    again = (streams.process[after] == streams.process[before]) & (streams.handle[after] == streams.handle[before])
    again &= streams.epoch[after] > streams.epoch[before]
    over = np.zeros(len(streams.kind), np.bool_)
    if not again.any():
        return over
    stream = np.where(used, number, -1)
    start, end = columns["start"], columns["start"] + columns["duration"]
    latest = np.iinfo(np.int64).max
    first_use, last_work, last_wait = np.full((3, len(over)), -latest)
    first_use[:] = latest
    waits = is_one_of(action, (Action.WAIT_STREAM, Action.ENQUEUE_AND_WAIT, Action.SET_AND_WAIT))
    np.minimum.at(first_use, stream[stream >= 0], start[stream >= 0])
    np.maximum.at(last_work, stream[(stream >= 0) & ~waits], end[(stream >= 0) & ~waits])
    np.maximum.at(last_wait, stream[(stream >= 0) & waits], start[(stream >= 0) & waits])
    for process in np.unique(streams.process[after][again]).tolist():
        whole = np.flatnonzero((columns["process"] == process) & (action == Action.WAIT_CONTEXT))
        whole = whole[np.argsort(end[whole], kind="stable")]
        begun = np.append(np.maximum.accumulate(start[whole]), -latest)  # the last is for streams that no wait precedes
        later = 1 + np.flatnonzero(again & (streams.process[after] == process))
        waited = begun[np.searchsorted(end[whole], first_use[later], side="right") - 1]
        over[later] = np.maximum(waited, last_wait[later - 1]) >= last_work[later - 1]
    return over


def _events(columns: Columns, action: NDArray[np.uint8]) -> tuple[NDArray[np.int32], int]:
    """Number the events over all processes, and count them."""
    event = events_of(columns, is_one_of(action, (Action.RECORD_EVENT, Action.WAIT_EVENT, Action.STREAM_WAIT_EVENT)))
    return event, int(event.max(initial=-1)) + 1


def _directions(columns: Columns, transfers: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return each transfer's `Direction`."""
    found = np.empty(len(transfers), np.uint8)
    for part in parts(len(transfers)):
        upload = (columns["flags"][part] & constant("FFM_OPERATION_HOST_SOURCE")) != 0
        download = (columns["flags"][part] & constant("FFM_OPERATION_HOST_DESTINATION")) != 0
        found[part] = Direction.OTHER
        found[part][upload & ~download] = Direction.TO_DEVICE
        found[part][download & ~upload] = Direction.FROM_DEVICE
        found[part][~transfers[part]] = Direction.NONE
    return found


def _after_waits(columns: Columns, action: NDArray[np.uint8]) -> NDArray[np.int32] | None:
    """Return `DeviceWork.after_wait`."""
    after, downloads = columns["after_wait"], action == Action.ENQUEUE_AND_WAIT
    if not any(after[part][downloads[part]].any() for part in parts(len(after))):
        return None
    return np.where(downloads, after, np.int32(0))


def _asked(columns: Columns, stream: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Return `DeviceWork.asked`; `stream` is that of each row as `streams_of` numbers it. None without queries."""
    queries = calls_where(columns["function"], lambda function: function.kind is DriverKind.QUERY)
    if queries.any():
        queries &= np.isin(columns["result"], (0, NOT_READY))
    if not queries.any():
        return None
    of_event = calls_where(columns["function"], lambda function: function.awaits is Awaits.EVENT)
    event = events_of(columns, queries & of_event)
    rows = np.flatnonzero(queries)
    numbers = np.where(of_event[rows], event[rows], stream[rows] + int(event.max(initial=-1)) + 1)
    asked = np.full(len(stream), -1, np.int32)
    asked[rows] = unfinished_queries(numbers, columns["result"][rows] == NOT_READY)
    return asked


def _partners(columns: Columns) -> NDArray[np.int32]:
    """Return, for each free, the later allocation that could have used its memory, and the reverse, as
    `ffm.model.estimators.hoisting.reused_memory` does.
    """
    allocates = calls_where(
        columns["function"], lambda function: function.kind is DriverKind.ALLOCATION and _kept(function)
    )
    frees = calls_where(columns["function"], lambda function: function.kind is DriverKind.FREE and _kept(function))
    rows = np.flatnonzero(allocates | frees)
    rows = rows[columns["result"][rows] == 0]
    rows = rows[np.lexsort((columns["start"][rows], columns["process"][rows]))]
    found = reused_memory(
        columns["process"][rows],
        columns["stack"][rows],
        columns["destination"][rows],
        columns["bytes"][rows],
        allocates[rows],
        _memory_kinds()[columns["function"][rows]],
    )
    partner = np.full(len(allocates), -1, np.int32)
    partner[rows] = np.where(found >= 0, rows[np.maximum(found, 0)] if len(rows) else -1, -1)
    return partner


def _memory_kinds() -> NDArray[np.int32]:
    """Return a table over recorded function indices that numbers the kinds of memory that functions are about."""
    table = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, np.int32)
    kinds = list(DriverMemory)
    for function in load_catalogue().functions:
        table[function.index] = kinds.index(function.memory)
    return table


def _kept(function: DriverFunction) -> bool:
    """Return whether the program can keep what the function allocates or frees for later."""
    return function.direction is DriverDirection.NONE and function.memory in (
        DriverMemory.DEVICE,
        DriverMemory.PINNED,
        DriverMemory.MANAGED,
    )
