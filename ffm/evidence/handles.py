"""Which stream and which event each operation's handles name: default streams, contexts, and handles used again.

The driver gives a new stream or event the handle of one that was destroyed. All parts of ffm that read a run's
columns take the identity of both from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DefaultStream, DriverFunction, Kind, load_catalogue
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import numbered
from ffm.model.necessity.program import StreamKind
from ffm.results.columnar.columns import Columns

LEGACY_STREAM, LEGACY_HANDLE, PER_THREAD_HANDLE = 0, 1, 2
"""`CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD` in CUDA's `cuda.h`: handles of the default streams."""

NON_BLOCKING = 1
"""`CU_STREAM_NON_BLOCKING` of `cuda.h`."""

CONTEXT_SHIFT = 8
"""The high byte of an operation's flags is the number of its context; see `layout.h`."""


@dataclass(frozen=True, slots=True)
class StreamTable:
    """The distinct streams of a run. All columns have the shape (streams,)."""

    process: NDArray[np.int64]
    handle: NDArray[np.uint64]
    """0 for default streams."""
    epoch: NDArray[np.int64]
    """How often a stream with this handle had been created by then; 0 for default streams and unseen creations."""
    kind: NDArray[np.uint8]
    """A value of `StreamKind`."""
    context: NDArray[np.int64]
    """The context's number in its process."""


def contexts_of(columns: Columns) -> NDArray[np.int64]:
    """Return the number, within the process, of the context in which each operation ran."""
    return _contexts(columns).astype(np.int64)


def _contexts(columns: Columns) -> NDArray[np.int32]:
    numbers: NDArray[np.int32] = columns["flags"] >> CONTEXT_SHIFT
    return numbers


def streams_of(columns: Columns) -> tuple[NDArray[np.int64], StreamTable]:
    """Return the stream of each operation, numbered from 0 over all processes, and what the streams are.

    Numbers are in the order of process, handle and creation.
    A default stream belongs to a context; one per thread to a thread of it, too. Any other stream is its handle since
    it was created last.
    """
    process, context = columns["process"], _contexts(columns)
    handle = columns["stream"].astype(np.uint64, copy=False)
    per_thread = _table(lambda function: function.default_stream is DefaultStream.PER_THREAD)[columns["function"]]
    own = (handle == PER_THREAD_HANDLE) | ((handle == LEGACY_STREAM) & per_thread)
    default = own | (handle == LEGACY_STREAM) | (handle == LEGACY_HANDLE)
    handle = np.where(default, np.uint64(LEGACY_STREAM), handle)
    created = _creations(columns, Kind.STREAM)
    epoch, last = _epochs(process, handle, columns["start"], created, columns)
    epoch[default] = 0
    number, first = numbered(
        process, handle, epoch, np.where(own, columns["thread"], np.int32(-1)), np.where(default, context + 1, 0)
    )
    kind = np.full(len(first), StreamKind.INDEPENDENT, np.uint8)  # for a stream whose creation was not seen
    kind[default[first]] = StreamKind.LEGACY
    kind[own[first]] = StreamKind.BLOCKING
    of_context = context[first].astype(np.int64)
    seen = np.flatnonzero(epoch[first] > 0)
    made = last[first[seen]]
    of_context[seen] = context[made]
    kind[seen[(columns["source"][made].astype(np.uint64) & np.uint64(NON_BLOCKING)) == 0]] = StreamKind.BLOCKING
    return number, StreamTable(process[first].astype(np.int64), handle[first], epoch[first], kind, of_context)


def events_of(columns: Columns, concerned: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the event of each operation that concerns one, numbered from 0 over all processes; -1 for the others."""
    rows = np.flatnonzero(concerned)
    process, handle = columns["process"][rows].astype(np.int64), columns["handle"][rows].astype(np.uint64)
    epoch, _ = _epochs(process, handle, columns["start"][rows], _creations(columns, Kind.EVENT), columns)
    event = np.full(len(concerned), -1, np.int64)
    event[rows], _ = numbered(process, handle, epoch)
    return event


def _table(chosen: Callable[[DriverFunction], bool]) -> NDArray[np.bool_]:
    """Return whether each recorded function index is of a chosen function of the catalogue."""
    table = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, np.bool_)
    for function in load_catalogue().functions:
        table[function.index] = chosen(function)
    return table


def _creations(columns: Columns, kind: Kind) -> NDArray[np.int64]:
    """Return the rows that created an object of this kind."""
    functions = [function.index for function in load_catalogue().of_kind(kind) if function.result >= 0]
    return np.flatnonzero(np.isin(columns["function"], functions) & (columns["result"] == 0))


def _epochs(
    process: NDArray[np.integer],
    handle: NDArray[np.uint64],
    time: NDArray[np.int64],
    created: NDArray[np.int64],
    columns: Columns,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count how often each handle had been created by a time, and return the last row that did (any, if none did)."""
    if not len(created):
        return np.zeros(len(handle), np.int64), np.zeros(len(handle), np.int64)
    # Handles that were never created get the number after all others.
    made_key, first = numbered(columns["process"][created].astype(np.int64), columns["destination"][created])
    keys = _find(
        process, handle, columns["process"][created[first]].astype(np.int64), columns["destination"][created[first]]
    )
    times = np.sort(columns["start"][created])
    steps = len(times) + 1
    made = made_key * steps + np.searchsorted(times, columns["start"][created], side="right")
    order = np.argsort(made, kind="stable")
    until = np.searchsorted(made[order], keys * steps + np.searchsorted(times, time, side="right"), side="right")
    return until - np.searchsorted(made[order], keys * steps), created[order[np.maximum(until - 1, 0)]]


def _find(
    process: NDArray[np.integer], handle: NDArray[np.uint64], processes: NDArray[np.int64], handles: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the place of each process and handle in distinct ones; how many there are, for those that are not."""
    wanted, first = numbered(process, handle)
    place = {pair: place for place, pair in enumerate(zip(processes.tolist(), handles.tolist(), strict=True))}
    pairs = zip(process[first].tolist(), handle[first].tolist(), strict=True)
    return np.array([place.get(pair, len(place)) for pair in pairs], np.int64)[wanted]
