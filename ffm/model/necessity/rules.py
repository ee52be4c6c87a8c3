"""Which synchronizations a program needs (dissertation 4.3.1; docs/architecture.md#synchronizations).

A synchronization is needed if something relied on it: the CPU touched what the awaited work had written, or overwrote
what that work still read; other work was ordered by it; the program asked for times. What cannot be decided counts as
needed, with the reason.

A thread that touches what it has waited for relies on its own last wait that covers it, or on an earlier one that must
stay in any case; other waits for the same work are unnecessary as long as that one stays. A thread that has not waited
for it relies on the waits of others. On which of them is known only by what orders threads however they are scheduled.
Otherwise it may be any: a thread that comes after one of another thread's waits comes after the first that covers the
work, so the first one of each thread is needed, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.necessity import state
from ffm.model.necessity.sweep_kernels import keepers, sweep


class Scope(IntEnum):
    """Which earlier work an operation waits for."""

    NONE = 0
    """It does not wait, or not for anything known to be work."""
    CONTEXT = 1
    """All work of the context."""
    STREAM = 2
    """The work of one stream, including its own; for the legacy default stream also that of the blocking streams."""
    EVENT = 3
    """The work before the last record of an event."""
    UNKNOWN = 4
    """It waits, but for what is unknown."""
    STAGING = 5
    """It waits for space for its own work, so it covers no work."""
    PRIVATE = 6
    """A private call of the driver waits, but for what is unknown."""


class Action(IntEnum):
    """How an operation affects the order of work."""

    NOTHING = 0
    WORK = 1
    """It puts work on its stream."""
    RECORD = 2
    """It records its event on its stream."""
    WAIT_EVENT = 3
    """It makes later work of its stream come after its event's last record."""
    RELEASE = 4
    """It destroys memory or an object that work may use, and does not wait."""
    HOLD = 5
    """It puts work on its stream that ends only when the CPU lets it: unseen, at any time after the call."""


class StreamKind(IntEnum):
    """How a stream is ordered with others (CUDA Driver API, "Stream synchronization behavior")."""

    INDEPENDENT = 0
    BLOCKING = 1
    """Ordered with the legacy default stream of its context."""
    LEGACY = 2
    """The legacy default stream."""


class Role(IntEnum):
    """What an access means to the operation whose memory it touches."""

    RESULT = 0
    """The operation writes it; a CPU read or write must come after."""
    SOURCE = 1
    """An asynchronous transfer reads it; a CPU write must come after."""
    OWN_SOURCE = 2
    """A synchronous transfer reads it: its own wait is all that a CPU write relies on."""
    RELEASED = 3
    """The program frees the memory."""
    TIMING = 4
    """The program queries the time of an event: the operation is its record."""
    UNWATCHED = 5
    """The memory could not be watched: who relies on the operation's end, and when, is unknown."""
    HOST_FUNCTION = 6
    """A function of the program runs in the stream: what it hands over is unknown."""
    SHARED = 7
    """Another process may use or overwrite the device memory that it uses: when is unknown."""
    ANSWER = 8
    """The program asks whether the operation is over, and is told so."""


class Comparison(IntEnum):
    """Whether the program compares a read of a clock with another, so that the waits in between are timed."""

    NOT_COMPARED = 0
    MAYBE_COMPARED = 1
    """A library may time its own work, or that of the program."""
    COMPARED = 2


UNKNOWN_THREAD = -1


class Reason(IntEnum):
    """Why a synchronization has its verdict."""

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
    RELEASED = 11
    HOST_TIMER = 12
    DESTROYED = 13
    UNKNOWN_WAIT = 14
    MAYBE_TIMER = 15
    HANDED_OVER = 16
    SHARED_MEMORY = 17
    OUTSIDE_PORTION = 18
    """Only a portion of the run was measured, and what lies outside of it may rely on the wait."""
    ANSWER = 19
    """The program asks whether the work is over, and never got the answer that it is not."""
    PRINTED = 20
    """What kernels print appears when it returns."""


REQUIRED = frozenset(Reason) - {Reason.NOT_A_SYNCHRONIZATION, Reason.NOTHING_RELIES, Reason.LATER_COVERS}
"""The reasons that make a synchronization required."""

_REASON_OF_ROLE = {
    Role.UNWATCHED: Reason.NOT_WATCHED,
    Role.HOST_FUNCTION: Reason.HOST_FUNCTION,
    Role.RESULT: Reason.RESULT_USED,
    Role.SOURCE: Reason.SOURCE_OVERWRITTEN,
    Role.OWN_SOURCE: Reason.SOURCE_OVERWRITTEN,
    Role.RELEASED: Reason.RELEASED,
    Role.TIMING: Reason.TIMING,
    Role.ANSWER: Reason.ANSWER,
}
"""The first that applies counts: what may come at any time may come before all that was seen."""

_AT_ANY_TIME = (Role.UNWATCHED, Role.HOST_FUNCTION, Role.SHARED)

AT_UNKNOWN_TIMES = frozenset((Reason.NOT_WATCHED, Reason.HOST_FUNCTION, Reason.OUTSIDE_PORTION, Reason.PRINTED))
"""The reasons of synchronizations on which something may rely before all that was seen to: they cannot be moved."""

_REASON_OF_NEED = {
    state.NEED_ORDER: Reason.ORDERS_STREAMS,
    state.NEED_RELEASE: Reason.DESTROYED,
    state.NEED_TIMER: Reason.HOST_TIMER,
    state.NEED_MAYBE_TIMER: Reason.MAYBE_TIMER,
}


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a process. Columns of length k; operations refer to a stream by its row."""

    kind: NDArray[np.uint8]
    """A value of `StreamKind`."""
    context: NDArray[np.int64]
    """The context, numbered from 0."""
    apart: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    """Shape (contexts, contexts): whether no memory is used by work of both contexts. Those beyond it are not."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of one process, sorted by start. Columns of equal length n; times in nanoseconds."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    """The host thread, numbered from 0."""
    scope: NDArray[np.uint8]
    """A value of `Scope`."""
    judged: NDArray[np.bool_]
    """Whether it waits and gets a verdict. A successful query (`cuEventQuery`) has a scope but gets no verdict."""
    stream: NDArray[np.int64]
    """Row of the stream of its work or wait."""
    context: NDArray[np.int64]
    """The context current at the call, numbered from 0."""
    event: NDArray[np.int64]
    """The event that it records or waits for, numbered from 0; -1 for none."""
    action: NDArray[np.uint8]
    """A value of `Action`."""
    streams: Streams


@dataclass(frozen=True, slots=True)
class Uses:
    """Accesses that rely on the end of an operation. Columns of equal length m. An operation can have several."""

    operation: NDArray[np.int64]
    """Row of the transfer, launch, record or host function among the operations."""
    time: NDArray[np.int64]
    """Meaningless for the roles `UNWATCHED`, `HOST_FUNCTION` and `SHARED`, which may come at any time."""
    role: NDArray[np.uint8]
    """A value of `Role`."""
    thread: NDArray[np.int64]
    """The thread that accesses; for a forked child, the one that forked it. `UNKNOWN_THREAD` if it is unknown or never
    called the driver.
    """


@dataclass(frozen=True, slots=True)
class Clocks:
    """Reads of a clock by the program or its libraries. Columns of equal length."""

    thread: NDArray[np.int64]
    time: NDArray[np.int64]
    comparison: NDArray[np.uint8]
    """A value of `Comparison`."""


@dataclass(frozen=True, slots=True)
class Handovers:
    """What threads know of each other, from when on. Rows in order of time."""

    thread: NDArray[np.int64]
    time: NDArray[np.int64]
    known: NDArray[np.int64]
    """Shape (k, threads): up to which time what each other thread did comes before the thread's next step, however
    threads are scheduled.
    """


NO_HANDOVERS = Handovers(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.int64))

NO_CLOCKS = Clocks(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Necessity:
    """The verdicts. Columns of length n."""

    reason: NDArray[np.uint8]
    """A value of `Reason`."""
    keep: NDArray[np.int64]
    """For `Reason.LATER_COVERS`, the row of the synchronization that must stay; otherwise -1."""
    credited: NDArray[np.int64]
    """Shape (c, 2): a row of the uses, and the row of a synchronization that it relies on."""


def needed_synchronizations(
    operations: Operations,
    uses: Uses,
    clocks: Clocks = NO_CLOCKS,
    handovers: Handovers = NO_HANDOVERS,
    *,
    unwatched_memory: bool = False,
    shows: NDArray[np.bool_] | None = None,
) -> Necessity:
    """Decide for each operation that waits whether the program relies on it.

    `unwatched_memory` means that private calls may write memory unseen that the CPU reads; `shows`, of length n, which
    of them let out what kernels print. O((n log n + m) k), with k streams.
    """
    reason = _reasons_at_first(operations, unwatched_memory, shows)
    own = uses.role == Role.OWN_SOURCE
    sweep = Sweep(operations, uses, clocks, handovers)

    found, covers = sweep.needs_of_uses(_is_required(reason))
    handed = found[:, state.USE] == state.NEED_HANDOVER
    needs = found[~handed]
    use = needs[:, state.USE]
    always = use >= len(uses.time)
    role = sweep.roles(uses, use)
    for value, why in _REASON_OF_ROLE.items():
        if value is not Role.OWN_SOURCE:
            _require(reason, needs[role == value, state.RELIED_ON], why)
    shared = needs[role == Role.SHARED, state.RELIED_ON]
    credited = [np.column_stack([use, needs[:, state.RELIED_ON]])[~always & (role != Role.OWN_SOURCE)]]
    # A synchronous transfer's own wait protects its source, unless a later wait stays for a reason of its own.
    later = needs[~always & (role == Role.OWN_SOURCE)]
    stays = later[_is_required(reason)[later[:, state.RELIED_ON]]]
    alone = np.setdiff1d(np.flatnonzero(own & (uses.time >= 0)), stays[:, state.USE])
    _require(reason, uses.operation[alone], Reason.SOURCE_OVERWRITTEN)
    credited += [stays[:, [state.USE, state.RELIED_ON]], np.column_stack([alone, uses.operation[alone]])]
    _require(reason, found[handed, state.RELIED_ON], Reason.HANDED_OVER)
    kept = needs[np.isin(role, [Role.OWN_SOURCE], invert=True) | _is_required(reason)[needs[:, state.RELIED_ON]]]

    # Doubts come last, and timing after them: what else relies on a wait is not "only timing".
    asked = [state.OF_ORDER] if len(operations.streams.kind) > 1 or (operations.action == Action.RELEASE).any() else []
    for needs_of in [*asked, *([state.OF_CLOCKS] if len(clocks.time) else [])]:
        if needs_of == state.OF_CLOCKS:
            _require(reason, shared, Reason.SHARED_MEMORY)
        more, covers = sweep.run(_is_required(reason), needs_of)
        for need, why in _REASON_OF_NEED.items():
            _require(reason, more[more[:, state.USE] == need, state.RELIED_ON], why)
        kept = np.concatenate([kept, more])
    _require(reason, shared, Reason.SHARED_MEMORY)

    keep = np.full(len(reason), -1, np.int64)
    if len(kept):
        kept = kept[np.argsort(kept[:, state.RELIED_AT], kind="stable")]
        keep = run(
            keepers, len(reason), kept, covers, operations.end, operations.thread,
            _is_required(reason) | ~operations.judged, sweep.threads, sweep.streams,
        )  # fmt: skip
    conditional = (reason == Reason.NOTHING_RELIES) & (keep >= 0)
    reason[conditional] = Reason.LATER_COVERS
    keep[~conditional] = -1
    return Necessity(reason, keep, np.concatenate(credited))


def _reasons_at_first(
    operations: Operations, unwatched_memory: bool, shows: NDArray[np.bool_] | None
) -> NDArray[np.uint8]:
    """Return a reason for each operation from what it is alone."""
    reason = np.where(operations.judged, Reason.NOTHING_RELIES, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    if unwatched_memory:
        reason[operations.judged] = Reason.UNWATCHED_MEMORY
    reason[operations.judged & (operations.scope == Scope.PRIVATE)] = Reason.PRIVATE_CALL
    reason[operations.judged & (operations.scope == Scope.UNKNOWN)] = Reason.UNKNOWN_WAIT
    if shows is not None:
        _require(reason, np.flatnonzero(shows), Reason.PRINTED)
    return reason


def _is_required(reason: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.isin(reason, list(REQUIRED))


def _require(reason: NDArray[np.uint8], rows: NDArray[np.int64], why: Reason) -> None:
    """Give rows a reason unless they have a stronger one or get no verdict."""
    weaker = np.isin(reason[rows], (Reason.NOTHING_RELIES, Reason.LATER_COVERS))
    reason[rows[weaker]] = why


def _knowledge(threads: NDArray[np.int64], times: NDArray[np.int64], handovers: Handovers) -> NDArray[np.int64]:
    """Return, for each thread at a time, the row of the handovers with what it knows then; -1 for nothing."""
    found = np.full(len(times), -1, np.int64)
    for thread in np.unique(handovers.thread):
        rows = np.flatnonzero(handovers.thread == thread)
        mine = np.flatnonzero(threads == thread)
        place = np.searchsorted(handovers.time[rows], times[mine], side="right") - 1
        found[mine] = np.where(place >= 0, rows[np.maximum(place, 0)], -1)
    return found


class Sweep:
    """The events of a process in order of time, ready for `sweep`, and what relies on them."""

    def __init__(self, operations: Operations, uses: Uses, clocks: Clocks, handovers: Handovers) -> None:
        self._operations = operations
        self.streams = len(operations.streams.kind)
        self.threads = 1 + int(
            max(operations.thread.max(initial=-1), clocks.thread.max(initial=-1), handovers.known.shape[1] - 1)
        )
        always = np.isin(uses.role, _AT_ANY_TIME)
        accesses = np.flatnonzero(~always)
        distinct, slot = np.unique(uses.operation, return_inverse=True)
        rows, start = self._order_always(uses, always)
        self._reliance = state.Reliance(
            operation=np.concatenate([uses.operation, clocks.thread]),
            slot=np.concatenate([slot, np.zeros(len(clocks.time), np.int64)]),
            slots=len(distinct),
            comparison=np.concatenate([np.zeros(len(uses.time), np.uint8), clocks.comparison]),
            own_source=np.concatenate([uses.role == Role.OWN_SOURCE, np.zeros(len(clocks.time), np.bool_)]),
            accessor=np.where(uses.thread < self.threads, uses.thread, UNKNOWN_THREAD),
            knowledge=_knowledge(uses.thread, uses.time, handovers),
            knowledge_at_start=_knowledge(operations.thread, operations.start, handovers),
            known=handovers.known if len(handovers.time) else np.empty((0, self.threads), np.int64),
            always=rows,
            always_start=start,
        )
        waits = np.flatnonzero(operations.scope != Scope.NONE)
        count = len(operations.start)
        kind = np.repeat(
            [state.ENDED, state.ACCESSED, state.CLOCK_READ, state.STARTED],
            [len(waits), len(accesses), len(clocks.time), count],
        )
        row = np.concatenate([waits, accesses, len(uses.time) + np.arange(len(clocks.time)), np.arange(count)])
        time = np.concatenate([operations.end[waits], uses.time[accesses], clocks.time, operations.start])
        order = np.lexsort((row, kind, time))
        self._events = state.Events(kind[order], row[order], time[order])
        self._uses = len(uses.time)

    def _order_always(self, uses: Uses, always: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the operations that are always used, by stream, and where each stream's start."""
        operation, role = uses.operation[always], uses.role[always]
        surest = np.lexsort((role == Role.SHARED, operation))
        rows, first = np.unique(operation[surest], return_index=True)
        stream = self._operations.stream[rows]
        order = np.lexsort((rows, stream))
        self.always_role = role[surest][first][order]
        return rows[order], np.searchsorted(stream[order], np.arange(self.streams + 1))

    def always_operation(self, use: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the operations that are always used, by their numbers among the needs."""
        rows: NDArray[np.int64] = self._reliance.always[use - self._uses]
        return rows

    def roles(self, uses: Uses, use: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the role of each use; those after the last one are `Reliance.always`."""
        always = use >= len(uses.time)
        role = np.zeros(len(use), np.uint8)
        role[~always] = uses.role[use[~always]]
        role[always] = self.always_role[use[always] - len(uses.time)]
        return role

    def needs_of_uses(self, required: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the needs of all uses and the covers. What unknown uses need stays, so that others may rely on it."""
        operations, reliance = self._operations, self._reliance
        concerned = np.unique(
            operations.thread[(operations.scope != Scope.NONE) | (operations.action != Action.NOTHING)]
        )
        others = np.zeros((0, state.COLUMNS_OF_NEEDS), np.int64)
        if len(reliance.always) or len(concerned) > 1 or not np.isin(reliance.accessor, concerned).all():
            others, _ = self.run(required, state.OF_OTHERS)
        surely = others[self._role_of_need(others[:, state.USE]) != Role.SHARED, state.RELIED_ON]
        stays = required.copy()
        stays[surely] |= operations.judged[surely]
        needs, covers = self.run(stays, state.OF_USES)
        return np.concatenate([others, needs]), covers

    def _role_of_need(self, use: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the roles of what is always used, by its number among the needs; -1 for other needs."""
        role = np.full(len(use), -1, np.int64)
        always = use >= self._uses
        role[always] = self.always_role[use[always] - self._uses]
        return role

    def run(self, required: NDArray[np.bool_], needs_of: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the needs and the covers. What counts as a use but is not in the uses is numbered after them."""
        operations = self._operations
        contexts = int(max(operations.streams.context.max(initial=0), operations.context.max(initial=0))) + 1
        legacy_of = np.full(contexts, -1, np.int64)
        legacy = np.flatnonzero(operations.streams.kind == StreamKind.LEGACY)
        legacy_of[operations.streams.context[legacy]] = legacy
        streams = operations.streams
        apart = np.zeros((contexts, contexts), np.bool_)
        apart[: len(streams.apart), : len(streams.apart)] = streams.apart
        program = state.Program(
            operations.start, operations.thread, operations.scope, operations.stream, operations.context,
            operations.event, operations.action, streams.kind, streams.context, legacy_of, apart, operations.judged,
            self.threads, int(operations.event.max(initial=-1)) + 1,
        )  # fmt: skip
        needs, covers = run(sweep, len(self._events.kind), self._events, program, self._reliance, required, needs_of)
        # The kernel numbers what is always used after the uses and clocks that it was given.
        numbered = len(self._reliance.operation)
        needs[needs[:, state.USE] >= numbered, state.USE] += self._uses - numbered
        return needs, covers
