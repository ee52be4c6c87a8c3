"""Which transfers a program needs (dissertation 4.3.2; docs/architecture.md#transfers)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Repetition(IntEnum):
    """What a transfer repeats."""

    NEEDED = 0
    NO_OP = 1
    """The destination already holds exactly these bytes."""
    REPEAT = 2
    """The same bytes went to the same destination before, but it was written or reallocated since."""
    COPY = 3
    """The same bytes went elsewhere before."""
    PARTIAL = 4
    """Some of its blocks went to the same places before."""


PARTIAL_SHARE = 0.1
"""A transfer is a partial repeat if at least this share of its bytes repeats."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What the copies of one process carried, sorted by start. Columns of length n."""

    time: NDArray[np.int64]
    """Nanoseconds."""
    download: NDArray[np.bool_]
    """From the device; the others go to the device."""
    destination: NDArray[np.uint64]
    shape: NDArray[np.int64]
    """Equal for the same rows at the destination: number, width and distance."""
    bytes: NDArray[np.int64]
    hash_low: NDArray[np.uint64]
    hash_high: NDArray[np.uint64]
    """XXH3-128 of the bytes."""
    destination_held: NDArray[np.bool_]
    """Whether the destination was seen to hold exactly these bytes before."""
    allocation: NDArray[np.int64]
    """Number of the device allocation that the copy writes or reads; a new allocation at the same address has a new
    number. Negative if unknown.
    """
    defined: NDArray[np.bool_]
    """Whether the program had written or read the memory since its allocation; otherwise its content is accidental."""
    last_write: NDArray[np.int64]
    """When work that may have written the device memory was last issued before; the smallest value if none was."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Blocks of the contents, sorted by start. Columns of length p."""

    content: NDArray[np.int64]
    """Row of the content."""
    destination: NDArray[np.uint64]
    bytes: NDArray[np.int64]
    hash_low: NDArray[np.uint64]
    hash_high: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The verdicts. Columns of length n."""

    kind: NDArray[np.uint8]
    """A value of `Repetition`."""
    first: NDArray[np.int64]
    """Row of the first content with these bytes, to the same destination except for `COPY`; -1 if unknown."""
    share: NDArray[np.float64]
    """Share of the bytes that repeats at the same places, 0 to 1."""


def repeated_transfers(contents: Contents, parts: Parts) -> Repetitions:
    """Classify copies by what they repeat. O((n + p) log (n + p)).

    Equal bytes of downloads are meaningful only if nothing can have written the source in between; otherwise the CPU
    fetched them to find out whether they had changed.
    """
    count = len(contents.bytes)
    rows = np.arange(count)
    bytes_of = (contents.hash_low, contents.hash_high, contents.bytes)
    place_of = (contents.download, contents.destination, contents.shape)
    same_place = first_of(*bytes_of, *place_of)
    previous = previous_of(*bytes_of, *place_of)
    again = same_place < rows
    unwritten = contents.last_write < contents.time[previous]
    down = contents.download
    again &= ~down | unwritten

    previous_down = previous_of(*bytes_of, down)
    same_bytes = np.where(down, first_of(*bytes_of, down), first_of(*bytes_of))
    elsewhere = (same_bytes < rows) & (~down | (contents.last_write < contents.time[previous_down]))
    no_op = contents.destination_held & np.where(down, again, contents.defined)
    share, origin = _shares(contents, parts)
    partial = ~down & (share >= PARTIAL_SHARE)
    kind = np.select(
        [no_op, again, elsewhere, partial],
        [Repetition.NO_OP, Repetition.REPEAT, Repetition.COPY, Repetition.PARTIAL],
        Repetition.NEEDED,
    ).astype(np.uint8)
    first = np.select(
        [again & (kind != Repetition.COPY), kind == Repetition.COPY, kind == Repetition.PARTIAL],
        [same_place, same_bytes, origin],
        -1,
    )
    first[kind == Repetition.NEEDED] = -1
    share = np.where(np.isin(kind, (Repetition.NO_OP, Repetition.REPEAT)), 1.0, share)
    return Repetitions(kind=kind, first=first, share=share)


def _shares(contents: Contents, parts: Parts) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the share of each content's bytes in blocks that repeat, and the content that first had such a block."""
    count = len(contents.bytes)
    if not len(parts.content):
        return np.zeros(count), np.full(count, -1, np.int64)
    down = contents.download[parts.content]
    first = first_of(parts.hash_low, parts.hash_high, parts.bytes, parts.destination, down)
    repeats = parts.content[first] < parts.content
    repeated = np.bincount(parts.content, weights=np.where(repeats, parts.bytes, 0), minlength=count)
    origin = np.full(count, -1, np.int64)
    rows = np.flatnonzero(repeats)[::-1]
    origin[parts.content[rows]] = parts.content[first[rows]]
    return repeated / np.maximum(contents.bytes, 1), origin


def _groups(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number the distinct identities; rows with the same identity have the same number. Shape (n,)."""
    count = len(identity[0])
    order = np.lexsort(identity)
    new = np.zeros(count, bool)
    for column in identity:
        new[1:] |= column[order][1:] != column[order][:-1]
    numbers = np.empty(count, np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def first_of(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return, for each row, the first row with the same identity."""
    if not len(identity[0]):
        return np.empty(0, np.int64)
    _, first, inverse = np.unique(_groups(*identity), return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def previous_of(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return, for each row, the last earlier row with the same identity, or the row itself if it is the first."""
    count = len(identity[0])
    groups = _groups(*identity) if count else np.empty(0, np.int64)
    order = np.lexsort((np.arange(count), groups))
    previous = np.arange(count)
    same = groups[order][1:] == groups[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def allocations_of(
    address: NDArray[np.uint64],
    time: NDArray[np.int64],
    allocated: NDArray[np.uint64],
    allocated_bytes: NDArray[np.int64],
    allocated_time: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the number of the allocation that contained each address at a time; -1 if unknown.

    `allocated*` are the allocations in order of time; an allocation's number is its index there.
    """
    result = np.full(len(address), -1, np.int64)
    order = np.lexsort((allocated_time, allocated))
    bases, times = allocated[order], allocated_time[order]
    distinct, starts = np.unique(bases, return_index=True)
    if not len(distinct):
        return result
    ends = np.append(starts[1:], len(bases))
    place = np.searchsorted(distinct, address, side="right") - 1
    for row in np.flatnonzero(place >= 0):
        first, last = starts[place[row]], ends[place[row]]
        latest = first + np.searchsorted(times[first:last], time[row], side="right") - 1
        if latest < first:
            continue
        number = order[latest]
        if address[row] - allocated[number] < allocated_bytes[number]:
            result[row] = number
    return result
