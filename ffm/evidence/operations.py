"""The operations of a run as columns, and the identity by which runs are matched (docs/architecture.md#the-stages)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import load_catalogue
from ffm.evidence.driver_threads import of_driver_threads
from ffm.evidence.stack_table import StackTable
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.timeline import Kind
from ffm.results.columns import LONGEST, Column, Columns, Table, duration, identity, size, time

PRIVATE = "private"
"""Function name of a wait under no public call."""

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
        "number": Column(np.int64, least=0, most=LONGEST),
        "kind": Column(np.uint8, most=max(Kind)),
    }
)
"""What `operation_columns` returns."""


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
    return lookup[functions]


def operation_columns(recordings: list[Recording], stacks: StackTable) -> Columns:
    """Return all operations of a run, sorted by process, thread and start. Waits on the driver's own threads, and calls
    that were captured into a graph, are left out.

    Adds to `COLUMNS`: `process` (index among the run's processes), `thread` (within the process), `stack` (number in
    `stacks`), `kind` (of the model), `occurrence` (how often this process and thread performed this stack before).
    """
    parts: list[Columns] = []
    for process, recording in enumerate(recordings):
        numbers = stacks.add(recording)
        rows = recording.operations[~of_driver_threads(recording)]
        rows = rows[(rows["flags"] & constant("FFM_OPERATION_CAPTURED")) == 0]
        order = np.lexsort((rows["start"], rows["thread"]))
        rows = rows[order]
        part: Columns = {name: rows[name].astype(kind) for name, kind in COLUMNS.items()}
        part["process"] = np.full(len(rows), process, np.int32)
        part["thread"] = rows["thread"].astype(np.int32)
        part["stack"] = numbers[rows["stack"]] if len(rows) else np.empty(0, np.int32)
        parts.append(part)
    names = [*COLUMNS, "process", "thread", "stack"]
    columns = {
        name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0, COLUMNS.get(name, np.int32))
        for name in names
    }
    columns["kind"] = kinds_of(columns["function"])
    columns["occurrence"] = occurrences(columns["process"], columns["thread"], columns["stack"])
    return columns


def occurrences(*identity: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count, for each row, the earlier rows with the same identity. Shape (n,)."""
    count = len(identity[0])
    keys: list[NDArray[Any]] = [np.arange(count), *reversed(identity)]
    order = np.lexsort(keys)
    sorted_columns = [column[order] for column in identity]
    new = np.zeros(count, bool)
    if count:
        new[0] = True
    for column in sorted_columns:
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    lengths = np.diff(np.append(starts, count))
    ranks = np.arange(count) - np.repeat(starts, lengths)
    result = np.empty(count, np.int64)
    result[order] = ranks
    return result
