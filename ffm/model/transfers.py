"""Which transfers a program needs (dissertation 4.3.2; design, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Repetition(IntEnum):
    """What a transfer repeats."""

    NEEDED = 0
    NO_OP = 1
    """The destination holds exactly these bytes already."""
    REPEAT = 2
    """The same bytes went to the same destination before, which was written or allocated anew since."""
    COPY = 3
    """The same bytes went elsewhere before."""


REPETITIONS = {
    Repetition.NEEDED: "its bytes were not transferred before",
    Repetition.NO_OP: "the destination holds exactly these bytes already",
    Repetition.REPEAT: "the same bytes went to the same place before, which was written or allocated anew since: "
    "keep the buffer and what is in it",
    Repetition.COPY: "the same bytes went to another place before: a copy on the device, or one shared buffer, "
    "would do",
}
"""Each in words."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Uploads of one process with what they carried, sorted by start. Columns of length n."""

    destination: NDArray[np.uint64]
    bytes: NDArray[np.int64]
    hash_low: NDArray[np.uint64]
    hash_high: NDArray[np.uint64]
    """XXH3-128 of the bytes."""
    destination_held: NDArray[np.bool_]
    """Whether the destination was seen to hold exactly these bytes before."""
    allocation: NDArray[np.int64]
    """Number of the allocation that the destination lies in; a new allocation at an address has a new number.
    Negative where it is not known."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The verdicts. Columns of length n."""

    kind: NDArray[np.uint8]
    """A value of `Repetition`."""
    first: NDArray[np.int64]
    """Row of the first transfer of these bytes (to this destination, but for `COPY`); -1 for needed ones."""


def repeated_transfers(contents: Contents) -> Repetitions:
    """Classify uploads by what they repeat. O(n log n)."""
    count = len(contents.bytes)
    same_bytes = _first_of(contents.hash_low, contents.hash_high, contents.bytes)
    same_place = _first_of(contents.hash_low, contents.hash_high, contents.bytes, contents.destination)
    rows = np.arange(count)
    # Bytes in a new allocation are there by chance: the program cannot rely on them.
    same_allocation = np.full(count, False)
    earlier = same_place < rows
    previous = _previous_of(contents.hash_low, contents.hash_high, contents.bytes, contents.destination)
    same_allocation[earlier] = (contents.allocation[earlier] >= 0) & (
        contents.allocation[previous[earlier]] == contents.allocation[earlier]
    )
    kind = np.select(
        [earlier & contents.destination_held & same_allocation, earlier, same_bytes < rows],
        [Repetition.NO_OP, Repetition.REPEAT, Repetition.COPY],
        Repetition.NEEDED,
    ).astype(np.uint8)
    first = np.where(earlier, same_place, np.where(kind == Repetition.COPY, same_bytes, -1))
    return Repetitions(kind=kind, first=first)


def _groups(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number the distinct identities; rows of one identity have the same number. Shape (n,)."""
    count = len(identity[0])
    order = np.lexsort(identity)
    new = np.zeros(count, bool)
    for column in identity:
        new[1:] |= column[order][1:] != column[order][:-1]
    numbers = np.empty(count, np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def _first_of(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return, for each row, the first row of the same identity."""
    if not len(identity[0]):
        return np.empty(0, np.int64)
    _, first, inverse = np.unique(_groups(*identity), return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def _previous_of(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return, for each row, the last earlier row of the same identity, or the row itself where it is the first."""
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
    """Return the number of the allocation that each address lay in at a time; -1 where none is known.

    `allocated*` are the allocations in order of their time; an allocation's number is its place there.
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
