"""When threads that wait for others to arrive continue, where a profiler recorded that (`ffm.model.encounter_order`).

Others may arrive after a waiting row has begun. So the end of its wait is found only at the next row of its thread,
when all those that it waits for have been visited.
"""

from __future__ import annotations

from ffm.model.compiled import inner
from ffm.model.estimators.simulation.state import Change, Columns, State, Trace
from ffm.model.numbers import WAIT_THREAD
from ffm.model.thread_relations_kernels import OrderedEncounters
from ffm.model.visits import row_at, thread_of


@inner
def follow(state: State, trace: Trace, met: OrderedEncounters, entry: int, place: int, begun: int) -> int:
    """Return when the row at a place begins; its first entry, if it has any, is this one. It keeps its distance to what
    it follows, but does not begin before the thread's previous row is over. If it follows nothing, it begins at
    `begun`.
    """
    row = row_at(trace.order, place)
    while entry < len(met.place) and met.place[entry] == place:
        if met.after[entry] >= 0:
            begun = int(state.came[met.number[entry]] + met.after[entry])
            if row > 0 and trace.thread[row - 1] == trace.thread[row]:
                over = trace.start[row - 1] + trace.duration[row - 1]
                begun = max(begun, int(over - state.early[thread_of(trace, row)]))
        entry += 1
    return begun


@inner
def come(
    state: State, trace: Trace, met: OrderedEncounters, change: Change, entry: int, place: int, begun: int, now: int
) -> int:
    """Let the row at a place come to its encounters, and wait there; return the next entry.

    A call that disappears does neither. `now` is when it is over if it waits for others as long as before.
    """
    row = row_at(trace.order, place)
    thread = thread_of(trace, row)
    first = entry
    waits = False
    while entry < len(met.place) and met.place[entry] == place:
        if met.comes[entry] and not change.no_work:
            state.came[met.number[entry]] = max(state.came[met.number[entry]], begun)
        waits |= met.waits[entry] and not change.no_wait
        entry += 1
    if waits:
        state.waiting.entry[thread] = first
        state.waiting.own[thread] = change.own
        state.waiting.alone[thread] = now - (trace.wait[row] if trace.action[row] == WAIT_THREAD else 0)
        state.waiting.begun[thread] = begun
    return entry


@inner
def go_on_together(state: State, trace: Trace, met: OrderedEncounters, wait: Columns, thread: int) -> None:
    """Let a thread go on whose last row waits for others, now that they have come.

    The row's own wait is written to `wait` unless that is empty.
    """
    entry = state.waiting.entry[thread]
    if entry < 0:
        return
    state.waiting.entry[thread] = -1
    place = met.place[entry]
    row = row_at(trace.order, place)
    own = state.waiting.own[thread]
    over = state.waiting.alone[thread]
    while entry < len(met.place) and met.place[entry] == place:
        if met.waits[entry]:
            over = max(over, state.came[met.number[entry]] + own)
        entry += 1
    state.early[thread] = trace.start[row] + trace.duration[row] - over
    if len(wait) > 0:
        wait[row] = max(over - state.waiting.begun[thread] - own, 0)
