"""The passes that cut stretches of a path into the parts of the rows that they cover (`ffm.model.waiting.path`), in the
subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ffm.model.compiled import index, inlined, inner, longer
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.numbers import ENQUEUE_AND_WAIT, SET_AND_WAIT, TRANSFER, WAIT_AND_ENQUEUE, WAIT_EVENT, WAIT_THREAD
from ffm.model.searching import place_of
from ffm.model.waiting.path_kernels import ON_GPU, ON_HOST, Columns, Rows

START = 0
CALL = 1
WORK = 2
REST = 3
UNKNOWN = 4
GPU = 5
"""Values of `ffm.model.waiting.path.Part`."""

MOST_PIECES = 5
"""Of one row: the time before a thread's first call, what a call does before and behind its wait, the wait, and what
comes after the call.
"""


class Pieces(NamedTuple):
    """What was found so far, and room for more."""

    kind: Columns
    where: Columns
    begin: Columns
    end: Columns


class Owners(NamedTuple):
    """The rows' kinds, and the owners of their parts: numbers from 0."""

    kind: Columns
    call: Columns
    gpu: Columns
    after: Columns
    """Of the CPU work after each row."""
    before: int
    """Of what comes before a thread's first row."""


class Sums(NamedTuple):
    """Nanoseconds."""

    part: Columns
    """By part and, last, the GPU's work on transfers."""
    owner: Columns
    """By part and owner; without owners if they are not asked for."""


@inlined
def room(size: int) -> Pieces:
    """Return room for this many pieces."""
    return Pieces(
        np.zeros(size, np.uint8), np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    )


@inlined
def enlarged(pieces: Pieces) -> Pieces:
    """Return pieces with twice the room."""
    return Pieces(longer(pieces.kind), longer(pieces.where), longer(pieces.begin), longer(pieces.end))


@inner
def add(pieces: Pieces, found: int, kind: int, where: int, begin: int, end: int) -> int:
    """Add a piece unless it is empty; return how many there are."""
    if begin >= end:
        return found
    pieces.kind[found] = kind
    pieces.where[found] = where
    pieces.begin[found] = begin
    pieces.end[found] = end
    return found + 1


@inner
def cut_row(rows: Rows, row: int, now: int, end: int, threshold: int, pieces: Pieces, found: int) -> tuple[int, int]:
    """Add the parts of a row between `now` and `end`; return how many pieces there are, and when the last one ends."""
    does = rows.action[row] if rows.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
    waits_first = does == WAIT_THREAD or WAIT_AND_ENQUEUE <= does <= WAIT_EVENT
    start, wait = rows.start[row], rows.wait[row]
    over = start + rows.duration[row]
    stalled = REST if rows.cause[row] >= 0 or wait <= threshold else UNKNOWN
    stall = start if waits_first else enqueued_at(rows, row)
    go_on = min(stall + wait, end)
    start, stall, over = min(start, end), min(stall, end), min(over, end)
    found = add(pieces, found, START, row, now, start)
    now = max(now, start)
    found = add(pieces, found, CALL, row, now, stall)
    now = max(now, stall)
    found = add(pieces, found, stalled, row, now, go_on)
    now = max(now, go_on)
    found = add(pieces, found, CALL, row, now, over)
    now = max(now, over)
    return add(pieces, found, WORK, row, now, end), max(now, end)


def cut(stretches: Pieces, rows: Rows, threshold: int, latest_launch: int) -> Pieces:
    """Cut stretches, earliest first, into the parts of the rows that they cover.

    Returns what part of a row each piece is, the row, its start and its end. A wait without a cause that lasts more
    than `threshold` nanoseconds is `UNKNOWN`, and so are more than `latest_launch` nanoseconds before GPU work for
    which nothing accounts. Before a thread's first row, the row is that one.
    """
    pieces = room(1024)
    found = 0
    begins = rows.begins
    for number in range(len(stretches.kind)):
        on = stretches.where[number]
        now, end = stretches.begin[number], stretches.end[number]
        if stretches.kind[number] != ON_HOST:
            late = UNKNOWN if end - now > latest_launch else REST
            if found == len(pieces.kind):
                pieces = enlarged(pieces)
            found = add(pieces, found, GPU if stretches.kind[number] == ON_GPU else late, on, now, end)
            continue
        row = begins[on] + place_of(rows.start[begins[on] : begins[on + 1]], now + 1, 0) - 1
        row = max(row, begins[on])
        while now < end:
            if found + MOST_PIECES > len(pieces.kind):
                pieces = enlarged(pieces)
            following = end if row + 1 == begins[on + 1] else min(rows.start[row + 1], end)
            found, now = cut_row(rows, row, now, following, threshold, pieces, found)
            row += 1
    return Pieces(pieces.kind[:found], pieces.where[:found], pieces.begin[:found], pieces.end[:found])


def tally(stretches: Pieces, rows: Rows, threshold: int, latest_launch: int, of: Owners, sums: Sums) -> None:
    """Cut stretches as `cut` does, and add how long each piece is to the sums of its part and of its owner.

    Nobody owns what passes before GPU work for which nothing accounts.
    """
    pieces = room(MOST_PIECES)
    begins = rows.begins
    near = begins[:-1].copy()
    for number in range(len(stretches.kind)):
        on = index(stretches.where[number])
        now, end = stretches.begin[number], stretches.end[number]
        if stretches.kind[number] != ON_HOST:
            late = UNKNOWN if end - now > latest_launch else REST
            found = add(pieces, 0, GPU if stretches.kind[number] == ON_GPU else late, on, now, end)
            if pieces.kind[0] == UNKNOWN:
                sums.part[UNKNOWN] += end - now
            else:
                count(pieces, found, of, sums)
            continue
        first = begins[on]
        row = first + place_of(rows.start[first : begins[on + 1]], now + 1, near[on] - first) - 1
        row = index(max(row, first))
        while now < end:
            following = end if row + 1 == begins[on + 1] else min(rows.start[row + 1], end)
            found, now = cut_row(rows, row, now, following, threshold, pieces, 0)
            count(pieces, found, of, sums)
            row += 1
        near[on] = row


@inner
def count(pieces: Pieces, found: int, of: Owners, sums: Sums) -> None:
    """Add how long some pieces are."""
    for piece in range(found):
        part, row = pieces.kind[piece], index(pieces.where[piece])
        lasting = pieces.end[piece] - pieces.begin[piece]
        on_transfer = part == GPU and of.kind[row] == TRANSFER
        sums.part[index(len(sums.part) - 1 if on_transfer else part)] += lasting
        if sums.owner.shape[1] == 0:
            continue
        if part == GPU:
            sums.owner[part, index(of.gpu[row])] += lasting
        elif part == WORK:
            sums.owner[part, index(of.after[row])] += lasting
        elif part == START:
            sums.owner[part, of.before] += lasting
        else:
            sums.owner[part, index(of.call[row])] += lasting
