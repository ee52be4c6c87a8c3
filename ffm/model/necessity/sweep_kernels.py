"""The passes over the operations of a process that decide who relies on which synchronization.

They are written in the subset of Python that Numba compiles; `ffm.model.compiled.run` chooses.
"""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined
from ffm.model.necessity.cover_kernels import end_wait, knows_all_work, note_certainty, nothing_waited_for
from ffm.model.necessity.need_kernels import (
    need_for_always,
    need_for_clock,
    need_for_held,
    need_for_order,
    need_for_release,
    need_for_use,
)
from ffm.model.necessity.order_kernels import (
    begin_wait,
    hold_back,
    order_on_gpu,
    put_on_stream,
    unordered,
)
from ffm.model.necessity.reliance_kernels import larger
from ffm.model.necessity.state import (
    ACCESSED,
    CLOCK_READ,
    COLUMNS_OF_COVERS,
    COLUMNS_OF_NEEDS,
    COVERED,
    COVERED_STREAM,
    ENDED,
    FIRST_ROOM,
    HOLD,
    NOTHING,
    OF_CLOCKS,
    OF_ORDER,
    OF_OTHERS,
    OF_USES,
    RECORD,
    RELEASE,
    RELIED_ON,
    SCOPE_NONE,
    STARTED,
    SYNCHRONIZATION,
    USED,
    USED_STREAM,
    WAITED_BY,
    WORK,
    Credited,
    Events,
    Held,
    Integers,
    Order,
    Program,
    Reliance,
    Waited,
)


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
    covers = np.empty((FIRST_ROOM + np.sum(event.kind == ENDED), COLUMNS_OF_COVERS), np.int64)
    count = cover_count = syncs_ended = 0
    # The most needs of one event: every thread's cover of every stream, every cover once more, and what is always used.
    most = program.threads * streams + len(reliance.always)

    for index in range(len(event.kind)):
        kind, row, time = event.kind[index], event.row[index], event.time[index]
        if len(needs) < count + most + cover_count:
            needs = larger(needs, count + most + cover_count)
        if len(covers) < cover_count + streams:
            covers = larger(covers, cover_count + streams)

        if kind == STARTED:
            action, own, mine = program.action[row], program.stream[row], program.thread[row]
            if action == RELEASE and needs_of == OF_ORDER:
                count = need_for_release(needs, count, covers, order, waited, credited, program, reliance, row, time)
                credited.covers_at_release[mine] = cover_count
            elif action not in (NOTHING, RELEASE):
                order_on_gpu(order, program, reliance, row)
                if action in (WORK, HOLD) and needs_of == OF_ORDER and credited.ordered_at[mine, own] != syncs_ended:
                    count = need_for_order(
                        needs, count, covers, order, waited, credited, program, reliance, row, time, syncs_ended,
                        cover_count,
                    )  # fmt: skip
                put_on_stream(order, waited, program, reliance, row)
                if action == RECORD and program.event[row] >= 0:
                    order.recorded_alone[program.event[row]] = knows_all_work(waited, program, reliance, row)
                elif action == HOLD:
                    hold_back(held, order, own, row)
            if program.scope[row] != SCOPE_NONE:
                begin_wait(waited.covering, order.behind, order.recorded, order, program, row)
                begin_wait(waited.surely_covering, order.surely_behind, order.surely_recorded, order, program, row)
                note_certainty(waited, order, program, reliance, row)
        elif kind == ENDED:
            syncs_ended += 1
            mine = program.thread[row]
            stays = required[row]
            cover_count = end_wait(covers, cover_count, waited, order, program, reliance, row, stays, time)
            if needs_of == OF_OTHERS:
                count = need_for_always(needs, count, covers, order, waited, credited, program, reliance, mine, time)
            elif needs_of == OF_ORDER:
                count = need_for_held(needs, count, covers, order, waited, held, mine, time)
        elif kind == ACCESSED and needs_of in (OF_OTHERS, OF_USES):
            count = need_for_use(needs, count, covers, order, waited, credited, program, reliance, row, needs_of, time)
        elif kind == CLOCK_READ and needs_of == OF_CLOCKS:
            count = need_for_clock(needs, count, covers, order, waited, credited, program, reliance, row, time)

    return needs[:count], covers[:cover_count]


@inlined
def initial_state(program: Program, reliance: Reliance) -> tuple[Order, Waited, Held, Credited]:
    """Return what is known before the first event."""
    threads, streams = program.threads, len(program.stream_kind)
    always_next = np.zeros((threads, streams), np.int64)
    for thread in range(threads):
        always_next[thread, :] = reliance.always_start[:streams]
    credited = Credited(
        np.zeros((threads, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros((streams, streams), np.int64),
        np.zeros((threads, streams), np.int64),
        np.zeros(threads, np.int64),
        np.zeros((2 * threads, streams), np.int64),
        always_next,
        np.zeros((reliance.slots, 2 * threads), np.bool_),
    )
    held = Held(np.zeros(streams, np.int64), np.zeros(streams, np.int64), np.zeros((streams, streams), np.int64))
    return unordered(program), nothing_waited_for(threads, streams), held, credited


def keepers(
    needs: Integers, covers: Integers, end: Integers, thread: Integers, required: Integers, threads: int, streams: int
) -> Integers:
    """For each synchronization that is not required, return one that must stay because something relies on it later,
    for work that both cover; -1 if there is none.

    `needs` and `covers` are those of `sweep`. The needs are in order of the ends of what they rely on, the covers in
    order of the synchronizations' ends.
    """
    keep = np.full(len(end), -1, np.int64)
    top = np.full((threads, streams), -1, np.int64)
    below = np.empty(len(needs), np.int64)
    need = len(needs) - 1
    for index in range(len(covers) - 1, -1, -1):
        row, one, upto = covers[index, SYNCHRONIZATION], covers[index, COVERED_STREAM], covers[index, COVERED]
        if required[row]:
            continue
        # What an earlier synchronization that stays protects is covered by a later one that nothing relies on. So needs
        # appear when the one that they rely on does: from then on, they count for all that ended before it, and one of
        # less work stands for those of more.
        while need >= 0 and end[needs[need, RELIED_ON]] >= end[row]:
            number, place = needs[need, WAITED_BY], needs[need, USED_STREAM]
            node = top[number, place]
            while node >= 0 and needs[node, USED] >= needs[need, USED]:
                node = below[node]
            below[need] = node
            top[number, place] = need
            need -= 1
        node = top[thread[row], one]
        while node >= 0 and needs[node, USED] > upto:
            node = below[node]
        if node >= 0 and needs[node, RELIED_ON] != row and (keep[row] < 0 or needs[node, RELIED_ON] < keep[row]):
            keep[row] = needs[node, RELIED_ON]
    return keep
