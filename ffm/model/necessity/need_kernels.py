"""Who relies on which synchronization: uses, later work, releases, reads of clocks."""

from __future__ import annotations

from ffm.model.compiled import inner
from ffm.model.necessity.cover_kernels import (
    certain_cover,
    certainly_covers,
    stay,
)
from ffm.model.necessity.order_kernels import (
    certainly_behind,
    held_apart,
    let_go,
    put_surely_behind,
    shares_until,
    work_waited_for,
    work_waited_for_by_any,
)
from ffm.model.necessity.reliance_kernels import note_need, rely, rely_on_any, rely_on_own, rely_on_threads
from ffm.model.necessity.state import (
    COMPARED,
    MAYBE_COMPARED,
    NEED_MAYBE_TIMER,
    NEED_ORDER,
    NEED_RELEASE,
    NEED_TIMER,
    NOT_COMPARED,
    OF_OTHERS,
    OF_USES,
    Credited,
    Held,
    Integers,
    Order,
    Program,
    Reliance,
    Waited,
)


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
    syncs_ended: int,
    cover_count: int,
) -> int:
    """Credit the waits that order what starts after work of other streams; return the number of needs.

    Where it has no memory in common with the work of another stream, it does not matter what comes first. What its
    thread's own waits certainly cover, it needs no wait of others for. But others that share its stream may come later
    in another run, unless they are known to come before. What its work shares with that of another stream tells only if
    no other thread may change which of it comes first.
    """
    own, mine = program.stream[row], program.thread[row]
    first, alone = credited.covers_at[mine, own], order.alone[own] == mine
    complete = True
    for one in range(len(order.length)):
        if program.apart[own, one]:
            continue
        known = certainly_behind(order, program, reliance, row, own, one)
        told = alone and len(program.memory_first) > 0 and program.in_order[own, one]
        if told and shares_until(order, program, row, one) <= known:
            complete = complete and work_waited_for_by_any(order, waited, one) <= known
            continue
        since = first
        if told:
            since = max(first, credited.covers_between[own, one])
            credited.covers_between[own, one] = cover_count
        own_until, count = rely_on_own(needs, count, covers, order, waited, NEED_ORDER, mine, one, known, time)
        over, count = rely_on_threads(
            needs, count, covers, order, waited, program, reliance, NEED_ORDER, row, mine, one, own_until,
            own_until if alone else known, since, time,
        )  # fmt: skip
        put_surely_behind(order, program, row, one, over)
        for number in program.callers:
            order.behind[own, one] = max(order.behind[own, one], work_waited_for(order, waited, number, one))
    if complete:  # later work of the stream needs no more before another wait ends
        credited.ordered_at[mine, own], credited.covers_at[mine, own] = syncs_ended, cover_count
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
    time: int,
) -> int:
    """Credit the waits since its thread's last release that a release comes after; return the number of needs."""
    mine = program.thread[row]
    first, released = credited.covers_at_release[mine], credited.released
    for one in range(len(order.length)):
        own_until, count = rely_on_own(
            needs, count, covers, order, waited, NEED_RELEASE, mine, one, released[mine, one], time
        )
        released[mine, one], count = rely_on_threads(
            needs, count, covers, order, waited, program, reliance, NEED_RELEASE, row, mine, one, own_until, own_until,
            first, time,
        )  # fmt: skip
    return count


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
    """Credit the waits that may come before the CPU releases what it holds back; return the number of needs."""
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
def need_for_clock(
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
    """Credit the waits between two reads of a clock; return the number of needs."""
    mine, comparison, clock = reliance.operation[row], reliance.comparison[row], credited.clock
    at = mine if comparison == MAYBE_COMPARED else program.threads + mine
    for one in range(len(order.length)):
        known = clock[at, one]
        for number in program.callers:
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
