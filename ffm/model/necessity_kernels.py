"""The passes over the operations of a process that decide who relies on which synchronization.

They are written in the part of Python that Numba compiles; `ffm.model.compiled.run` chooses. The work of a stream is
numbered 1, 2, … in order. What is known to be done is a vector with one such number per stream (a vector clock). For
each host thread and stream, the synchronizations that cover some work are kept on a stack, the last one on top. Those
below cover more and came earlier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner, zero

Integers = NDArray[Any]

ENDED, ACCESSED, CLOCK_READ, STARTED = 0, 1, 2, 3
"""Kinds of events, in the order in which events at the same time happen."""

SCOPE_NONE, SCOPE_CONTEXT, SCOPE_STREAM, SCOPE_EVENT = 0, 1, 2, 3
"""Values of `ffm.model.necessity.Scope`; all others cover nothing."""

NOTHING, WORK, RECORD, WAIT_EVENT, RELEASE, HOLD = 0, 1, 2, 3, 4, 5
"""Values of `ffm.model.necessity.Action`."""

INDEPENDENT, BLOCKING, LEGACY = 0, 1, 2
"""Values of `ffm.model.necessity.StreamKind`."""

NEED_ORDER, NEED_TIMER, NEED_RELEASE, NEED_MAYBE_TIMER, NEED_HANDOVER = -1, -2, -3, -4, -5
"""Placeholders in a need where others have the number of a use."""

OF_OTHERS, OF_USES, OF_ORDER, OF_CLOCKS = 0, 1, 2, 3
"""Which needs a sweep determines: of uses of which it is unknown what they come after; of all other uses; of later work
and of releases; of reads of clocks.
"""

NOT_COMPARED, MAYBE_COMPARED, COMPARED = 0, 1, 2
"""Values of `ffm.model.necessity.Comparison`."""

USE, RELIED_ON, WAITED_BY, RELIED_AT, USED_STREAM, USED = range(6)
"""Columns of the needs: the use (or a `NEED_...`; what is always used is numbered after the uses and clocks), the
synchronization that it relies on, the host thread of that, the time of the use, and the work that it needs, as a stream
and a number up to which.
"""

COLUMNS_OF_NEEDS = 6

SYNCHRONIZATION, COVERED_STREAM, COVERED, BELOW, PREVIOUS, ENDED_AT, BEFORE, DEPTH, FAR_PREVIOUS, CERTAIN = range(10)
"""Columns of the covers: who covers, which stream, its work up to which number, the next cover on the stack, the
previous cover of the same thread and stream, when it ended, up to which number the thread's judged waits had covered
before, how many covers of the same thread and stream are before it, one of these, far back (E. Myers, "An applicative
random-access stack", Information Processing Letters 17, 1983), and what it certainly covers, a `..._WORK`.
"""

COLUMNS_OF_COVERS = 10

NO_WORK, OWN_WORK, ALL_WORK = 0, 1, 2
"""What a wait certainly covers, however threads are scheduled: nothing, because the work is covered only by an order on
the GPU that other threads made; the work of the thread itself, and of those that it is ordered after; all that it did
cover in this run. Other work it covers only because another thread happened to be early.
"""

LOOKED_AT = 64
"""Of so many waits of a thread, the last ones before a use, some must certainly cover what is used, or none counts."""

FIRST_ROOM = 1024
"""Initial number of rows of a table that grows."""


class Events(NamedTuple):
    """What happens, in order of time."""

    kind: Integers
    row: Integers
    """Row of an operation; for `ACCESSED` and `CLOCK_READ`, the number of a use."""
    time: Integers


class Program(NamedTuple):
    """The columns of the operations and of the streams; `ffm.model.necessity.Operations` describes them."""

    start: Integers
    thread: Integers
    scope: Integers
    stream: Integers
    context: Integers
    event: Integers
    action: Integers
    stream_kind: Integers
    stream_context: Integers
    legacy_of: Integers
    """The legacy default stream of each context, or -1."""
    judged: Integers
    threads: int
    events: int


class Reliance(NamedTuple):
    """What relies on the ends of operations: the uses, then the reads of clocks, which are numbered after them."""

    operation: Integers
    """The operation used or, for a clock, the thread that read it."""
    slot: Integers
    """Uses of the same operation have the same slot."""
    slots: int
    own_source: Integers
    """For uses, whether the wait of the operation itself protects the memory, unless another one stays anyway."""
    comparison: Integers
    """For reads of clocks, a value of `ffm.model.necessity.Comparison`."""
    accessor: Integers
    """For uses, the thread that accesses, as `ffm.model.necessity.Uses` has it."""
    knowledge: Integers
    """For uses, a row of `known`, or -1 if the thread knows nothing of others."""
    knowledge_at_start: Integers
    """The same for operations, when they start."""
    known: Integers
    """Shape (k, threads): up to which time what a thread did comes before, however threads are scheduled. Nothing is
    known of threads beyond its last column.
    """
    always: Integers
    """Operations on whose ends something relies at an unknown time, stream by stream."""
    always_start: Integers
    """Those of stream `s` are `always[always_start[s] : always_start[s + 1]]`."""


class Order(NamedTuple):
    """What is known about the order of work on the GPU."""

    position: Integers
    """The number of each operation in its stream. Records and waits for events are numbered too."""
    length: Integers
    """The last number of each stream."""
    behind: Integers
    """Shape (streams, streams): what the next work of a stream comes after."""
    version: Integers
    """How many operations each stream has received so far."""
    joined: Integers
    """For each stream, the version of its context's legacy stream that its work was last ordered after."""
    joined_by_legacy: Integers
    """For each stream, its version that the work of its context's legacy stream was last ordered after."""
    recorded: Integers
    """Shape (events, streams): what the last record of an event comes after."""
    recorder: Integers
    """The row of the last record of an event."""
    was_recorded: Integers
    last_work: Integers
    """The last real work up to each number, stream by stream."""
    before_stream: Integers
    """Where a stream starts in `last_work`."""


class Waited(NamedTuple):
    """What host threads have waited for. Each has shape (threads, streams)."""

    covering: Integers
    """By the current wait."""
    most: Integers
    """By all waits so far."""
    stays: Integers
    """By those that stay in any case."""
    top: Integers
    """The top of the stack of covers, or -1."""
    latest: Integers
    """The latest cover, or -1."""
    stayer: Integers
    """The cover that set `stays`, or -1."""
    most_judged: Integers
    """By all waits so far that get a verdict."""
    certain: Integers
    """What the current wait certainly covers, a `..._WORK`."""
    enqueued_at: Integers
    """Shape (threads,): when each thread last put something on a stream."""
    handed_high: Integers
    handed_low: Integers
    handed: Integers
    """Of the covers between these two, all up to this work were relied on by other threads; -1 for none."""


class Held(NamedTuple):
    """What the CPU may hold back on each stream: the operations of `HOLD` that nobody is known to have waited for."""

    since: Integers
    """The number of the first one, or 0."""
    upto: Integers
    """The number of the last one."""
    behind: Integers
    """Shape (streams, streams): what the first one comes after."""


class Credited(NamedTuple):
    """What needs have been noted already, so that they are noted once."""

    ordered_at: Integers
    """For each stream, how many waits had ended when its work was last ordered after those of others."""
    covers_at: Integers
    """How many covers there were at that time."""
    released: Integers
    """The work of each stream that releases have been credited for."""
    clock: Integers
    """Shape (2 * threads, streams): what was known at the last read of a clock by each thread; then, at its last read
    by the program's own code.
    """
    always_next: Integers
    """Shape (threads, streams): the next of `Reliance.always` that no wait of the thread has been credited with."""
    satisfied: Integers
    """Shape (slots, 2 * threads): whether each thread's accesses certainly come after a wait that was credited; then,
    whether a wait of each thread was credited for accesses that may come after it.
    """


def sweep(
    event: Events, program: Program, reliance: Reliance, required: Integers, needs_of: int
) -> tuple[Integers, Integers]:
    """Process all events in order of time.

    `required` are the synchronizations that stay in any case. `needs_of` is one of the `OF_...`.

    Returns the needs and the covers, of shapes (count, `COLUMNS_OF_NEEDS`) and (count, `COLUMNS_OF_COVERS`).
    """
    order, waited, held, credited = initial_state(program, reliance)
    streams = len(program.stream_kind)
    needs = np.empty((FIRST_ROOM, COLUMNS_OF_NEEDS), np.int64)
    covers = np.empty((FIRST_ROOM, COLUMNS_OF_COVERS), np.int64)
    count = cover_count = covers_at_release = syncs_ended = zero()
    # The most needs of one event: every thread's cover of every stream, every cover once more, and what is always used.
    most = program.threads * streams + len(reliance.always)

    for index in range(len(event.kind)):
        kind, row, time = event.kind[index], event.row[index], event.time[index]
        if len(needs) < count + most + cover_count:
            needs = larger(needs, count + most + cover_count)
        if len(covers) < cover_count + streams:
            covers = larger(covers, cover_count + streams)

        if kind == STARTED:
            action, own = program.action[row], program.stream[row]
            if action == RELEASE and needs_of == OF_ORDER:
                count = need_for_release(
                    needs, count, covers, order, waited, credited, program, reliance, row, covers_at_release, time
                )
                covers_at_release = cover_count
            elif action not in (NOTHING, RELEASE):
                order_on_gpu(order, program, row)
                if action in (WORK, HOLD) and needs_of == OF_ORDER and credited.ordered_at[own] != syncs_ended:
                    count = need_for_order(needs, count, covers, order, waited, credited, program, reliance, row, time)
                    credited.ordered_at[own] = syncs_ended
                    credited.covers_at[own] = cover_count
                put_on_stream(order, waited, program, row)
                if action == HOLD:
                    hold_back(held, order, own, row)
            if program.scope[row] != SCOPE_NONE:
                begin_wait(waited.covering, order, program, row)
                note_certainty(waited, order, program, reliance, row)
        elif kind == ENDED:
            syncs_ended += 1
            mine = program.thread[row]
            cover_count = end_wait(covers, cover_count, waited, program, row, required[row], time)
            if needs_of == OF_OTHERS:
                count = need_for_always(needs, count, covers, order, waited, credited, program, reliance, mine, time)
            elif needs_of == OF_ORDER:
                count = need_for_held(needs, count, covers, order, waited, held, mine, time)
        elif kind == ACCESSED and needs_of in (OF_OTHERS, OF_USES):
            count = need_for_use(needs, count, covers, order, waited, credited, program, reliance, row, needs_of, time)
        elif kind == CLOCK_READ and needs_of == OF_CLOCKS:
            count = need_for_clock(needs, count, covers, order, waited, credited, reliance, row, time)

    return needs[:count], covers[:cover_count]


@inlined
def initial_state(program: Program, reliance: Reliance) -> tuple[Order, Waited, Held, Credited]:
    """Return what is known before the first event."""
    threads, streams = program.threads, len(program.stream_kind)
    always_next = np.zeros((threads, streams), np.int64)
    for thread in range(threads):
        always_next[thread, :] = reliance.always_start[:streams]
    credited = Credited(
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.zeros((2 * threads, streams), np.int64),
        always_next,
        np.zeros((reliance.slots, 2 * threads), np.bool_),
    )
    held = Held(np.zeros(streams, np.int64), np.zeros(streams, np.int64), np.zeros((streams, streams), np.int64))
    return unordered(program), nothing_waited_for(threads, streams), held, credited


@inner
def need_for_order(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    credited: Credited,
    program: Program,
    reliance: Reliance,
    row: int,
    time: int,
) -> int:
    """Credit the waits that order what starts after work of other streams; return the number of needs."""
    own, mine = program.stream[row], program.thread[row]
    for one in range(len(order.length)):
        known = order.behind[own, one]
        for number in range(program.threads):
            upto = work_waited_for(order, waited, number, one)
            if upto <= known or (number != mine and upto <= waited.most[mine, one]):
                continue
            order.behind[own, one] = max(order.behind[own, one], upto)
            if number != mine:
                count = rely_on_others(
                    needs, count, covers, order, waited, reliance, NEED_ORDER, row, number, one,
                    max(known, waited.most[mine, one]), credited.covers_at[own], time,
                )  # fmt: skip
            elif waited.stays[number, one] < upto:
                kept = rely(needs, count, covers, waited, NEED_ORDER, number, one, upto, time)
                waited.stays[number, one] = kept
                count += 1
    return count


@inner
def need_for_release(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    credited: Credited,
    program: Program,
    reliance: Reliance,
    row: int,
    first: int,
    time: int,
) -> int:
    """Credit the waits since the cover `first` that a release comes after; return the number of needs."""
    mine, released = program.thread[row], credited.released
    for one in range(len(order.length)):
        for number in range(program.threads):
            upto = work_waited_for(order, waited, number, one)
            if upto > released[one] and number != mine:
                count = rely_on_others(
                    needs, count, covers, order, waited, reliance, NEED_RELEASE, row, number, one,
                    max(released[one], waited.most[mine, one]), first, time,
                )  # fmt: skip
            elif upto > released[one] and waited.stays[number, one] < upto:
                kept = rely(needs, count, covers, waited, NEED_RELEASE, number, one, upto, time)
                waited.stays[number, one] = kept
                count += 1
        for number in range(program.threads):
            released[one] = max(released[one], waited.most[number, one])
    return count


@inner
def end_wait(covers: Integers, count: int, waited: Waited, program: Program, row: int, stays: bool, time: int) -> int:
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
        append(covers, count, waited.latest[mine, one])
        waited.latest[mine, one] = count
        push(waited.top, covers, count, mine)
        waited.most[mine, one] = max(waited.most[mine, one], upto)
        if program.judged[row]:
            waited.most_judged[mine, one] = max(waited.most_judged[mine, one], upto)
        if stays:
            stay(waited, covers, count, mine)
        count += 1
    return count


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
def need_for_always(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    credited: Credited,
    program: Program,
    reliance: Reliance,
    mine: int,
    time: int,
) -> int:
    """Credit a wait that ended with what is always used of the work that it covers; return the number of needs."""
    for one in range(waited.covering.shape[1]):
        upto = waited.covering[mine, one]
        if upto == 0:
            continue
        place = credited.always_next[mine, one]
        while place < reliance.always_start[one + 1]:
            used = order.position[reliance.always[place]]
            if used == 0 or used > upto:
                break
            rely(needs, count, covers, waited, len(reliance.operation) + place, mine, one, used, time)
            count += 1
            if not certainly_covers(covers, waited.latest[mine, one], program, reliance, reliance.always[place]):
                break
            place += 1
        credited.always_next[mine, one] = place
    return count


@inner
def need_for_held(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    held: Held,
    mine: int,
    time: int,
) -> int:
    """Credit the waits that may come before the CPU lets go what it holds back; return the number of needs."""
    let_go(held, waited, mine)
    for one in range(len(order.length)):
        upto = work_waited_for(order, waited, mine, one)
        if upto > held_apart(held, one) and waited.stays[mine, one] < upto:
            waited.stays[mine, one] = rely(needs, count, covers, waited, NEED_ORDER, mine, one, upto, time)
            count += 1
    return count


@inner
def need_for_use(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    credited: Credited,
    program: Program,
    reliance: Reliance,
    row: int,
    needs_of: int,
    time: int,
) -> int:
    """Credit the waits that a use of what an operation did relies on; return the number of needs.

    If the accessing thread certainly comes after a wait that certainly covers the work, that is enough. If not, it
    comes after some wait of some thread, and so after all that this thread waited for before: its first wait that
    certainly covers the work is enough, whichever it is.
    """
    one = program.stream[reliance.operation[row]]
    used = order.position[reliance.operation[row]]
    accessor, slot = reliance.accessor[row], reliance.slot[row]
    if used == 0 or (accessor >= 0 and credited.satisfied[slot, accessor]):
        return count
    cover, thread = certain_cover(covers, waited, program, reliance, row, one, used)
    if cover >= 0:
        credited.satisfied[slot, accessor] = True
        if needs_of == OF_USES:
            note_need(needs, count, covers, cover, row, thread, one, used, time)
            if not reliance.own_source[row]:
                stay(waited, covers, cover, thread)
            return count + 1
    elif needs_of == OF_OTHERS:
        count = rely_on_any(needs, count, covers, waited, credited, program, reliance, row, one, used, time)
    return count


@inner
def rely_on_any(
    needs: Integers,
    count: int,
    covers: Integers,
    waited: Waited,
    credited: Credited,
    program: Program,
    reliance: Reliance,
    row: int,
    one: int,
    used: int,
    time: int,
) -> int:
    """Credit each thread's waits that a use may come after, up to the first that certainly covers what is used.

    Returns the number of needs. Only if there is no other wait is it known to be the one that the use comes after.
    """
    slot, several, first = reliance.slot[row], 0, count
    for thread in range(len(waited.most)):
        if waited.most[thread, one] < used:
            continue
        cover = first_cover(covers, waited, thread, one, used)
        several += 1 if cover == last_cover(covers, waited, thread, one, used) else 2
        place = len(waited.most) + thread
        if certainly_covers(covers, cover, program, reliance, reliance.operation[row]):
            if not credited.satisfied[slot, place]:
                credited.satisfied[slot, place] = True
                note_need(needs, count, covers, cover, row, thread, one, used, time)
                count += 1
        else:
            count = rely_on_all(needs, count, covers, waited, program, reliance, row, thread, one, used, time)
    if several > 1:
        needs[first:count, USE] = NEED_HANDOVER
    return count


@inner
def rely_on_all(
    needs: Integers,
    count: int,
    covers: Integers,
    waited: Waited,
    program: Program,
    reliance: Reliance,
    row: int,
    thread: int,
    one: int,
    used: int,
    time: int,
) -> int:
    """Credit a thread's waits that cover what is used, up to the first that certainly does; return the number of needs.

    Those that were credited for what is used by others are left out.
    """
    operation, first = reliance.operation[row], count
    latest, high = waited.latest[thread, one], -1
    if waited.handed[thread, one] <= used:
        high = waited.handed_high[thread, one]
    low, cover, all_credited = latest, latest, True
    while cover >= 0 and covers[cover, SYNCHRONIZATION] > operation:
        low = cover
        if cover == high:
            low = cover = waited.handed_low[thread, one]
        elif covers[cover, COVERED] >= used:
            if certainly_covers(covers, cover, program, reliance, operation):
                count, all_credited = first, False
            note_need(needs, count, covers, cover, row, thread, one, used, time)
            count += 1
        cover = covers[cover, PREVIOUS]
    if all_credited:
        waited.handed_high[thread, one], waited.handed_low[thread, one] = latest, low
        waited.handed[thread, one] = used
    return count


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
    for thread in range(len(waited.most)):
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


@inner
def need_for_clock(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    credited: Credited,
    reliance: Reliance,
    row: int,
    time: int,
) -> int:
    """Credit the waits between two reads of a clock; return the number of needs."""
    mine, comparison, clock = reliance.operation[row], reliance.comparison[row], credited.clock
    threads = len(waited.most)
    at = mine if comparison == MAYBE_COMPARED else threads + mine
    for one in range(len(order.length)):
        known = clock[at, one]
        for number in range(threads):
            upto = work_waited_for(order, waited, number, one)
            if upto <= known:
                continue
            clock[mine, one] = max(clock[mine, one], upto)
            clock[at, one] = max(clock[at, one], upto)
            if comparison == NOT_COMPARED or waited.stays[number, one] >= upto:
                continue
            # Whether one thread's read is ordered after another's wait is unknown.
            certain = comparison == COMPARED and number == mine
            need = NEED_TIMER if certain else NEED_MAYBE_TIMER
            kept = rely(needs, count, covers, waited, need, number, one, upto, time)
            if certain:
                waited.stays[number, one] = kept
            count += 1
    return count


@inlined
def nothing_waited_for(threads: int, streams: int) -> Waited:
    """Return what is known before any wait."""
    return Waited(
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.full(threads, -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.full((threads, streams), -1, np.int64),
        np.zeros((threads, streams), np.int64),
    )


@inlined
def unordered(program: Program) -> Order:
    """Return the state before the first operation."""
    streams = len(program.stream_kind)
    events = max(program.events, 1)
    before_stream = np.zeros(streams + 1, np.int64)
    for row in range(len(program.action)):
        action = program.action[row]
        if action in (WORK, RECORD, WAIT_EVENT, HOLD):
            before_stream[program.stream[row] + 1] += 1
    for one in range(streams):
        before_stream[one + 1] += before_stream[one] + 1
    return Order(
        np.zeros(len(program.thread), np.int64),
        np.zeros(streams, np.int64),
        np.zeros((streams, streams), np.int64),
        np.zeros(streams, np.int64),
        np.zeros(streams, np.int64),
        np.full(streams, -1, np.int64),
        np.zeros((events, streams), np.int64),
        np.full(events, -1, np.int64),
        np.zeros(events, np.bool_),
        np.zeros(before_stream[streams] + 1, np.int64),
        before_stream,
    )


@inner
def join(known: Integers, row: int, others: Integers, other: int) -> None:
    """Extend one row of a table of vectors by what another row knows."""
    for one in range(known.shape[1]):
        known[row, one] = max(known[row, one], others[other, one])


@inner
def order_on_gpu(order: Order, program: Program, row: int) -> None:
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
                join(order.behind, own, order.behind, other)
    elif program.stream_kind[own] == BLOCKING:
        legacy = program.legacy_of[context]
        if legacy >= 0 and order.joined[own] != order.version[legacy]:
            order.joined[own] = order.version[legacy]
            join(order.behind, own, order.behind, legacy)
    event = program.event[row]
    if program.action[row] == WAIT_EVENT and event >= 0 and order.was_recorded[event]:
        join(order.behind, own, order.recorded, event)


@inner
def put_on_stream(order: Order, waited: Waited, program: Program, row: int) -> None:
    """Number the operation in its stream; a record keeps what it comes after."""
    own = program.stream[row]
    waited.enqueued_at[program.thread[row]] = program.start[row]
    order.length[own] += 1
    order.position[row] = order.length[own]
    place = order.before_stream[own] + order.length[own]
    works = program.action[row] in (WORK, HOLD)
    order.last_work[place] = order.length[own] if works else order.last_work[place - 1]
    order.behind[own, own] = order.length[own]
    order.version[own] += 1
    event = program.event[row]
    if program.action[row] == RECORD and event >= 0:
        order.was_recorded[event] = True
        order.recorder[event] = row
        for one in range(len(order.length)):
            order.recorded[event, one] = order.behind[own, one]


@inner
def begin_wait(covering: Integers, order: Order, program: Program, row: int) -> None:
    """Note up to which numbers the work of each stream will be done when a wait ends."""
    scope, own, event = program.scope[row], program.stream[row], program.event[row]
    mine, streams = program.thread[row], len(order.length)
    for one in range(streams):
        covering[mine, one] = 0
    if scope == SCOPE_CONTEXT:
        for one in range(streams):
            if program.stream_context[one] == program.context[row]:
                join(covering, mine, order.behind, one)
    elif scope == SCOPE_STREAM:
        join(covering, mine, order.behind, own)
        if program.stream_kind[own] == LEGACY:
            for other in range(streams):
                if (
                    program.stream_kind[other] == BLOCKING
                    and program.stream_context[other] == program.stream_context[own]
                ):
                    join(covering, mine, order.behind, other)
    elif scope == SCOPE_EVENT and event >= 0 and order.was_recorded[event]:
        join(covering, mine, order.recorded, event)


@inner
def note_certainty(waited: Waited, order: Order, program: Program, reliance: Reliance, row: int) -> None:
    """Note what the wait that begins certainly covers of each stream."""
    scope, own, event, mine = program.scope[row], program.stream[row], program.event[row], program.thread[row]
    knowledge = reliance.knowledge_at_start[row]
    alone = True
    for thread in range(program.threads):
        known = -1
        if knowledge >= 0 and thread < reliance.known.shape[1]:
            known = max(known, reliance.known[knowledge, thread])
        if thread != mine and waited.enqueued_at[thread] > known:
            alone = False
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
        waited.certain[mine, one] = ALL_WORK if alone else OWN_WORK if direct else NO_WORK


@inner
def certainly_covers(covers: Integers, cover: int, program: Program, reliance: Reliance, operation: int) -> bool:
    """Return whether a cover's wait covers an operation's work however threads are scheduled."""
    wait, certain = covers[cover, SYNCHRONIZATION], covers[cover, CERTAIN]
    thread = program.thread[operation]
    if certain != OWN_WORK or thread == program.thread[wait]:
        return bool(certain != NO_WORK)
    knowledge = reliance.knowledge_at_start[wait]
    if knowledge < 0 or thread >= reliance.known.shape[1]:
        return False
    return bool(reliance.known[knowledge, thread] >= program.start[operation])


@inner
def work_waited_for(order: Order, waited: Waited, thread: int, stream: int) -> int:
    """Return the last real work of a stream that a thread has waited for."""
    return int(order.last_work[order.before_stream[stream] + waited.most[thread, stream]])


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


@inner
def push(top: Integers, covers: Integers, cover: int, thread: int) -> None:
    """Push a cover on its thread's stack; earlier ones that cover no more are dropped, because they are now useless."""
    stream = covers[cover, COVERED_STREAM]
    below = top[thread, stream]
    while below >= 0 and covers[below, COVERED] <= covers[cover, COVERED]:
        below = covers[below, BELOW]
    covers[cover, BELOW] = below
    top[thread, stream] = cover


@inner
def rely(
    needs: Integers,
    count: int,
    covers: Integers,
    waited: Waited,
    use: int,
    thread: int,
    stream: int,
    upto: int,
    time: int,
) -> int:
    """Credit a stream's work up to a number to the thread's last wait that covers it, which must exist.

    Fills in row `count` of the needs. Returns up to which number that wait covers the stream's work.
    """
    cover = last_cover(covers, waited, thread, stream, upto)
    note_need(needs, count, covers, cover, use, thread, stream, upto, time)
    return int(covers[cover, COVERED])


@inner
def note_need(
    needs: Integers,
    count: int,
    covers: Integers,
    cover: int,
    use: int,
    thread: int,
    stream: int,
    used: int,
    time: int,
) -> None:
    """Fill in row `count` of the needs: a use relies on the wait of a cover for a stream's work up to a number."""
    needs[count, USE] = use
    needs[count, RELIED_ON] = covers[cover, SYNCHRONIZATION]
    needs[count, WAITED_BY] = thread
    needs[count, RELIED_AT] = time
    needs[count, USED_STREAM] = stream
    needs[count, USED] = used


@inner
def rely_on_others(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    reliance: Reliance,
    need: int,
    row: int,
    thread: int,
    stream: int,
    over: int,
    first: int,
    time: int,
) -> int:
    """Credit what an operation relies on beyond a stream's work `over` to the waits of another thread, `thread`.

    The operation may come after any of them. So each counts that was that thread's first one for some work, from the
    cover `first` on; of those that the operation is known to come after, the last one is enough.

    Returns the number of needs.
    """
    knowledge = reliance.knowledge_at_start[row]
    known = reliance.known[knowledge, thread] if knowledge >= 0 and thread < reliance.known.shape[1] else -1
    place = order.before_stream[stream]
    cover = waited.latest[thread, stream]
    while cover >= first:
        upto = order.last_work[place + covers[cover, COVERED]]
        certain = covers[cover, ENDED_AT] <= known
        if upto > over and (certain or upto > covers[cover, BEFORE]):
            note_need(needs, count, covers, cover, need, thread, stream, upto, time)
            count += 1
            if certain:
                over = upto
        cover = covers[cover, PREVIOUS]
    return count


@inlined
def larger(table: Integers, rows: int) -> Integers:
    """Return a copy of the table with room for more than this many rows."""
    copy = np.empty((2 * rows, table.shape[1]), np.int64)
    copy[: len(table)] = table
    return copy


def keepers(
    needs: Integers, covers: Integers, end: Integers, thread: Integers, required: Integers, threads: int, streams: int
) -> Integers:
    """For each synchronization that is not required, return the one that must stay because something relies on it
    later.

    `needs` is in order of time and `covers` in order of the synchronizations' ends, both as returned by `sweep`.
    Returns -1 if nothing that a synchronization covers is relied on later.
    """
    keep = np.full(len(end), -1, np.int64)
    top = np.full((threads, streams), -1, np.int64)
    below = np.empty(len(needs), np.int64)
    need = len(needs) - 1
    for index in range(len(covers) - 1, -1, -1):
        row, one, upto = covers[index, SYNCHRONIZATION], covers[index, COVERED_STREAM], covers[index, COVERED]
        if required[row]:
            continue
        while need >= 0 and needs[need, RELIED_AT] >= end[row]:
            number, place = needs[need, WAITED_BY], needs[need, USED_STREAM]
            node = top[number, place]
            while node >= 0 and needs[node, USED] >= needs[need, USED]:
                node = below[node]
            below[need] = node
            top[number, place] = need
            need -= 1
        node = top[thread[row], one]
        # What an earlier synchronization that stays protects is covered by a later one that nothing relies on.
        while node >= 0 and (needs[node, USED] > upto or end[needs[node, RELIED_ON]] < end[row]):
            node = below[node]
        if node >= 0 and needs[node, RELIED_ON] != row and (keep[row] < 0 or needs[node, RELIED_ON] < keep[row]):
            keep[row] = needs[node, RELIED_ON]
    return keep
