"""Reads the packed records of a chunk, which are written as differences to earlier ones (`layout.h` says how)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.errors import CauseError
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.packing_kernels import unpack_records
from ffm.model.compiled import compiled

CONTROL = np.dtype("<u4")
SIZES = np.array([0, 2, 4, 8], np.int64)
"""Bytes of a difference, by its two bits in the control."""

SIZES_OF_FOUR = SIZES[np.arange(256)[:, np.newaxis] >> np.arange(0, 8, 2) & 3].sum(axis=1)
"""Bytes of the differences in four words, by their eight bits."""

TOO_LONG = "a chunk's records are longer than it"

Words = NDArray[np.uint64]


class PackingError(CauseError):
    """What is wrong with a chunk, as a phrase."""


def unpack(room: NDArray[np.uint8], count: int, structure: str, *, many: bool = False) -> NDArray[Any]:
    """Return the records of a chunk.

    Args:
        room: All bytes of the chunk after its header.
        count: How many records are complete.
        structure: The C structure of a record.
        many: Whether there are so many records in all that compiled code pays.

    Raises:
        PackingError: They do not lie within the room.
    """
    layout = record_type(structure)
    words = layout.itemsize // 8
    if count * CONTROL.itemsize > len(room):
        raise PackingError(f"a chunk of {structure} does not hold its {count} records")
    written = room[: len(room) - count * CONTROL.itemsize]
    controls = room[len(written) :].view(CONTROL)[::-1].astype(np.uint32)
    if many:
        return _unpack_many(written, controls, structure)
    order, first = _slots(controls)
    columns = np.empty((words, count), "<u8")
    for word, changes in enumerate(_differences(written, controls, words)):
        columns[word] = changes if word == 0 else _added_by_slot(changes, order, first)
    if structure == "ffm_operation":
        start, duration, wait = columns[:3]
        duration += wait
        start[1:] += duration[:-1]  # each counts from the end of the one before
    np.cumsum(columns[0], out=columns[0])
    return np.ascontiguousarray(columns.T).view(layout).reshape(count)


def _unpack_many(written: NDArray[np.uint8], controls: NDArray[np.uint32], structure: str) -> NDArray[Any]:
    """Do the same as `unpack` in compiled code."""
    layout = record_type(structure)
    records = np.empty((len(controls), layout.itemsize // 8), np.int64)
    rules = constant("FFM_PACKED_SLOTS"), constant("FFM_PACKED_SIZES"), structure == "ffm_operation"
    if not compiled(unpack_records)(written, controls.astype(np.int64), *rules, records):
        raise PackingError(TOO_LONG)
    return records.view(layout).reshape(len(records))


def first_number(control: int, written: bytes) -> int:
    """Return the first word of a chunk's first record, from its control and the bytes after the chunk's header."""
    folded = int.from_bytes(written[: SIZES[control >> constant("FFM_PACKED_SIZES") & 3]], "little")
    return folded >> 1 ^ -(folded & 1)


def _slots(controls: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the records in the order of their slots, and where in this order each record's slot begins."""
    slots = (controls % constant("FFM_PACKED_SLOTS")).astype(np.uint8)
    order = np.argsort(slots, kind="stable")
    counts = np.bincount(slots, minlength=constant("FFM_PACKED_SLOTS"))
    return order, np.repeat(np.cumsum(counts) - counts, counts)


def _differences(written: NDArray[np.uint8], controls: NDArray[np.uint32], words: int) -> Iterator[Words]:
    """Yield the differences of all records in each word."""
    codes = controls >> constant("FFM_PACKED_SIZES") & ((1 << 2 * words) - 1)
    length = np.sum([SIZES_OF_FOUR[codes >> shift & 0xFF] for shift in range(0, 2 * words, 8)], axis=0)
    if length.sum() > len(written):
        raise PackingError(TOO_LONG)
    place = np.cumsum(length) - length
    for word in range(words):
        mine = (codes >> 2 * word & 3).astype(np.uint8)
        folded = np.zeros(len(controls), np.uint64)
        if not mine.any():
            yield folded
            continue
        for code in (1, 2, 3):
            rows = np.flatnonzero(mine == code)
            if len(rows):
                folded[rows] = _unaligned(written, int(SIZES[code]))[place[rows]]
        yield (folded >> np.uint64(1)) ^ (np.uint64(0) - (folded & np.uint64(1)))
        place += SIZES[mine]


def _unaligned(written: NDArray[np.uint8], size: int) -> NDArray[Any]:
    """Return the number of `size` bytes that begins at each byte."""
    return np.ndarray(len(written) - size + 1, f"<u{size}", written, strides=(1,))


def _added_by_slot(changes: Words, order: NDArray[np.intp], first: NDArray[np.intp]) -> Words:
    """Return the sum of the differences of each record and of the earlier ones of its slot."""
    if not changes.any():
        return changes
    sums = np.zeros(len(changes) + 1, np.uint64)
    np.cumsum(changes[order], out=sums[1:])
    added = np.empty_like(changes)
    added[order] = sums[1:] - sums[first]
    return added
