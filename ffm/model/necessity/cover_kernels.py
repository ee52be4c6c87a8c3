"""The stacks of synchronizations that cover work: what ends there, and which of them covers a number."""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined, inner
from ffm.model.necessity.order_kernels import comes_after
from ffm.model.necessity.state import (
    ALL_WORK,
    BEFORE,
    BELOW,
    BLOCKING,
    CERTAIN,
    COVERED,
    COVERED_STREAM,
    DEPTH,
    ENDED_AT,
    FAR_PREVIOUS,
    LEGACY,
    LOOKED_AT,
    NO_WORK,
    OWN_WORK,
    PREVIOUS,
    SCOPE_CONTEXT,
    SCOPE_EVENT,
    SCOPE_STREAM,
    SURELY,
    SURELY_BEFORE,
    SYNCHRONIZATION,
    Integers,
    Order,
    Program,
    Reliance,
    Waited,
)


@inner
def end_wait(
    covers: Integers,
    count: int,
    waited: Waited,
    order: Order,
    program: Program,
    reliance: Reliance,
    row: int,
    stays: bool,
    time: int,
) -> int:
    """Note what a wait that ends has covered of each stream; return the number of covers."""
    mine = program.thread[row]
    for one in range(waited.covering.shape[1]):
        upto = waited.covering[mine, one]
        if upto == 0:
            continue
        covers[count, SYNCHRONIZATION] = row
        covers[count, COVERED_STREAM] = one
        covers[count, COVERED] = upto
        covers[count, ENDED_AT] = time
        covers[count, BEFORE] = waited.most_judged[mine, one]
        covers[count, CERTAIN] = waited.certain[mine, one]
        covers[count, SURELY_BEFORE] = waited.surely_judged[mine, one]
        covers[count, SURELY] = all_surely_covered(covers, count, waited, order, program, reliance)
        if covers[count, SURELY] >= waited.surely[mine, one] and covers[count, SURELY] > 0:
            waited.surely[mine, one] = covers[count, SURELY]
            waited.surely_by[mine, one] = count
            if program.judged[row]:
                waited.surely_judged[mine, one] = covers[count, SURELY]
        append(covers, count, waited.latest[mine, one])
        waited.latest[mine, one] = count
        push(waited.top, covers, count, mine)
        waited.most[mine, one] = max(waited.most[mine, one], upto)
        waited.most_of_all[one] = max(waited.most_of_all[one], upto)
        if program.judged[row]:
            waited.most_judged[mine, one] = max(waited.most_judged[mine, one], upto)
        if stays:
            stay(waited, covers, count, mine)
        count += 1
    return count


@inner
def all_surely_covered(
    covers: Integers, cover: int, waited: Waited, order: Order, program: Program, reliance: Reliance
) -> int:
    """Return up to which number a cover covers all work of its stream, however threads are scheduled."""
    one, upto = covers[cover, COVERED_STREAM], covers[cover, COVERED]
    wait = covers[cover, SYNCHRONIZATION]
    mine = program.thread[wait]
    if covers[cover, CERTAIN] == ALL_WORK or (covers[cover, CERTAIN] == OWN_WORK and order.alone[one] == mine):
        return int(upto)
    if covers[cover, CERTAIN] == NO_WORK or program.scope[wait] == SCOPE_EVENT:
        return 0
    # What the thread's earlier waits certainly covered, it knows of, so this one does, too.
    surely = min(waited.surely[mine, one], upto)
    place = order.before_stream[one]
    while surely < upto and certainly_covers(covers, cover, program, reliance, order.row[place + surely + 1]):
        surely += 1
    return int(surely)


@inner
def append(covers: Integers, cover: int, previous: int) -> None:
    """Put a cover behind the previous one of the same thread and stream, -1 if it is the first."""
    covers[cover, PREVIOUS] = previous
    if previous < 0:
        covers[cover, DEPTH] = 0
        covers[cover, FAR_PREVIOUS] = cover
        return
    far = covers[previous, FAR_PREVIOUS]
    farther = covers[far, FAR_PREVIOUS]
    equal = covers[previous, DEPTH] - covers[far, DEPTH] == covers[far, DEPTH] - covers[farther, DEPTH]
    covers[cover, DEPTH] = covers[previous, DEPTH] + 1
    covers[cover, FAR_PREVIOUS] = farther if equal else previous


@inner
def stay(waited: Waited, covers: Integers, cover: int, thread: int) -> None:
    """Note that the wait of a thread's cover stays in any case."""
    stream, upto = covers[cover, COVERED_STREAM], covers[cover, COVERED]
    if upto > waited.stays[thread, stream]:
        waited.stays[thread, stream] = upto
        waited.stayer[thread, stream] = cover


@inner
def certain_cover(
    covers: Integers, waited: Waited, program: Program, reliance: Reliance, row: int, one: int, used: int
) -> tuple[int, int]:
    """Return a cover that a use comes after, however threads are scheduled, and its thread; -1 if none is known.

    One that stays anyway is preferred, then the last one.
    """
    accessor, knowledge, operation = reliance.accessor[row], reliance.knowledge[row], reliance.operation[row]
    if accessor < 0:
        return -1, -1
    found, whose = -1, -1
    for thread in program.callers:
        if waited.most[thread, one] < used or (found >= 0 and thread != accessor):
            continue
        known = np.iinfo(np.int64).max
        if thread != accessor:
            known = reliance.known[knowledge, thread] if knowledge >= 0 and thread < reliance.known.shape[1] else -1
        stayer = waited.stayer[thread, one]
        if (
            waited.stays[thread, one] >= used
            and covers[stayer, ENDED_AT] <= known
            and certainly_covers(covers, stayer, program, reliance, operation)
        ):
            return int(stayer), thread
        cover = latest_at_most(covers, waited.latest[thread, one], ENDED_AT, known)
        for _ in range(LOOKED_AT):
            if cover < 0 or covers[cover, SYNCHRONIZATION] < operation:
                break
            if covers[cover, COVERED] >= used and certainly_covers(covers, cover, program, reliance, operation):
                found, whose = cover, thread
                break
            cover = covers[cover, PREVIOUS]
    return int(found), whose


@inner
def last_cover(covers: Integers, waited: Waited, thread: int, stream: int, upto: int) -> int:
    """Return a thread's last cover of a stream's work up to a number, which must exist."""
    cover = waited.top[thread, stream]
    while covers[cover, COVERED] < upto:
        cover = covers[cover, BELOW]
    return int(cover)


@inner
def first_cover(covers: Integers, waited: Waited, thread: int, stream: int, upto: int) -> int:
    """Return a thread's first cover of a stream's work up to a number, which must exist.

    Polling counts only where no wait covers the work: a program that asks again may have gone on without the answer.
    """
    cover = latest_at_most(covers, waited.latest[thread, stream], BEFORE, upto - 1)
    while covers[cover, COVERED] < upto:
        cover = covers[cover, PREVIOUS]
    return int(cover)


@inner
def latest_at_most(covers: Integers, cover: int, column: int, most: int) -> int:
    """Return the latest cover, from one on backwards, with at most this in a column that ascends; -1 for none.

    O(log n).
    """
    while cover >= 0 and covers[cover, column] > most:
        far = covers[cover, FAR_PREVIOUS]
        cover = far if far != cover and covers[far, column] > most else covers[cover, PREVIOUS]
    return int(cover)


@inlined
def nothing_waited_for(threads: int, streams: int) -> Waited:
    """Return what is known before any wait."""
    return Waited(
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.zeros(streams, np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.full(threads, -1, np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.zeros((threads, streams), np.int64),
    )


@inner
def note_certainty(waited: Waited, order: Order, program: Program, reliance: Reliance, row: int) -> None:
    """Note what the wait that begins certainly covers of each stream."""
    scope, own, event, mine = program.scope[row], program.stream[row], program.event[row], program.thread[row]
    alone = knows_all_work(waited, program, reliance, row)
    if scope == SCOPE_EVENT and event >= 0:
        alone = alone and order.recorded_alone[event]
    recorder = order.recorder[event] if scope == SCOPE_EVENT and event >= 0 else -1
    for one in range(len(order.length)):
        direct = scope == SCOPE_CONTEXT and program.stream_context[one] == program.context[row]
        direct |= scope == SCOPE_STREAM and (
            one == own
            or (
                program.stream_kind[own] == LEGACY
                and program.stream_kind[one] == BLOCKING
                and program.stream_context[one] == program.stream_context[own]
            )
        )
        direct |= recorder >= 0 and program.thread[recorder] == mine and program.stream[recorder] == one
        surely = waited.surely_covering[mine, one] == waited.covering[mine, one]
        waited.certain[mine, one] = ALL_WORK if alone and surely else OWN_WORK if direct else NO_WORK


@inner
def knows_all_work(waited: Waited, program: Program, reliance: Reliance, row: int) -> bool:
    """Return whether all that other threads have enqueued comes before an operation, however threads are scheduled."""
    knowledge = reliance.knowledge_at_start[row]
    for thread in program.callers:
        known = -1
        if knowledge >= 0 and thread < reliance.known.shape[1]:
            known = max(known, reliance.known[knowledge, thread])
        if thread != program.thread[row] and waited.enqueued_at[thread] > known:
            return False
    return True


@inner
def certainly_covers(covers: Integers, cover: int, program: Program, reliance: Reliance, operation: int) -> bool:
    """Return whether a cover's wait covers an operation's work however threads are scheduled."""
    wait, certain = covers[cover, SYNCHRONIZATION], covers[cover, CERTAIN]
    thread = program.thread[operation]
    if certain != OWN_WORK or thread == program.thread[wait]:
        return bool(certain != NO_WORK)
    # An event covers what was known when it was recorded.
    return program.scope[wait] != SCOPE_EVENT and comes_after(program, reliance, wait, operation)


@inner
def push(top: Integers, covers: Integers, cover: int, thread: int) -> None:
    """Push a cover on its thread's stack; earlier ones that cover no more are dropped, because they are now useless."""
    stream = covers[cover, COVERED_STREAM]
    below = top[thread, stream]
    while below >= 0 and covers[below, COVERED] <= covers[cover, COVERED]:
        below = covers[below, BELOW]
    covers[cover, BELOW] = below
    top[thread, stream] = cover
