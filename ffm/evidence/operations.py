"""The operations of a run as columns, and the identity by which runs are matched (docs/architecture.md#the-stages)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Effect
from ffm.driver.vocabulary import Kind as DriverKind
from ffm.evidence.calls import calls_where, only_enqueue
from ffm.evidence.stack_table import StackTable
from ffm.evidence.stretches import calls_before, is_limited
from ffm.evidence.threads.driver_threads import of_driver_threads
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.grouping import looked_up, numbered, parts, ranks_within
from ffm.model.timeline import Kind
from ffm.results.columnar.columns import Column, Columns, Table, duration, identity, size, time
from ffm.results.vocabulary import PRIVATE

MODEL_KINDS = {
    DriverKind.SYNCHRONIZATION: Kind.SYNCHRONIZATION,
    DriverKind.TRANSFER: Kind.TRANSFER,
    DriverKind.SET: Kind.TRANSFER,
    DriverKind.FREE: Kind.FREE,
    DriverKind.ALLOCATION: Kind.ALLOCATION,
    DriverKind.LAUNCH: Kind.LAUNCH,
}
"""The model's names for the catalogue's kinds; all others are `Kind.OTHER`."""

COLUMNS = {
    "start": np.int64,
    "duration": np.int64,
    "wait": np.int64,
    "after_wait": np.int32,
    "waits": np.int32,
    "probe": np.int64,
    "bytes": np.int64,
    "destination": np.uint64,
    "source": np.uint64,
    "stream": np.uint64,
    "handle": np.uint64,
    "function": np.int32,
    "flags": np.int32,
    "result": np.int32,
    "number": np.int64,
}
"""Columns taken as recorded. Times in nanoseconds; `number` is the index within the thread."""


def recorded_functions() -> list[int]:
    """Return the indices that a recorded function may have."""
    return [*range(len(load_catalogue())), constant("FFM_FUNCTION_PRIVATE")]


FUNCTION = Column(np.int32, least=0, most=0xFFFF, among=recorded_functions)

EVENTS = Table(
    {
        **identity(),
        "start": time(),
        "duration": duration(),
        "wait": duration(),
        "after_wait": Column(np.int32, least=0),
        "waits": Column(np.int32, least=0),
        "probe": duration(),
        "bytes": size(),
        "destination": Column(np.uint64),
        "source": Column(np.uint64),
        "stream": Column(np.uint64),
        "handle": Column(np.uint64),
        "function": FUNCTION,
        "flags": Column(np.int32, least=0, most=0xFFFF),
        "result": Column(np.int32),
        "kind": Column(np.uint8, most=max(Kind)),
    },
    {"do operations come by process, thread and start": lambda columns: _are_in_order(columns)},
)
"""What stages after the traced run read of what `operation_columns` returns."""


def _are_in_order(columns: Columns) -> bool:
    """Return whether rows are sorted by process, then by thread, then by start."""
    later, equal = np.zeros(max(len(columns["start"]) - 1, 0), np.bool_), np.True_
    for name in ("process", "thread", "start"):
        column = columns[name]
        later |= equal & (column[1:] > column[:-1])
        equal = equal & (column[1:] == column[:-1])
    return bool((later | equal).all())


def function_name(function: int) -> str:
    """Return the exported name behind a recorded function index."""
    return PRIVATE if function == constant("FFM_FUNCTION_PRIVATE") else load_catalogue()[function].name


def kinds_of(functions: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return the `Kind` of each recorded function index."""
    catalogue = load_catalogue()
    lookup = np.full(constant("FFM_FUNCTION_PRIVATE") + 1, Kind.OTHER, np.uint8)
    for function in catalogue.functions:
        lookup[function.index] = MODEL_KINDS.get(function.kind, Kind.OTHER)
    lookup[constant("FFM_FUNCTION_PRIVATE")] = Kind.PRIVATE
    return looked_up(lookup, functions)


def operation_columns(recordings: list[Recording], stacks: StackTable) -> Columns:
    """Return all operations of a run, sorted by process, thread and start. Waits on the driver's own threads, and calls
    that were captured into a graph, are left out.

    Adds to `COLUMNS`: `process` (index among the run's processes), `thread` (within the process), `stack` (number in
    `stacks`), `kind` (of the model), `occurrence` (how often this process and thread performed this stack before; of
    a portion of a run, how often this thread called this function, recorded or not, which is the same in each run).
    """
    processes: list[Columns] = []
    limited = any(is_limited(recording) for recording in recordings)
    for process, recording in enumerate(recordings):
        numbers = stacks.add(recording)
        part = _in_order(_recorded(recording.operations), of_driver_threads(recording))
        part["process"] = np.full(len(part["start"]), process, np.int32)
        part["stack"] = numbers[part["stack"]] if len(part["start"]) else np.empty(0, np.int32)
        if limited:
            called = (part[name].astype(np.int64) for name in ("thread", "function", "number"))
            part["occurrence"] = calls_before(recording, *called)
        processes.append(part)
    names = [*COLUMNS, "process", "thread", "stack", *(["occurrence"] if limited else [])]
    if not processes:
        processes = [{name: np.empty(0, COLUMNS.get(name, np.int32)) for name in names}]
    columns = {name: _joined([part[name] for part in processes]) for name in names}
    columns["kind"] = kinds_of(columns["function"])
    columns = _without_own_waits(columns)
    if not limited:
        columns["occurrence"] = occurrences(columns["process"], columns["thread"], columns["stack"])
    return columns


def _recorded(operations: NDArray[Any]) -> Columns:
    """Return what was recorded of operations as columns; `stack` is the recording's number."""
    kinds = {**COLUMNS, "thread": np.int32, "stack": np.int32}
    columns: Columns = {name: np.empty(len(operations), kind) for name, kind in kinds.items()}
    for part in parts(len(operations)):  # all columns of a few rows, which are then in the processor's cache
        some = operations[part]
        for name, column in columns.items():
            column[part] = some[name]
    return columns


def _in_order(columns: Columns, left_out: NDArray[np.bool_]) -> Columns:
    """Return a process's operations by thread and start, without some, and without those that were captured."""
    kept = ~left_out & ((columns["flags"] & constant("FFM_OPERATION_CAPTURED")) == 0)
    if kept.all() and are_in_order(columns["thread"], columns["start"]):
        return columns
    order = np.flatnonzero(kept)
    order = order[in_order(columns["thread"][order], columns["start"][order])]
    return {name: column[order] for name, column in columns.items()}


def _without_own_waits(columns: Columns) -> Columns:
    """Return the columns without the waits that calls make for what they need themselves.

    Those that enter a context wait for its set-up. What makes one waits for that, too, and is not recorded
    (`context_makers` in `ffm/stages/tracing.py`). What only enqueues work waits for a kernel's code to be loaded, or
    for room in the queue: that is part of the call. `waits` still counts these, since loading may wait for the GPU.
    """
    enters = calls_where(columns["function"], lambda function: function.effect is Effect.ENTER_CONTEXT)
    enters &= columns["waits"] > 0
    loads = only_enqueue(columns) & (columns["wait"] > 0)
    if not enters.any() and not loads.any():
        return columns
    return {
        **columns,
        "wait": np.where(enters | loads, columns["wait"].dtype.type(0), columns["wait"]),
        "waits": np.where(enters, columns["waits"].dtype.type(0), columns["waits"]),
    }


def _joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def in_order(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of rows by the keys, the first before the others; rows that are equal stay as they are."""
    return np.arange(len(keys[0])) if are_in_order(*keys) else np.lexsort(keys[::-1])


def are_in_order(*keys: NDArray[Any]) -> bool:
    """Return whether rows are in order by the keys, the first before the others, as each thread records them."""
    sorted_so_far = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for key in reversed(keys):
        sorted_so_far = (key[:-1] < key[1:]) | ((key[:-1] == key[1:]) & sorted_so_far)
    return bool(sorted_so_far.all())


def occurrences(*identity: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count, for each row, the earlier rows with the same identity. Shape (n,)."""
    number, first = numbered(*identity)
    return ranks_within(number, len(first))
