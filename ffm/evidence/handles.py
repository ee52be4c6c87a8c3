"""Which stream and which event each operation's handles name: default streams, contexts, and handles used again.

The driver gives a new stream or event the handle of one that was destroyed. All parts of ffm that read a run's
columns take the identity of both from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import DefaultStream, Kind
from ffm.evidence.calls import calls_where, functions_where
from ffm.model.grouping import numbered, numbered_by_part
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
    return (columns["flags"] >> CONTEXT_SHIFT).astype(np.int64)


def streams_of(columns: Columns) -> tuple[NDArray[np.int64], StreamTable]:
    """Return the stream of each operation, numbered from 0 over all processes, and what the streams are.

    Numbers are in the order of process, handle and creation. A default stream belongs to a context; a per-thread one
    also to a thread. Any other stream is its handle since the handle was last created.
    """
    naming = _Naming(columns)
    # Whole, if streams were created: to count these takes long for each part.
    size = len(columns["stream"]) if len(naming.created) else 0
    number, first = numbered_by_part(len(columns["stream"]), lambda part: naming.of(part).identity, size)
    named = naming.of(first)
    kind = np.full(len(first), StreamKind.INDEPENDENT, np.uint8)  # for a stream whose creation was not seen
    kind[named.default] = StreamKind.LEGACY
    kind[named.own] = StreamKind.BLOCKING
    of_context = named.context.astype(np.int64)
    seen = np.flatnonzero(named.epoch > 0)
    made = named.last[seen]
    of_context[seen] = columns["flags"][made] >> CONTEXT_SHIFT
    kind[seen[(columns["source"][made].astype(np.uint64) & np.uint64(NON_BLOCKING)) == 0]] = StreamKind.BLOCKING
    return number, StreamTable(named.process.astype(np.int64), named.handle, named.epoch, kind, of_context)


@dataclass(frozen=True, slots=True)
class _Named:
    """What some operations say of the streams that they name. Columns of equal length."""

    process: NDArray[np.int32]
    thread: NDArray[np.int32]
    context: NDArray[np.int32]
    handle: NDArray[np.uint64]
    """As in `StreamTable`."""
    own: NDArray[np.bool_]
    """Whether it is the default stream of the thread,"""
    default: NDArray[np.bool_]
    """or any default stream."""
    epoch: NDArray[np.int64]
    """As in `StreamTable`."""
    last: NDArray[np.int64]
    """The row that created it last; any, if none did."""

    @property
    def identity(self) -> tuple[NDArray[Any], ...]:
        """The columns that distinguish streams."""
        thread = np.where(self.own, self.thread, np.int32(-1))
        return self.process, self.handle, self.epoch, thread, np.where(self.default, self.context + 1, 0)


class _Naming:
    """Finds out which streams the operations of a run name."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._per_thread = functions_where(lambda function: function.default_stream is DefaultStream.PER_THREAD)
        self.created = _creations(columns, Kind.STREAM)

    def of(self, rows: slice | NDArray[np.int64]) -> _Named:
        """Return what some operations name."""
        names = ("process", "thread", "flags", "stream", "function", "start")
        process, thread, flags, handle, function, start = (self._columns[name][rows] for name in names)
        handle = handle.astype(np.uint64, copy=False)
        own = (handle == PER_THREAD_HANDLE) | ((handle == LEGACY_STREAM) & self._per_thread[function])
        default = own | (handle == LEGACY_STREAM) | (handle == LEGACY_HANDLE)
        handle = np.where(default, np.uint64(LEGACY_STREAM), handle)
        epoch, last = _epochs(process, handle, start, self.created, self._columns)
        epoch[default] = 0
        return _Named(process, thread, flags >> CONTEXT_SHIFT, handle, own, default, epoch, last)


def events_of(columns: Columns, concerned: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the event of each operation that concerns one, numbered from 0 over all processes; -1 for the others."""
    rows = np.flatnonzero(concerned)
    process, handle = columns["process"][rows].astype(np.int64), columns["handle"][rows].astype(np.uint64)
    epoch, _ = _epochs(process, handle, columns["start"][rows], _creations(columns, Kind.EVENT), columns)
    event = np.full(len(concerned), -1, np.int32)
    event[rows], _ = numbered(process, handle, epoch)
    return event


def seen_created(columns: Columns, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the creation of the event was seen that each of these operations concerns, one each."""
    process, handle = columns["process"][rows].astype(np.int64), columns["handle"][rows].astype(np.uint64)
    epoch, _ = _epochs(process, handle, columns["start"][rows], _creations(columns, Kind.EVENT), columns)
    seen: NDArray[np.bool_] = epoch > 0
    return seen


def _creations(columns: Columns, kind: Kind) -> NDArray[np.int64]:
    """Return the rows that created an object of this kind."""
    creates = calls_where(columns["function"], lambda function: function.kind is kind and function.result >= 0)
    rows = np.flatnonzero(creates)
    done: NDArray[np.int64] = rows[columns["result"][rows] == 0]
    return done


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
