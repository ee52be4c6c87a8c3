"""Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Direction, Shape, load_catalogue
from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import Memory as DriverMemory
from ffm.instrument.layout import constant
from ffm.instrument.recording import Recording
from ffm.model.necessity import Necessity, Operations, Role, Scope, Uses, needed_synchronizations
from ffm.model.transfers import Contents, allocations_of, repeated_transfers
from ffm.stages.documents import Baseline, Memory, read_document, write_document
from ffm.stages.measure import Request, measure, require_sound
from ffm.stages.operations import operation_columns
from ffm.stages.stack_table import StackTable
from ffm.stages.tables import Columns, write_table
from ffm.stages.tracing import traced_functions

CONTENTS, WATCH, PLAN = 1, 2, 4
"""Flags `FFM_MODE_*` of `ffm/instrument/collector/collector.h`."""

LEGACY_STREAM, LEGACY_HANDLE, PER_THREAD_HANDLE = 0, 1, 2
"""`CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` of CUDA's `cuda.h`: handles that name the default streams."""

PER_THREAD_STREAMS = 1 << 60
"""A thread's own default stream gets this number plus the thread's: no pointer is as large."""


def run_memory(request: Request) -> Memory:
    """Run the program with host memory watched and transfers hashed; write `memory.json` and its tables.

    Raises:
        DocumentError: stage 1 is missing.
        ProgramError: the program could not be measured, or failed.
    """
    baseline = read_document(Baseline, request.folder.document("baseline"))
    measured = measure("memory", request, functions=traced_functions(baseline), mode=CONTENTS | WATCH)
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    synchronizations: list[Columns] = []
    transfers: list[Columns] = []
    accesses: list[Columns] = []
    for process, recording in enumerate(measured.recordings):
        rows = np.flatnonzero(columns["process"] == process)
        rows = rows[np.argsort(columns["start"][rows], kind="stable")]
        part = {name: column[rows] for name, column in columns.items()}
        uses = uses_of(part, recording.accesses)
        necessity = needed_synchronizations(
            operations_of(part), uses.model, unwatched_memory=_has_unwatched_memory(part)
        )
        synchronizations.append(_synchronization_table(part, necessity))
        transfers.append(_transfer_table(part, recording))
        accesses.append(_access_table(part, uses, necessity))
    _write(request, "memory-synchronizations", synchronizations)
    _write(request, "memory-transfers", transfers)
    _write(request, "memory-accesses", accesses)
    document = Memory(
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        watch="pages",
        synchronizations=request.folder.table("memory-synchronizations").name,
        transfers=request.folder.table("memory-transfers").name,
        accesses=request.folder.table("memory-accesses").name,
    )
    write_document(document, request.folder.document("memory"))
    require_sound(measured.run, request)
    return document


def _write(request: Request, name: str, parts: list[Columns]) -> None:
    write_table(
        {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}, request.folder.table(name)
    )


def _functions_where(*, kind: DriverKind | None = None, memory: DriverMemory | None = None) -> list[int]:
    return [
        function.index
        for function in load_catalogue().functions
        if (kind is None or function.kind is kind) and (memory is None or function.memory is memory)
    ]


def streams_of(columns: Columns) -> NDArray[np.uint64]:
    """Return the stream of each operation as one number for each distinct stream, default streams included."""
    catalogue = load_catalogue()
    per_thread = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, bool)
    for function in catalogue.functions:
        per_thread[function.index] = function.default_stream == "per_thread"
    stream = columns["stream"].copy()
    own = (stream == PER_THREAD_HANDLE) | ((stream == LEGACY_STREAM) & per_thread[columns["function"]])
    stream[stream == LEGACY_HANDLE] = LEGACY_STREAM
    stream[own] = PER_THREAD_STREAMS + columns["thread"][own].astype(np.uint64)
    return stream


def operations_of(columns: Columns) -> Operations:
    """Say of each operation of a process, sorted by start, what it waits for."""
    catalogue = load_catalogue()
    functions = columns["function"]
    stream = streams_of(columns)
    waited = columns["waits"] > 0
    scope = np.full(len(functions), Scope.NONE, np.uint8)
    bound = columns["start"].copy()

    def named(*names: str) -> NDArray[np.bool_]:
        indices = [function.index for function in catalogue.functions if function.base in names]
        return np.isin(functions, indices)

    kinds = {kind: np.isin(functions, [function.index for function in catalogue.of_kind(kind)]) for kind in DriverKind}
    scope[waited] = Scope.CONTEXT
    on_stream = waited & (kinds[DriverKind.TRANSFER] | kinds[DriverKind.SET])
    scope[on_stream] = Scope.STREAM
    scope[named("cuCtxSynchronize")] = Scope.CONTEXT
    scope[named("cuStreamSynchronize")] = Scope.STREAM
    by_event = named("cuEventSynchronize")
    scope[by_event] = Scope.EVENT
    scope[functions == constant("FFM_FUNCTION_PRIVATE")] = Scope.UNKNOWN
    _resolve_events(columns, by_event, named("cuEventRecord", "cuEventRecordWithFlags"), stream, bound)
    return Operations(
        start=columns["start"],
        end=columns["start"] + columns["duration"],
        scope=scope,
        stream=stream,
        bound=bound,
        enqueues=kinds[DriverKind.TRANSFER] | kinds[DriverKind.SET] | kinds[DriverKind.LAUNCH],
        timing=kinds[DriverKind.TIMING],
        launches=kinds[DriverKind.LAUNCH],
        host_function=kinds[DriverKind.HOST_FUNCTION],
    )


def _resolve_events(
    columns: Columns,
    waits: NDArray[np.bool_],
    records: NDArray[np.bool_],
    stream: NDArray[np.uint64],
    bound: NDArray[np.int64],
) -> None:
    """Give each wait for an event the stream and the time of the event's last record before it."""
    record_rows = np.flatnonzero(records)
    handles = columns["handle"]
    for row in np.flatnonzero(waits):
        mine = record_rows[(handles[record_rows] == handles[row]) & (record_rows < row)]
        if len(mine):
            stream[row] = stream[mine[-1]]
            bound[row] = columns["start"][mine[-1]]
        else:
            bound[row] = 0  # never recorded: it covers nothing


def _has_unwatched_memory(columns: Columns) -> bool:
    managed = _functions_where(kind=DriverKind.ALLOCATION, memory=DriverMemory.MANAGED)
    mapped = [function.index for function in load_catalogue().functions if function.base == "cuMemHostGetDevicePointer"]
    return bool(np.isin(columns["function"], managed + mapped).any())


class ProcessUses:
    """First accesses of a process, as the model reads them, beside what was recorded of them."""

    def __init__(self, model: Uses, recorded: NDArray[np.void]) -> None:
        self.model = model
        self.recorded = recorded


def uses_of(columns: Columns, recorded: NDArray[np.void]) -> ProcessUses:
    """Turn the recorded ends of watches into uses of the transfers' memory.

    What was freed, or overwritten by another transfer, before anyone touched it was not used.
    """
    not_used = [constant("FFM_ACCESS_RELEASED"), constant("FFM_ACCESS_OVERWRITTEN")]
    recorded = recorded[~np.isin(recorded["kind"], not_used)]
    key = columns["thread"].astype(np.int64) << 40 | columns["number"]
    order = np.argsort(key)
    wanted = recorded["operation_thread"].astype(np.int64) << 40 | recorded["operation"].astype(np.int64)
    place = np.searchsorted(key[order], wanted)
    transfer = order[np.minimum(place, len(order) - 1)] if len(order) else np.empty(0, np.int64)
    destination = (columns["flags"][transfer] & constant("FFM_OPERATION_HOST_DESTINATION")) != 0
    asynchronous = np.isin(
        columns["function"][transfer],
        [function.index for function in load_catalogue().functions if function.asynchronous],
    )
    role = np.select([destination, asynchronous], [Role.RESULT, Role.SOURCE], Role.OWN_SOURCE)
    hidden = _hidden_transfers(columns)
    return ProcessUses(
        Uses(
            transfer=np.concatenate([transfer.astype(np.int64), hidden]),
            time=np.concatenate([recorded["time"].astype(np.int64), columns["start"][hidden]]),
            role=np.concatenate([role, np.full(len(hidden), Role.RESULT)]).astype(np.uint8),
            watched=np.concatenate([recorded["kind"] != constant("FFM_ACCESS_UNWATCHED"), np.zeros(len(hidden), bool)]),
        ),
        recorded,
    )


def _hidden_transfers(columns: Columns) -> NDArray[np.int64]:
    """Return the rows of transfers whose host memory the collector does not watch, so that it counts as used.

    Those are copies whose direction only the addresses tell, and copies of several rows or items, of which only the
    first stretch is watched.
    """
    by_address = [
        function.index
        for function in load_catalogue().of_kind(DriverKind.TRANSFER)
        if function.direction is Direction.GENERIC and function.shape is Shape.PLAIN
    ]
    in_rows = [
        function.index
        for function in load_catalogue().of_kind(DriverKind.TRANSFER)
        if function.shape not in (Shape.PLAIN, Shape.NARROW)
    ]
    flags = columns["flags"]
    host = constant("FFM_OPERATION_HOST_DESTINATION")
    return np.flatnonzero(
        np.isin(columns["function"], by_address) | (np.isin(columns["function"], in_rows) & ((flags & host) != 0))
    )


def _identity(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    """Return what names the same operation in another run; `stack` is the number in this document."""
    return {name: columns[name][rows] for name in ("process", "thread", "stack", "occurrence")}


def _synchronization_table(columns: Columns, necessity: Necessity) -> Columns:
    rows = np.flatnonzero(necessity.reason != 0)
    keep = necessity.keep[rows]
    return {
        **_identity(columns, rows),
        "reason": necessity.reason[rows],
        "keep_stack": np.where(keep >= 0, columns["stack"][np.maximum(keep, 0)], -1).astype(np.int32),
        "first_use": necessity.first_use[rows],
    }


def _transfer_table(columns: Columns, recording: Recording) -> Columns:
    """Rows for all uploads that were hashed."""
    key = columns["thread"].astype(np.int64) << 40 | columns["number"]
    order = np.argsort(key)
    contents = recording.contents
    wanted = contents["thread"].astype(np.int64) << 40 | contents["operation"].astype(np.int64)
    rows = order[np.searchsorted(key[order], wanted)] if len(wanted) else np.empty(0, np.int64)
    upload = (columns["flags"][rows] & constant("FFM_OPERATION_HOST_SOURCE")) != 0
    rows, contents = rows[upload], contents[upload]
    by_time = np.argsort(columns["start"][rows], kind="stable")
    rows, contents = rows[by_time], contents[by_time]
    allocating = np.flatnonzero(
        np.isin(columns["function"], _functions_where(kind=DriverKind.ALLOCATION)) & (columns["result"] == 0)
    )
    allocation = allocations_of(
        columns["destination"][rows],
        columns["start"][rows],
        columns["destination"][allocating],
        columns["bytes"][allocating],
        columns["start"][allocating],
    )
    held = ((contents["flags"] & constant("FFM_CONTENT_DESTINATION_KNOWN")) != 0) & (
        contents["destination_hash"] == contents["hash"]
    ).all(axis=1)
    found = repeated_transfers(
        Contents(
            destination=columns["destination"][rows],
            bytes=columns["bytes"][rows],
            hash_low=contents["hash"][:, 0],
            hash_high=contents["hash"][:, 1],
            destination_held=held,
            allocation=allocation,
        )
    )
    first = found.first
    return {
        **_identity(columns, rows),
        "kind": found.kind,
        "first_stack": np.where(first >= 0, columns["stack"][rows][np.maximum(first, 0)], -1).astype(np.int32),
        "bytes": columns["bytes"][rows],
    }


def _access_table(columns: Columns, uses: ProcessUses, necessity: Necessity) -> Columns:
    """Rows for the uses that a synchronization was credited with: what stage 4 watches again."""
    rows = np.flatnonzero((necessity.credited >= 0) & uses.model.watched)
    transfer = uses.model.transfer[rows]
    relied = necessity.credited[rows]
    return {
        **_identity(columns, transfer),
        "function": columns["function"][transfer],
        "synchronization_function": columns["function"][relied],
        "synchronization_stack": columns["stack"][relied],
        "synchronization_occurrence": columns["occurrence"][relied],
        "synchronization_thread": columns["thread"][relied],
        "address": uses.recorded["address"][rows],
        "time": uses.model.time[rows],
    }
