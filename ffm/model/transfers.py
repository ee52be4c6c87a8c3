"""Which transfers a program needs (dissertation 4.3.2; docs/architecture.md#transfers)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.grouping import grouped, numbered
from ffm.model.visits import row_at


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
    OUTSIDE_PORTION = 5
    """Only a portion of the run was measured, and what it may repeat lies outside of it."""
    REPEAT_UNSEEN = 6
    """The same bytes went to the same destination before, but what it held was not looked at."""
    NO_OP_FROM_ELSEWHERE = 7
    """The destination already holds exactly these bytes, but what was sent there last lay elsewhere on the host."""
    REPEAT_FROM_ELSEWHERE = 8
    """The same bytes went to the same destination before, but always from elsewhere on the host; or, if what it held
    was not looked at, what was sent there last was.
    """


Integers = NDArray[Any]

REPEATED = (
    Repetition.NO_OP,
    Repetition.REPEAT,
    Repetition.REPEAT_UNSEEN,
    Repetition.NO_OP_FROM_ELSEWHERE,
    Repetition.REPEAT_FROM_ELSEWHERE,
)
"""Those whose bytes went to the same destination before."""

FROM_ELSEWHERE = (Repetition.NO_OP_FROM_ELSEWHERE, Repetition.REPEAT_FROM_ELSEWHERE)
"""Those of them whose bytes came from another place in host memory, so that they may be other data."""

PARTIAL_SHARE = 0.1
"""A transfer is a partial repeat if at least this share of its bytes repeats."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What the copies of one process carried, sorted by start. Columns of length n."""

    time: NDArray[np.int64]
    """Nanoseconds."""
    download: NDArray[np.bool_]
    """From the device; the others go to the device."""
    source: NDArray[np.uint64]
    """Where the bytes come from; 0 if unknown."""
    destination: NDArray[np.uint64]
    shape: NDArray[np.int64]
    """Equal for the same rows at the destination: number, width and distance."""
    bytes: NDArray[np.int64]
    hash_low: NDArray[np.uint64]
    hash_high: NDArray[np.uint64]
    """XXH3-128 of the bytes."""
    destination_held: NDArray[np.bool_]
    """Whether the destination was seen to hold exactly these bytes before."""
    destination_known: NDArray[np.bool_]
    """Whether what the destination held was looked at."""
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


def repeated_transfers(contents: Contents, parts: Parts) -> Repetitions:
    """Classify copies by what they repeat. O((n + p) log (n + p)).

    Equal bytes of downloads are meaningful only if they come from the same place and nothing can have written it in
    between; otherwise the CPU fetched them to find out what they are. The program knows what it uploads. But data that
    lie elsewhere on the host may be others, which are equal only in this run.
    """
    count = len(contents.bytes)
    rows = np.arange(count)
    content, first_content = numbered(contents.hash_low, contents.hash_high, contents.bytes)
    down = contents.download
    place = (down, contents.destination, contents.shape, np.where(down, contents.source, 0))
    placed, first_placed = numbered(content, *place)
    same_place = first_placed[placed]
    previous = previous_of(placed, len(first_placed))
    again = same_place < rows
    unwritten = contents.last_write < contents.time[previous]
    again &= ~down | unwritten

    directed, first_directed = numbered(content, down)
    previous_down = previous_of(directed, len(first_directed))
    same_bytes = np.where(down, first_directed[directed], first_content[content])
    elsewhere = (same_bytes < rows) & (~down | (contents.last_write < contents.time[previous_down]))
    no_op = contents.destination_held & np.where(down, again, contents.defined)
    share, origin = _shares(contents, parts)
    partial = ~down & (share >= PARTIAL_SHARE)
    # An upload that others to the same memory have followed, or whose memory has been allocated again, was overwritten
    # for certain.
    overwritten = ~down & (
        (contents.last_write > contents.time[previous]) | (contents.allocation != contents.allocation[previous])
    )
    unseen = again & ~contents.destination_known & ~overwritten
    others_last, others = _from_elsewhere(contents, placed, place)
    kind = np.select(
        [no_op & others_last, no_op, again & others, unseen & others_last, unseen, again, elsewhere, partial],
        [
            Repetition.NO_OP_FROM_ELSEWHERE,
            Repetition.NO_OP,
            Repetition.REPEAT_FROM_ELSEWHERE,
            Repetition.REPEAT_FROM_ELSEWHERE,
            Repetition.REPEAT_UNSEEN,
            Repetition.REPEAT,
            Repetition.COPY,
            Repetition.PARTIAL,
        ],
        Repetition.NEEDED,
    ).astype(np.uint8)
    first = np.select(
        [again & (kind != Repetition.COPY), kind == Repetition.COPY, kind == Repetition.PARTIAL],
        [same_place, same_bytes, origin],
        -1,
    )
    first[kind == Repetition.NEEDED] = -1
    return Repetitions(kind=kind, first=first)


def _from_elsewhere(
    contents: Contents, placed: NDArray[np.int64], place: tuple[NDArray[Any], ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which uploads come from elsewhere on the host than the last one to their place, and which come from
    elsewhere than each earlier one of the same bytes to their place (`placed`).
    """
    rows, source, up = np.arange(len(placed)), contents.source, ~contents.download
    number, first = numbered(*place)
    last = previous_of(number, len(first))
    others_last = up & (last < rows) & (source != source[last])
    others = up & (first_of(placed, source) == rows)
    return others_last, others


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


def first_of(*identity: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return, for each row, the first row with the same identity."""
    number, first = numbered(*identity)
    return first[number]


def previous_of(number: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return, for each row, the last earlier row with the same number, of so many groups, or the row itself if it is
    the first.
    """
    order = grouped(number, groups)
    previous = np.arange(len(number))
    same = number[order[1:]] == number[order[:-1]]
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
    distinct = np.unique(allocated)
    place = np.searchsorted(distinct, address, side="right") - 1
    number = latest_of(place, time, np.searchsorted(distinct, allocated), allocated_time)
    known = np.flatnonzero(number >= 0)
    offset = address[known] - allocated[number[known]]
    number[known[offset >= allocated_bytes[number[known]].astype(np.uint64)]] = -1
    return number


def latest_of(
    group: NDArray[np.int64],
    time: NDArray[Any],
    event_group: NDArray[np.int64],
    event_time: NDArray[Any],
    *,
    before: bool = False,
) -> NDArray[np.int64]:
    """Return for each row the last event of its group at its time or earlier, or strictly `before` it; -1 for none.

    Groups are numbers from -1 below the number of rows or events. Of events at one time the last counts. The answers
    are indices into the events, of shape (rows,).
    """
    found = np.full(len(group), -1, np.int64)
    if not len(event_group) or not len(group):
        return found
    groups = 2 + int(max(group.max(), event_group.max()))
    order, events = in_time(time), in_time(event_time)
    many = len(group) + len(event_group)
    run(_note_latest, many, order, group, time, events, event_group, event_time, before, groups, found)
    return found


def in_time(time: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of moments, as `ffm.model.visits` has it: an empty column if they ascend."""
    ascend = bool((time[1:] >= time[:-1]).all())
    return np.empty(0, np.int64) if ascend else np.argsort(time, kind="stable")


def _note_latest(
    order: Integers,
    group: Integers,
    time: Integers,
    events: Integers,
    event_group: Integers,
    event_time: Integers,
    before: bool,
    groups: int,
    found: Integers,
) -> None:
    """Note for each row the last event of its group up to its time, or `before` that. Rows and events are visited in
    `order` and in that of `events`. There are so many groups, numbered from -1.
    """
    latest = np.full(groups, -1, np.int64)
    passed = 0
    for place in range(len(group)):
        row = row_at(order, place)
        while passed < len(event_group):
            event = row_at(events, passed)
            if event_time[event] > time[row] or (before and event_time[event] == time[row]):
                break
            latest[event_group[event] + 1] = event
            passed += 1
        found[row] = latest[group[row] + 1]
