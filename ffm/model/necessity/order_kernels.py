"""Which work the GPU does after which other work, and which work is held back until the CPU lets it go."""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined, inner
from ffm.model.necessity.state import (
    BLOCKING,
    HOLD,
    LEGACY,
    LOOKS,
    MARKS,
    NOBODY,
    RECORD,
    SCOPE_CONTEXT,
    SCOPE_EVENT,
    SCOPE_STREAM,
    SEVERAL,
    WAIT_EVENT,
    WORK,
    Held,
    Integers,
    Order,
    Program,
    Reliance,
    Waited,
)


@inlined
def unordered(program: Program) -> Order:
    """Return the state before the first operation."""
    streams = len(program.stream_kind)
    events = max(program.events, 1)
    before_stream = np.zeros(streams + 1, np.int64)
    alone = np.full(streams, NOBODY, np.int64)
    for row in range(len(program.action)):
        action = program.action[row]
        if action in (WORK, RECORD, WAIT_EVENT, HOLD):
            own = program.stream[row]
            before_stream[own + 1] += 1
            if alone[own] != program.thread[row]:
                alone[own] = program.thread[row] if alone[own] == NOBODY else SEVERAL
    for one in range(streams):
        before_stream[one + 1] += before_stream[one] + 1
    return Order(
        np.zeros(len(program.thread), np.int64),
        np.zeros(streams, np.int64),
        np.zeros((streams, streams), np.int64),
        np.zeros((streams, streams), np.int64),
        np.zeros((streams, streams), np.int64),
        np.full((streams, streams), -1, np.int64),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.full(streams, -1, np.int64),
        np.zeros((events, streams), np.int64),
        np.zeros((events, streams), np.int64),
        np.full(events, -1, np.int64),
        np.zeros(events, np.bool_),
        np.zeros(events, np.bool_),
        alone,
        np.zeros(before_stream[streams] + 1 if program.threads > 1 else 0, np.int32),
        np.zeros(before_stream[streams] + 1, np.int64),
        before_stream,
        np.zeros((program.memories, streams), np.int64),
        np.zeros((program.memories, streams), np.int64),
        np.zeros(streams, np.int64),
    )


@inner
def join(known: Integers, row: int, others: Integers, other: int) -> None:
    """Extend one row of a table of vectors by what another row knows."""
    for one in range(known.shape[1]):
        known[row, one] = max(known[row, one], others[other, one])


@inner
def comes_after(program: Program, reliance: Reliance, row: int, earlier: int) -> bool:
    """Return whether an operation starts after an earlier one, however threads are scheduled."""
    knowledge, thread = reliance.knowledge_at_start[row], program.thread[earlier]
    if thread == program.thread[row]:
        return True
    if knowledge < 0 or thread >= reliance.known.shape[1]:
        return False
    return bool(reliance.known[knowledge, thread] >= program.start[earlier])


@inner
def certainly_behind(order: Order, program: Program, reliance: Reliance, row: int, stream: int, one: int) -> int:
    """Return up to which number of the stream `one` the work of a stream so far is certainly behind, for an operation
    that starts.
    """
    known, shared_by = order.surely_behind[stream, one], order.shared_by[stream, one]
    if shared_by >= 0 and comes_after(program, reliance, row, shared_by):
        known = max(known, order.shared_behind[stream, one])
    return int(known)


@inner
def put_surely_behind(order: Order, program: Program, row: int, one: int, upto: int) -> None:
    """Note that an operation certainly comes after the work of the stream `one` up to a number."""
    own = program.stream[row]
    if order.alone[own] == program.thread[row]:
        order.surely_behind[own, one] = max(order.surely_behind[own, one], upto)
    elif upto >= order.shared_behind[own, one]:
        order.shared_behind[own, one], order.shared_by[own, one] = upto, row


@inner
def follow(order: Order, program: Program, reliance: Reliance, row: int, other: int) -> None:
    """Note that the GPU orders an operation after all work of another stream."""
    own = program.stream[row]
    join(order.behind, own, order.behind, other)
    for one in range(len(order.length)):
        put_surely_behind(order, program, row, one, certainly_behind(order, program, reliance, row, other, one))
    join(order.surely_behind, own, order.surely_behind, other)


@inner
def order_on_gpu(order: Order, program: Program, reliance: Reliance, row: int) -> None:
    """Note which work the GPU itself orders before an operation."""
    own = program.stream[row]
    context = program.stream_context[own]
    if program.stream_kind[own] == LEGACY:
        for other in range(len(program.stream_kind)):
            if (
                program.stream_kind[other] == BLOCKING
                and program.stream_context[other] == context
                and order.joined_by_legacy[other] != order.version[other]
            ):
                order.joined_by_legacy[other] = order.version[other]
                follow(order, program, reliance, row, other)
    elif program.stream_kind[own] == BLOCKING:
        legacy = program.legacy_of[context]
        if legacy >= 0 and order.joined[own] != order.version[legacy]:
            order.joined[own] = order.version[legacy]
            follow(order, program, reliance, row, legacy)
    event = program.event[row]
    if program.action[row] == WAIT_EVENT and event >= 0 and order.was_recorded[event]:
        join(order.behind, own, order.recorded, event)
        join(order.surely_behind, own, order.surely_recorded, event)


@inner
def touch(order: Order, program: Program, row: int) -> None:
    """Note which memory work uses that was put on its stream."""
    own, number = program.stream[row], order.position[row]
    if program.any_memory[row]:
        order.used_anything[own] = number
    for place in range(program.memory_first[row], program.memory_first[row + 1]):
        if program.memory_side[place] == LOOKS:
            continue
        order.used[program.memory[place], own] = number
        if program.memory_writes[place]:
            order.written[program.memory[place], own] = number


@inner
def put_on_stream(order: Order, waited: Waited, program: Program, reliance: Reliance, row: int) -> None:
    """Number the operation in its stream; a record keeps what it comes after."""
    own = program.stream[row]
    waited.enqueued_at[program.thread[row]] = program.start[row]
    order.length[own] += 1
    order.position[row] = order.length[own]
    place = order.before_stream[own] + order.length[own]
    works = program.action[row] in (WORK, HOLD)
    order.last_work[place] = order.length[own] if works else order.last_work[place - 1]
    if works and len(program.memory_first) > 0:
        touch(order, program, row)
    if program.threads > 1:
        order.row[place] = row
    order.behind[own, own] = order.length[own]
    order.surely_behind[own, own] = order.length[own]
    order.version[own] += 1
    event = program.event[row]
    if program.action[row] == RECORD and event >= 0:
        order.was_recorded[event] = True
        order.recorder[event] = row
        for one in range(len(order.length)):
            order.recorded[event, one] = order.behind[own, one]
            order.surely_recorded[event, one] = certainly_behind(order, program, reliance, row, own, one)


@inner
def shares_until(order: Order, program: Program, row: int, one: int) -> int:
    """Return up to which number a stream's work may use memory that an operation uses, too, if one of both writes it;
    all of it if it is not known what operations use.
    """
    if len(program.memory_first) == 0 or program.any_memory[row]:
        return int(order.length[one])
    until = order.used_anything[one]
    for place in range(program.memory_first[row], program.memory_first[row + 1]):
        if program.memory_side[place] == MARKS:
            continue
        last = order.used if program.memory_writes[place] else order.written
        until = max(until, last[program.memory[place], one])
    return int(until)


@inner
def begin_wait(
    covering: Integers, behind: Integers, recorded: Integers, order: Order, program: Program, row: int
) -> None:
    """Note up to which numbers the work of each stream will be done when a wait ends, if the last work of each stream
    comes `behind` that of others, and the events were recorded behind it.
    """
    scope, own, event = program.scope[row], program.stream[row], program.event[row]
    mine, streams = program.thread[row], len(order.length)
    for one in range(streams):
        covering[mine, one] = 0
    if scope == SCOPE_CONTEXT:
        for one in range(streams):
            if program.stream_context[one] == program.context[row]:
                join(covering, mine, behind, one)
    elif scope == SCOPE_STREAM:
        join(covering, mine, behind, own)
        if program.stream_kind[own] == LEGACY:
            for other in range(streams):
                if (
                    program.stream_kind[other] == BLOCKING
                    and program.stream_context[other] == program.stream_context[own]
                ):
                    join(covering, mine, behind, other)
    elif scope == SCOPE_EVENT and event >= 0 and order.was_recorded[event]:
        join(covering, mine, recorded, event)


@inner
def work_waited_for(order: Order, waited: Waited, thread: int, stream: int) -> int:
    """Return the last real work of a stream that a thread has waited for."""
    return int(order.last_work[order.before_stream[stream] + waited.most[thread, stream]])


@inner
def work_waited_for_by_any(order: Order, waited: Waited, stream: int) -> int:
    """Return the last real work of a stream that some thread has waited for."""
    return int(order.last_work[order.before_stream[stream] + waited.most_of_all[stream]])


@inner
def hold_back(held: Held, order: Order, stream: int, row: int) -> None:
    """Note an operation that the CPU may hold back."""
    if held.since[stream] == 0:
        held.since[stream] = order.position[row]
        join(held.behind, stream, order.behind, stream)
    held.upto[stream] = order.position[row]


@inner
def let_go(held: Held, waited: Waited, thread: int) -> None:
    """Forget what was held back on streams where a thread has waited for the last of it."""
    for one in range(len(held.since)):
        if held.since[one] != 0 and waited.most[thread, one] >= held.upto[one]:
            held.since[one] = 0
            held.behind[one, :] = 0


@inner
def held_apart(held: Held, stream: int) -> int:
    """Return up to which number a stream's work comes before all that is held back; the rest the CPU may put before."""
    least = np.iinfo(np.int64).max
    for one in range(len(held.since)):
        if held.since[one] != 0:
            least = min(least, held.behind[one, stream])
    return int(least)


def streams_in_order(program: Program, reliance: Reliance) -> Integers:
    """Return, of shape (streams, streams), whether all work of both that shares memory comes in one order, however
    threads are scheduled.

    Work of one thread does. If some work of two threads does not, nothing is said of the one's stream and any of the
    other thread's.
    """
    threads, streams = program.threads, len(program.stream_kind)
    ordered, uses = np.ones((streams, streams), np.bool_), np.zeros((threads, streams), np.bool_)
    used = np.full((program.memories, threads), -1, np.int64)
    written = np.full((program.memories, threads), -1, np.int64)
    used_anything, worked = np.full(threads, -1, np.int64), np.full(threads, -1, np.int64)
    for row in range(len(program.action)):
        if program.action[row] not in (WORK, HOLD):
            continue
        own, mine = program.stream[row], program.thread[row]
        uses[mine, own] = True
        for thread in program.callers:
            if thread == mine:
                continue
            last = worked[thread] if program.any_memory[row] else used_anything[thread]
            for place in range(program.memory_first[row], program.memory_first[row + 1]):
                if program.memory_side[place] == MARKS:
                    continue
                before = used if program.memory_writes[place] else written
                last = max(last, before[program.memory[place], thread])
            if last >= 0 and not comes_after(program, reliance, row, last):
                for one in range(streams):
                    if uses[thread, one]:
                        ordered[own, one] = ordered[one, own] = False
        worked[mine] = row
        if program.any_memory[row]:
            used_anything[mine] = row
        for place in range(program.memory_first[row], program.memory_first[row + 1]):
            if program.memory_side[place] == LOOKS:
                continue
            used[program.memory[place], mine] = row
            if program.memory_writes[place]:
                written[program.memory[place], mine] = row
    return ordered
