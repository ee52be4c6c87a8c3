"""The passes over what a process did, in order of time, that find who relies on which synchronization."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.necessity import state
from ffm.model.necessity.order_kernels import streams_in_order
from ffm.model.necessity.program import (
    UNKNOWN_THREAD,
    Action,
    Clocks,
    Handovers,
    Operations,
    Role,
    Scope,
    StreamKind,
    UsedMemory,
    Uses,
)
from ffm.model.necessity.sweep_kernels import sweep

MOST_PLACES = 1 << 22
"""Most pairs of memory and stream, or thread, for which it is noted what used it last; each takes 16 bytes."""

_AT_ANY_TIME = (Role.UNWATCHED, Role.HOST_FUNCTION, Role.SHARED)


def _knowledge(threads: NDArray[np.int64], times: NDArray[np.int64], handovers: Handovers) -> NDArray[np.int64]:
    """Return, for each thread at a time, the row of the handovers with what it knows then; -1 for nothing."""
    found = np.full(len(times), -1, np.int64)
    for thread in np.unique(handovers.thread):
        rows = np.flatnonzero(handovers.thread == thread)
        mine = np.flatnonzero(threads == thread)
        place = np.searchsorted(handovers.time[rows], times[mine], side="right") - 1
        found[mine] = np.where(place >= 0, rows[np.maximum(place, 0)], -1)
    return found


def _in_order_of_time(*parts: tuple[int, NDArray[np.int64], NDArray[np.int64]]) -> state.Events:
    """Join events, which are given as kind, rows and times, of kinds that ascend. Those at one time come by kind and
    row.
    """
    kind = np.repeat(np.array([kind for kind, _, _ in parts], np.uint8), [len(rows) for _, rows, _ in parts])
    row = np.concatenate([rows.astype(np.int32) for _, rows, _ in parts])
    time = np.concatenate([times for _, _, times in parts])
    order = np.argsort(time, kind="stable")  # each kind is nearly in order, so that this merges
    return state.Events(kind[order], row[order], time[order])


class Sweep:
    """The events of a process in order of time, ready for `sweep`, and what relies on them."""

    def __init__(self, operations: Operations, uses: Uses, clocks: Clocks, handovers: Handovers) -> None:
        self._operations = operations
        self.streams = len(operations.streams.kind)
        last = max(operations.thread.max(initial=-1), clocks.thread.max(initial=-1), handovers.thread.max(initial=-1))
        self.threads = 1 + int(max(last, handovers.known.shape[1] - 1))
        calls = (operations.scope != Scope.NONE) | (operations.action != Action.NOTHING)
        self._callers = np.flatnonzero(np.bincount(operations.thread[calls]))
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
        self._uses, self._accesses = len(uses.time), len(accesses)
        waits = np.flatnonzero(operations.scope != Scope.NONE)
        self._events = _in_order_of_time(
            (state.ENDED, waits, operations.end[waits]),
            (state.ACCESSED, accesses, uses.time[accesses]),
            (state.CLOCK_READ, len(uses.time) + np.arange(len(clocks.time)), clocks.time),
            (state.STARTED, np.arange(len(operations.start)), operations.start),
        )

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
        others = np.zeros((0, state.COLUMNS_OF_NEEDS), np.int64)
        if len(reliance.always) or len(self._callers) > 1 or not np.isin(reliance.accessor, self._callers).all():
            others, covers = self.run(required, state.OF_OTHERS)
            if not self._accesses:  # there are no other uses, and the covers are the same
                return others, covers
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

    def _used_memory(self) -> tuple[UsedMemory, int]:
        """Return what operations use, and how much memory there is; nothing if only streams are distinguished."""
        used = self._operations.streams.used
        memories = 0 if used is None else int(used.memory.max(initial=-1)) + 1
        if used is None or memories * max(self.streams, self.threads) > MOST_PLACES:
            nothing = np.zeros(0, np.int64)
            no = nothing.astype(np.bool_)
            return UsedMemory(nothing, nothing, no, nothing.astype(np.uint8), no), 0
        return used, memories

    def run(self, required: NDArray[np.bool_], needs_of: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the needs and the covers. What counts as a use but is not in the uses is numbered after them."""
        operations = self._operations
        contexts = int(max(operations.streams.context.max(initial=0), operations.context.max(initial=0))) + 1
        legacy_of = np.full(contexts, -1, np.int64)
        legacy = np.flatnonzero(operations.streams.kind == StreamKind.LEGACY)
        legacy_of[operations.streams.context[legacy]] = legacy
        streams = operations.streams
        apart = streams.apart if len(streams.apart) else np.zeros((self.streams, self.streams), np.bool_)
        used, memories = self._used_memory()
        program = state.Program(
            operations.start, operations.thread, operations.scope, operations.stream, operations.context,
            operations.event, operations.action, streams.kind, streams.context, legacy_of, apart,
            used.first, used.memory, used.writes, used.side, used.anything, memories, np.ones_like(apart),
            operations.judged, self._callers, self.threads,
            int(operations.event.max(initial=-1)) + 1,
        )  # fmt: skip
        if needs_of == state.OF_ORDER and len(program.memory_first) > 0 and len(self._callers) > 1:
            # An operation may come after others' waits in one run and before them in the next.
            ordered = run(streams_in_order, len(operations.start), program, self._reliance)
            program = program._replace(in_order=ordered)
        looked_at = len(self._events.kind) * max(len(self._callers), 1)
        needs, covers = run(sweep, looked_at, self._events, program, self._reliance, required, needs_of)
        # The kernel numbers what is always used after the uses and clocks that it was given.
        numbered = len(self._reliance.operation)
        needs[needs[:, state.USE] >= numbered, state.USE] += self._uses - numbered
        return needs, covers
