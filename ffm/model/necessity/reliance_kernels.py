"""Which wait is credited with work that something relies on, and the table of needs that this fills."""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined, inner
from ffm.model.necessity.cover_kernels import (
    certainly_covers,
    first_cover,
    last_cover,
    stay,
)
from ffm.model.necessity.order_kernels import work_waited_for
from ffm.model.necessity.state import (
    COVERED,
    ENDED_AT,
    NEED_HANDOVER,
    PREVIOUS,
    RELIED_AT,
    RELIED_ON,
    SURELY,
    SURELY_BEFORE,
    SYNCHRONIZATION,
    USE,
    USED,
    USED_STREAM,
    WAITED_BY,
    Credited,
    Integers,
    Order,
    Program,
    Reliance,
    Waited,
)


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
    for thread in program.callers:
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
def rely_on_own(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    need: int,
    mine: int,
    stream: int,
    known: int,
    time: int,
) -> tuple[int, int]:
    """Credit what a thread relies on beyond a stream's work `known` to its last wait that certainly covers it, unless
    one that stays does.

    Returns up to which number the thread's waits certainly cover the work, at least `known`, and the number of needs.
    """
    upto = order.last_work[order.before_stream[stream] + waited.surely[mine, stream]]
    if upto <= known:
        return known, count
    stayer = waited.stayer[mine, stream]
    if waited.stays[mine, stream] < upto or covers[stayer, SURELY] < upto:
        cover = last_cover(covers, waited, mine, stream, upto)
        if covers[cover, SURELY] < upto:
            cover = waited.surely_by[mine, stream]
        note_need(needs, count, covers, cover, need, mine, stream, upto, time)
        stay(waited, covers, cover, mine)
        count += 1
    return upto, count


@inner
def rely_on_threads(
    needs: Integers,
    count: int,
    covers: Integers,
    order: Order,
    waited: Waited,
    program: Program,
    reliance: Reliance,
    need: int,
    row: int,
    mine: int,
    stream: int,
    own_until: int,
    known: int,
    first: int,
    time: int,
) -> tuple[int, int]:
    """Credit what an operation of the thread `mine` relies on beyond a stream's work `known`, or of its own waits
    beyond `own_until`, to the waits of all threads from the cover `first` on.

    The operation comes after those of which that is known however threads are scheduled. What they certainly cover
    needs no other wait. What is left, any wait may cover for the operation, also a late one of its own.

    Returns up to which number the operation certainly comes after the work, at least `own_until`, and the number of
    needs.
    """
    sure = known
    for number in program.callers:
        if number != mine and work_waited_for(order, waited, number, stream) > sure:
            sure, count = rely_on_others(
                needs, count, covers, order, waited, reliance, need, row, number, True, stream, sure, first, time
            )
    for number in program.callers:
        over = max(sure, own_until) if number == mine else sure
        if work_waited_for(order, waited, number, stream) > over:
            _, count = rely_on_others(
                needs, count, covers, order, waited, reliance, need, row, number, False, stream, over, first, time
            )
    return max(sure, own_until), count


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
    certain: bool,
    stream: int,
    over: int,
    first: int,
    time: int,
) -> tuple[int, int]:
    """Credit what an operation relies on beyond a stream's work `over` to a thread's waits, from the cover `first` on.

    If `certain`, to those that certainly cover it and that the operation is known to come after. The last is enough,
    and none is credited where one that stays anyway covers as much. Otherwise to all up to the first that certainly
    covers it.

    Returns up to which number the operation certainly comes after the work, at least `over`, and the number of needs.
    """
    knowledge = reliance.knowledge_at_start[row]
    known = reliance.known[knowledge, thread] if knowledge >= 0 and thread < reliance.known.shape[1] else -1
    place = order.before_stream[stream]
    cover = waited.latest[thread, stream]
    while cover >= first:
        upto = order.last_work[place + covers[cover, COVERED]]
        counts = upto > covers[cover, SURELY_BEFORE]
        if certain:
            counts = covers[cover, ENDED_AT] <= known and covers[cover, SURELY] >= upto
        if upto > over and counts:
            stayer = waited.stayer[thread, stream]
            kept = (
                certain
                and waited.stays[thread, stream] >= upto
                and covers[stayer, SURELY] >= upto
                and covers[stayer, ENDED_AT] <= known
            )
            if not kept:
                note_need(needs, count, covers, cover, need, thread, stream, upto, time)
                count += 1
            if certain:
                over = upto
                if not kept:
                    stay(waited, covers, cover, thread)
        cover = covers[cover, PREVIOUS]
    return over, count


@inlined
def larger(table: Integers, rows: int) -> Integers:
    """Return a copy of the table with room for more than this many rows."""
    copy = np.empty((2 * rows, table.shape[1]), np.int64)
    copy[: len(table)] = table
    return copy
