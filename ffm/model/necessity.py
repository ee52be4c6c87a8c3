"""Which synchronizations a program needs (dissertation 4.3.1; design, section 5).

A synchronization is needed when something relied on it: the CPU touched what the work it waited for had written, or
overwrote what that work still read; other work was ordered by it; the program asked for GPU times. What cannot be
decided counts as needed, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Scope(IntEnum):
    """Which earlier work an operation waits for."""

    NONE = 0
    """It does not wait."""
    CONTEXT = 1
    """All work of the context."""
    STREAM = 2
    """The work of one stream."""
    EVENT = 3
    """The work before the last record of an event."""
    UNKNOWN = 4
    """A private call of the driver: it waits, nobody knows for what."""


class Role(IntEnum):
    """What watched host memory is to the transfer that made it worth watching."""

    RESULT = 0
    """The transfer writes it; a CPU read or write must come after."""
    SOURCE = 1
    """An asynchronous transfer reads it; a CPU write must come after."""
    OWN_SOURCE = 2
    """A synchronous transfer reads it: its own wait is all that a CPU write relies on."""


class Reason(IntEnum):
    """Why a synchronization is as it is."""

    NOT_A_SYNCHRONIZATION = 0
    NOTHING_RELIES = 1
    LATER_COVERS = 2
    """Something relies on the work it waits for, but a later synchronization, which must stay, covers it too."""
    RESULT_USED = 3
    SOURCE_OVERWRITTEN = 4
    PRIVATE_CALL = 5
    ORDERS_STREAMS = 6
    TIMING = 7
    UNWATCHED_MEMORY = 8
    HOST_FUNCTION = 9
    NOT_WATCHED = 10


REASONS = {
    Reason.NOT_A_SYNCHRONIZATION: "it does not wait",
    Reason.NOTHING_RELIES: "nothing that the work before it writes or reads is touched by the CPU afterwards",
    Reason.LATER_COVERS: "what it protects is first used after a later synchronization, which must then stay",
    Reason.RESULT_USED: "the CPU uses a result of the work that it waits for",
    Reason.SOURCE_OVERWRITTEN: "the CPU overwrites the source of a transfer that it waits for",
    Reason.PRIVATE_CALL: "a library waits through a private call of the driver, whose results cannot be watched",
    Reason.ORDERS_STREAMS: "work on another stream follows, which nothing else may order after the work before it",
    Reason.TIMING: "the program reads GPU times of events that it waits for",
    Reason.UNWATCHED_MEMORY: "kernels may write managed or mapped memory, which is not watched",
    Reason.HOST_FUNCTION: "a host function in the stream may hand results to the CPU",
    Reason.NOT_WATCHED: "what it protects could not be watched",
}
"""Each reason in words, to follow `required, because` or `unnecessary:`."""

REQUIRED = frozenset(Reason) - {Reason.NOT_A_SYNCHRONIZATION, Reason.NOTHING_RELIES, Reason.LATER_COVERS}
"""The reasons that make a synchronization required."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of one process, sorted by start. Columns of equal length n; times in nanoseconds."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    scope: NDArray[np.uint8]
    """A value of `Scope`."""
    stream: NDArray[np.uint64]
    """The stream of the work, one number for each distinct stream."""
    bound: NDArray[np.int64]
    """Work issued before this time is covered: the start, or for `Scope.EVENT` that of the event's record."""
    enqueues: NDArray[np.bool_]
    """Whether it puts work on its stream."""
    timing: NDArray[np.bool_]
    """Whether it reads GPU times."""
    launches: NDArray[np.bool_]
    """Whether it launches kernels."""
    host_function: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Uses:
    """First accesses to watched host memory. Columns of equal length m."""

    transfer: NDArray[np.int64]
    """Row of the transfer among the operations."""
    time: NDArray[np.int64]
    role: NDArray[np.uint8]
    """A value of `Role`."""
    watched: NDArray[np.bool_]
    """False where the memory could not be watched and only counts as used."""


@dataclass(frozen=True, slots=True)
class Necessity:
    """The verdicts. Columns of length n."""

    reason: NDArray[np.uint8]
    """A value of `Reason`."""
    keep: NDArray[np.int64]
    """For `Reason.LATER_COVERS`: row of the synchronization that must stay; else -1."""
    first_use: NDArray[np.int64]
    """For required ones: time from the end to the earliest access that relies on it; -1 where unknown."""
    credited: NDArray[np.int64]
    """Shape (m,): row of the synchronization that each use relies on; -1 where none covers it."""


def needed_synchronizations(operations: Operations, uses: Uses, *, unwatched_memory: bool) -> Necessity:
    """Decide for each operation that waits whether the program relies on it.

    `unwatched_memory`: the program has memory that kernels write and that the CPU reads unseen. O((n + m) log n).
    """
    count = len(operations.start)
    waits = operations.scope != Scope.NONE
    reason = np.where(waits, Reason.NOTHING_RELIES, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    reason[operations.scope == Scope.UNKNOWN] = Reason.PRIVATE_CALL
    covering = _Covering(operations)

    timed = covering.last_before(operations.start[operations.timing], None)
    reason[timed[timed >= 0]] = Reason.TIMING
    _mark_after(operations, operations.host_function, Reason.HOST_FUNCTION, reason)
    if unwatched_memory:
        _mark_after(operations, operations.launches, Reason.UNWATCHED_MEMORY, reason)
    _mark_ordering(operations, reason)

    credited = np.full(len(uses.time), -1, np.int64)
    keep = np.full(count, -1, np.int64)
    first_use = np.full(count, -1, np.int64)
    for role in (Role.RESULT, Role.SOURCE, Role.OWN_SOURCE):
        rows = np.flatnonzero(uses.role == role)
        _credit(operations, uses, rows, role, covering, reason, credited)
    for row in np.argsort(uses.time, kind="stable"):
        relied = credited[row]
        if relied >= 0 and first_use[relied] < 0 and uses.watched[row]:
            first_use[relied] = max(0, uses.time[row] - operations.end[relied])
    _mark_conditional(operations, uses, credited, reason, keep)
    first_use[~np.isin(reason, list(REQUIRED))] = -1
    return Necessity(reason=reason, keep=keep, first_use=first_use, credited=credited)


class _Covering:
    """Finds the last synchronization that covers some work, by scope."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        definite = np.isin(operations.scope, (Scope.CONTEXT, Scope.STREAM, Scope.EVENT))
        rows = np.flatnonzero(definite)
        rows = rows[np.argsort(operations.end[rows], kind="stable")]
        self._anywhere = rows
        self._context = rows[operations.scope[rows] == Scope.CONTEXT]
        narrow = rows[operations.scope[rows] != Scope.CONTEXT]
        self._by_stream = {
            stream: narrow[operations.stream[narrow] == stream] for stream in np.unique(operations.stream[narrow])
        }

    def last_before(self, times: NDArray[np.int64], transfers: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the row of the last synchronization that ended by each time; -1 where there is none.

        With `transfers` (rows, as many as times) only synchronizations that cover the transfer count, its own wait
        included.
        """
        if transfers is None:
            return self._latest(self._anywhere, times)
        operations = self._operations
        found = self._covering(self._context, times, transfers)
        for stream, rows in self._by_stream.items():
            mine = operations.stream[transfers] == stream
            narrow = self._covering(rows, times[mine], transfers[mine])
            wide = found[mine]
            later = np.where(
                (narrow >= 0) & ((wide < 0) | (operations.end[narrow] > operations.end[wide])), narrow, wide
            )
            found[mine] = later
        return found

    def first_after(self, transfers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of the first synchronization that covers each transfer, its own wait included; -1 for none."""
        operations = self._operations
        found = self._first(self._context, transfers)
        for stream, rows in self._by_stream.items():
            mine = operations.stream[transfers] == stream
            narrow, wide = self._first(rows, transfers[mine]), found[mine]
            sooner = (narrow >= 0) & ((wide < 0) | (operations.end[narrow] < operations.end[wide]))
            found[mine] = np.where(sooner, narrow, wide)
        waits_itself = np.isin(operations.scope[transfers], (Scope.CONTEXT, Scope.STREAM))
        return np.where(waits_itself, transfers, found)

    def _first(self, rows: NDArray[np.int64], transfers: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(rows):
            return np.full(len(transfers), -1, np.int64)
        operations = self._operations
        by_bound = rows[np.argsort(operations.bound[rows], kind="stable")]
        place = np.searchsorted(operations.bound[by_bound], operations.start[transfers], side="right")
        return np.where(place < len(by_bound), by_bound[np.minimum(place, len(by_bound) - 1)], -1)

    def _latest(self, rows: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(rows):
            return np.full(len(times), -1, np.int64)
        place = np.searchsorted(self._operations.end[rows], times, side="right") - 1
        return np.where(place >= 0, rows[np.maximum(place, 0)], -1)

    def _covering(
        self, rows: NDArray[np.int64], times: NDArray[np.int64], transfers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        found = self._latest(rows, times)
        operations = self._operations
        covers = (found >= 0) & ((operations.bound[found] > operations.start[transfers]) | (found == transfers))
        return np.where(covers, found, -1)


def _mark_after(operations: Operations, causes: NDArray[np.bool_], why: Reason, reason: NDArray[np.uint8]) -> None:
    """Mark each synchronization that has a cause between itself and the one before it."""
    waits = np.flatnonzero(operations.scope != Scope.NONE)
    times = np.sort(operations.start[causes])
    before = np.searchsorted(times, operations.start[waits])
    marked = waits[np.diff(before, prepend=0) > 0]
    reason[marked[reason[marked] == Reason.NOTHING_RELIES]] = why


def _mark_ordering(operations: Operations, reason: NDArray[np.uint8]) -> None:
    """Mark explicit synchronizations after which work goes to another stream than the work they waited for.

    Which streams are ordered by events or by the legacy default stream is not followed: with several streams in use
    every synchronization between works on different streams counts as needed.
    """
    works = np.flatnonzero(operations.enqueues)
    if len(np.unique(operations.stream[works])) < 2:
        return
    waits = np.flatnonzero(operations.scope != Scope.NONE)
    starts = operations.start[works]
    before = np.searchsorted(starts, operations.start[waits]) - 1
    after = before + 1
    known = (before >= 0) & (after < len(works))
    waits, before, after = waits[known], before[known], after[known]
    # The streams of the works since the last wait, and the stream of the next work.
    next_stream = operations.stream[works[after]]
    mixed = operations.stream[works[before]] != next_stream
    first = np.concatenate(([0], before[:-1] + 1)) if len(before) else before
    changes = np.concatenate(([0], np.cumsum(operations.stream[works][1:] != operations.stream[works][:-1])))
    several = changes[before] > changes[np.minimum(first, before)]
    marked = waits[mixed | several]
    reason[marked[reason[marked] == Reason.NOTHING_RELIES]] = Reason.ORDERS_STREAMS


def _credit(
    operations: Operations,
    uses: Uses,
    rows: NDArray[np.int64],
    role: Role,
    covering: _Covering,
    reason: NDArray[np.uint8],
    credited: NDArray[np.int64],
) -> None:
    """Credit each use to the last synchronization before it that covers the transfer's work."""
    transfers = uses.transfer[rows]
    # Memory that could not be watched may be used as soon as the first synchronization is over.
    relied = np.where(
        uses.watched[rows],
        covering.last_before(uses.time[rows], transfers),
        covering.first_after(transfers),
    )
    # What no synchronization is known to cover was waited for all the same, in a way that is not followed (an event of
    # a stream that waited for the transfer's): the last wait before the use is the one to keep.
    unknown = (relied < 0) & uses.watched[rows]
    relied[unknown] = covering.last_before(uses.time[rows][unknown], None)
    if role is Role.OWN_SOURCE:
        # A later synchronization serves only if it stays for a reason of its own.
        stays = (relied >= 0) & np.isin(reason[relied], list(REQUIRED))
        relied = np.where(stays, relied, transfers)
    credited[rows] = relied
    known = relied >= 0
    why = np.where(
        uses.watched[rows[known]],
        Reason.RESULT_USED if role is Role.RESULT else Reason.SOURCE_OVERWRITTEN,
        Reason.NOT_WATCHED,
    )
    relied = relied[known]
    replace = ~np.isin(reason[relied], list(REQUIRED))
    reason[relied[replace]] = why[replace]


def _mark_conditional(
    operations: Operations,
    uses: Uses,
    credited: NDArray[np.int64],
    reason: NDArray[np.uint8],
    keep: NDArray[np.int64],
) -> None:
    """Name, for each unnecessary synchronization that covers work used later, the one that must stay."""
    undecided = np.flatnonzero(reason == Reason.NOTHING_RELIES)
    for use in np.flatnonzero(credited >= 0):
        stays = int(credited[use])
        transfer = int(uses.transfer[use])
        first = np.searchsorted(undecided, transfer)
        last = np.searchsorted(undecided, stays)
        between = undecided[first:last]
        covers = (
            (operations.scope[between] == Scope.CONTEXT) | (operations.stream[between] == operations.stream[transfer])
        ) & ((operations.bound[between] > operations.start[transfer]) | (between == transfer))
        chosen = between[covers]
        reason[chosen] = Reason.LATER_COVERS
        keep[chosen[keep[chosen] < 0]] = stays
