"""What stage 3 recorded about the bytes that transfers carry, as `ffm.model.transfers` judges it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Kind, Shape
from ffm.evidence.calls import calls_where, done_calls
from ffm.evidence.operations import are_in_order
from ffm.evidence.program_order import access_rows
from ffm.evidence.stretches import is_limited, stretches_of
from ffm.evidence.transfers.overlaps import Spans, latest_overlapping
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.edges import stretch_of
from ffm.model.transfers import (
    Contents,
    Parts,
    Repetition,
    Repetitions,
    allocations_of,
    first_of,
    latest_of,
    repeated_transfers,
)
from ffm.results.columnar.columns import Columns

LEAST = np.iinfo(np.int64).min

REMOVABLE = (
    Repetition.NEEDED,
    Repetition.OUTSIDE_PORTION,
    Repetition.PARTIAL,
    Repetition.COPY,
    Repetition.REPEAT_FROM_ELSEWHERE,
    Repetition.REPEAT,
    Repetition.REPEAT_UNSEEN,
    Repetition.NO_OP_FROM_ELSEWHERE,
    Repetition.NO_OP,
)
"""From what must stay to what can be removed: a transfer of several copies is classified by the least removable."""


def judged_transfers(columns: Columns, recording: Recording) -> tuple[NDArray[np.int64], Repetitions]:
    """Return the rows of the transfers of a process whose bytes are known, in order of time, and what they repeat.

    `columns` are sorted by start; `first` of the verdicts names a row of `columns`.
    """
    contents, operation, recorded = _contents(columns, recording)
    found = repeated_transfers(contents, _parts(columns, recording, operation, recorded, contents))
    if is_limited(recording):
        found = replace(found, kind=_at_the_edges(contents, columns, recording, operation, found.kind))
    if not len(operation):
        return operation, found
    rank = np.empty(len(REMOVABLE), np.int64)
    rank[list(REMOVABLE)] = np.arange(len(REMOVABLE))
    order = np.lexsort((np.arange(len(operation)), rank[found.kind], operation))
    rows, least = np.unique(operation[order], return_index=True)
    chosen = order[least]
    first = found.first[chosen]
    first = np.where(first >= 0, operation[np.maximum(first, 0)], -1)
    return rows, Repetitions(kind=found.kind[chosen], first=first)


def _at_the_edges(
    contents: Contents,
    columns: Columns,
    recording: Recording,
    operation: NDArray[np.int64],
    kind: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Return the verdicts on copies, without those that may repeat something outside of the measured stretches: the
    first ones to their place in a stretch that seem to be needed, and all that are not to be judged.

    """
    stretches = stretches_of(recording)
    start = columns["start"][operation]
    end = start + columns["duration"][operation]
    of = stretch_of(stretches, start, end, judged=False)
    place = (contents.download, contents.destination, contents.shape)
    again = first_of(*place, of) < np.arange(len(operation))
    judged = stretch_of(stretches, start, end, judged=True) >= 0
    judged &= again | (kind != Repetition.NEEDED) | stretches.from_the_start[np.maximum(of, 0)]
    return np.where(judged, kind, Repetition.OUTSIDE_PORTION).astype(np.uint8)


def _contents(columns: Columns, recording: Recording) -> tuple[Contents, NDArray[np.int64], NDArray[np.void]]:
    """Return the contents in order of time, the operation of each, and what was recorded about each."""
    recorded = recording.contents
    rows = access_rows(columns, recorded)
    kept = (rows >= 0) & (columns["result"][np.maximum(rows, 0)] == 0)
    if not (kept.all() and are_in_order(rows)):  # mostly they are, and nothing is copied
        order = np.flatnonzero(kept)
        order = order[np.argsort(rows[order], kind="stable")]
        recorded, rows = recorded[order], rows[order]
    download = (recorded["flags"] & constant("FFM_CONTENT_DOWNLOAD")) != 0
    known = (recorded["flags"] & constant("FFM_CONTENT_DESTINATION_KNOWN")) != 0
    on_device = np.where(download, columns["source"][rows], recorded["destination"])
    time = columns["start"][rows]
    allocation = _allocation_of(columns, on_device, time)
    touching = _touching(columns, rows, allocation, download)
    contents = Contents(
        time=time,
        download=download,
        source=_sources(columns, rows),
        destination=recorded["destination"],
        shape=recorded["shape"].astype(np.int64),
        bytes=recorded["bytes"].astype(np.int64),
        hash_low=recorded["hash"][:, 0],
        hash_high=recorded["hash"][:, 1],
        destination_known=known,
        destination_held=known & (recorded["destination_hash"] == recorded["hash"]).all(axis=1),
        allocation=allocation,
        defined=_defined(touching, allocation, rows, len(columns["start"])),
        last_write=np.maximum.reduce(
            [
                _last_launched(columns, time, recorded["written"]),
                _last_copied(columns, rows, download, on_device, recorded["bytes"]),
                _unmeasured_before(recording, time),
            ]
        ),
    )
    return contents, rows, recorded


def _sources(columns: Columns, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return where the copies of such operations come from; 0 for those of a batch, whose places are unknown."""
    source = columns["source"][rows].astype(np.uint64)
    batch = np.flatnonzero(rows[1:] == rows[:-1])  # an operation's copies follow each other
    source[batch] = source[batch + 1] = 0
    return source


def _unmeasured_before(recording: Recording, time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when work that is not recorded may have been issued last before a time, or the smallest value."""
    if not len(recording.stretches):
        return np.full(len(time), LEAST)
    stretches = stretches_of(recording)
    return _last_before(time, stretches.settled[~stretches.from_the_start])


def _of_kind(columns: Columns, *kinds: Kind) -> NDArray[np.int64]:
    return done_calls(columns, lambda function: function.kind in kinds)


def _allocation_of(columns: Columns, address: NDArray[np.uint64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    allocating = _of_kind(columns, Kind.ALLOCATION)
    return allocations_of(
        address,
        time,
        columns["destination"][allocating],
        columns["bytes"][allocating],
        columns["start"][allocating],
    )


Touching = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]
"""Transfers and memsets, by allocation on either side: rows, allocations, whether they write it."""


def _touching(
    columns: Columns, copied: NDArray[np.int64], allocation: NDArray[np.int64], download: NDArray[np.bool_]
) -> Touching:
    """Return what touches which allocation. `copied` are the rows of single copies, of which a batch has several."""
    rows = _of_kind(columns, Kind.TRANSFER, Kind.SET)
    time = columns["start"][rows]
    written = _allocation_of(columns, columns["destination"][rows], time)
    read = _allocation_of(columns, columns["source"][rows], time)
    return (
        np.concatenate([rows, rows, copied]),
        np.concatenate([written, read, allocation]),
        np.concatenate([np.repeat([True, False], len(rows)), ~download]),
    )


def _defined(
    touching: Touching, allocation: NDArray[np.int64], rows: NDArray[np.int64], count: int
) -> NDArray[np.bool_]:
    """Return whether an earlier transfer or memset touched the allocation; kernels' results count once fetched."""
    touches, touched, _ = touching
    first = np.full(int(max(touched.max(initial=-1), allocation.max(initial=-1))) + 1, count, np.int64)
    inside = touched >= 0
    np.minimum.at(first, touched[inside], touches[inside])
    return (allocation >= 0) & (first[np.maximum(allocation, 0)] < rows) if len(first) else np.zeros(len(rows), bool)


_ONLY_ORDERS = re.compile(r"cu.*(Event|Capture)")
"""Functions of the kind "order" that write no memory. What others write is not followed."""


def _last_launched(columns: Columns, time: NDArray[np.int64], written: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return when work of the program that may have written an allocation was last issued before a time.

    `written` is when a kernel that leads to it was last launched, as recorded. If that is not known, any kernel counts,
    and any function of the program in the stream.
    """
    unknown = np.flatnonzero(written == constant("FFM_WRITES_UNKNOWN"))
    last = np.where(written == 0, LEAST, written.astype(np.int64))
    last[unknown] = _last_before(time[unknown], _issued(columns, Kind.LAUNCH, Kind.HOST_FUNCTION))
    return np.maximum(last, _last_before(time, _issued(columns, Kind.ORDER, without=_ONLY_ORDERS)))


def _last_copied(
    columns: Columns,
    rows: NDArray[np.int64],
    download: NDArray[np.bool_],
    address: NDArray[np.uint64],
    bytes_: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return when a copy or set last wrote any of the device memory of each copy before, or the smallest value.

    `rows` are the operations of the copies, of which a batch has several.
    """
    writing = _of_kind(columns, Kind.TRANSFER, Kind.SET)
    written = _spans(columns, writing, columns["destination"][writing], columns["bytes"][writing])
    copied = _spans(columns, rows, address, bytes_, sent=~download)
    events = Spans(
        np.concatenate([written.begin, copied.begin[~download]]),
        np.concatenate([written.end, copied.end[~download]]),
        np.concatenate([written.time, copied.time[~download]]),
    )
    found = latest_overlapping(copied, events)
    return np.where(found >= 0, events.time[np.maximum(found, 0)], LEAST)


_PLACED_ELSEWHERE = np.array([2**64 - 2, 2**64 - 1], np.uint64)
"""Where memory counts as being that is not in one piece, or is an array, if its allocation is unknown."""


def _spans(
    columns: Columns,
    rows: NDArray[np.int64],
    address: NDArray[np.uint64],
    bytes_: NDArray[np.int64],
    sent: NDArray[np.bool_] | None = None,
) -> Spans:
    """Return the device memory that copies and sets of so many bytes touch. Where they need not lie in one piece, that
    is the whole allocation. `sent` are single uploads of what may be a batch, whose addresses are known.
    """
    function = columns["function"][rows]
    whole = ~calls_where(function, lambda called: called.shape in (Shape.PLAIN, Shape.MEMSET_1D))
    if sent is not None:
        whole &= ~(sent & calls_where(function, lambda called: called.shape is Shape.BATCH))
    time = columns["start"][rows]
    begin = address.astype(np.uint64)
    end = begin + bytes_.astype(np.uint64)
    begin[whole], end[whole] = _PLACED_ELSEWHERE
    inside = np.flatnonzero(whole)
    allocation = _allocation_of(columns, address[inside], time[inside])
    inside, allocation = inside[allocation >= 0], allocation[allocation >= 0]
    allocated = _of_kind(columns, Kind.ALLOCATION)[allocation]
    begin[inside] = columns["destination"][allocated]
    end[inside] = begin[inside] + columns["bytes"][allocated].astype(np.uint64)
    return Spans(begin, end, time)


def _issued(columns: Columns, *kinds: Kind, without: re.Pattern[str] | None = None) -> NDArray[np.int64]:
    """Return when calls of these kinds began, sorted, without functions of that name."""

    def chosen(function: DriverFunction) -> bool:
        return function.kind in kinds and (without is None or not without.match(function.name))

    return columns["start"][done_calls(columns, chosen)]


def _last_before(time: NDArray[np.int64], events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the last of the sorted events before each time, or the smallest value."""
    if not len(events):
        return np.full(len(time), LEAST)
    place = np.searchsorted(events, time) - 1
    return np.where(place >= 0, events[np.maximum(place, 0)], LEAST)


def _parts(
    columns: Columns,
    recording: Recording,
    operation: NDArray[np.int64],
    recorded: NDArray[np.void],
    contents: Contents,
) -> Parts:
    """Return the blocks of the contents; a content with a single block is its own block."""
    block = constant("FFM_PART_BYTES")
    parts = recording.parts
    rows = access_rows(columns, parts)
    # A part belongs to the copy of its operation that covers its destination.
    content = latest_of(rows, parts["destination"], operation, recorded["destination"])
    inside = np.flatnonzero(content >= 0)
    content, parts = content[inside], parts[inside]
    offset = (parts["destination"] - recorded["destination"][content]).astype(np.int64)
    single = np.flatnonzero(contents.bytes <= block)
    content = np.concatenate([content, single])
    by_time = np.argsort(content, kind="stable")
    return Parts(
        content=content[by_time],
        destination=np.concatenate([parts["destination"], contents.destination[single]])[by_time],
        bytes=np.concatenate(
            [np.minimum(block, contents.bytes[content[: len(offset)]] - offset), contents.bytes[single]]
        )[by_time],
        hash_low=np.concatenate([parts["hash"][:, 0], contents.hash_low[single]])[by_time],
        hash_high=np.concatenate([parts["hash"][:, 1], contents.hash_high[single]])[by_time],
    )
