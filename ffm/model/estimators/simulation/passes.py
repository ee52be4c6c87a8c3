"""The pass that simulates a run again (`ffm.model.estimators.replay`), in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time.
"""

from __future__ import annotations

from ffm.model.compiled import inner
from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.estimators.simulation.encounters import come, follow, go_on_together
from ffm.model.estimators.simulation.state import Change, Columns, Fix, Gpu, Manner, Probes, State, Trace
from ffm.model.estimators.simulation.streams import enqueue, let_gpu_be_early, order_by_event
from ffm.model.estimators.simulation.threads import (
    begin,
    go_on,
    let_go_on,
    meet_threads,
    run_in_turn,
    starve,
    wait_at_the_end,
)
from ffm.model.estimators.simulation.waits import wait_for_gpu
from ffm.model.gpu_times.call_times import behind_wait
from ffm.model.numbers import (
    ALLOCATION,
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    FREE,
    LOAD,
    LOAD_AND_ENQUEUE,
    MISPLACED_SYNCHRONIZATION,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    SYNCHRONIZATION,
    UNNECESSARY_SYNCHRONIZATION,
    UNNECESSARY_TRANSFER,
    WAIT_AND_ENQUEUE,
    WAIT_EVENT,
)
from ffm.model.thread_relations_kernels import Family
from ffm.model.visits import is_lone, process_of, row_at, thread_of

COPIED_BYTES_A_NANOSECOND = 25
"""Assumed to be more than one core copies in ordinary memory. A larger number would let at most 2.6 us more overlap,
for an upload of 64 KiB.
"""


def replay_group(
    trace: Trace, times: Gpu, family: Family, fix: Fix, manner: Manner, probes: Probes, state: State, until: int
) -> None:
    """Simulate the run with one group's problems fixed, up to a place in the order of rows.

    `state` is that before the first row, or after a part of a run of one thread; `fix.members` may then lack those
    before. At the end, `state.early` is the nanoseconds by which each thread ends earlier. The rules are those of
    `ffm.model.estimators.replay`.
    """
    visit_rows(trace, times, family, fix, manner, probes, state, until)
    if until == len(trace.start):
        for thread in range(len(state.early)):
            go_on_together(state, trace, family.encounters, probes.wait, thread)
        wait_at_the_end(state)


@inner
def visit_rows(
    trace: Trace, times: Gpu, family: Family, fix: Fix, manner: Manner, probes: Probes, state: State, until: int
) -> None:
    """Simulate the rows from where the last part of the run ended up to a place in the order of rows."""
    order, members, locks, encounters = trace.order, fix.members, family.locks, family.encounters
    probed, starts, waits = probes.time, probes.start, probes.wait
    timed, kept, related, lone = len(probed) > 0, len(starts) > 0, trace.related, is_lone(trace)
    met = not lone and encounters.total > 0
    early, reached, rows = state.early, state.reached, len(trace.start)
    entry = member = child = 0  # the next of the entries of encounters, of the changed rows, of the joined threads
    wait = free = 0  # the next of the waits for other threads, by where they end and by where these let go
    place, fresh = int(reached[0]), reached[1] != 0
    if fresh:
        member = next_member(members, member, place)
        place = members[member] if member < len(members) else rows
    while place < until:
        row = row_at(order, place)
        thread = thread_of(trace, row)
        if met:
            go_on_together(state, trace, encounters, waits, thread)
        if related:
            run_in_turn(state, trace, row)
        if related or (not lone and family.joined[thread] >= 0):
            child = meet_threads(state, trace, family, manner.strict, place, child)
        less = int(probed[row]) if timed else 0
        if related:
            wait = go_on(state, trace, locks, place, wait, less)
        elif timed:
            early[thread] += less
        if fresh:
            let_gpu_be_early(state, trace, times, row)
        member = next_member(members, member, place)
        changed = member < len(members) and members[member] == place
        state.touched[thread] |= changed
        change = change_of(trace, fix, manner, row, changed)
        begun = begin(state, trace, times, row)
        if met:
            begun = follow(state, trace, encounters, entry, place, begun)
        now = call(state, trace, times, fix, manner, change, row, begun)
        early[thread] = trace.start[row] + trace.duration[row] - now
        if met:
            entry = come(state, trace, encounters, change, entry, place, begun, now)
        if not lone:
            free = let_go_on(state, trace, locks, probed, place, free)
        if kept:
            starts[row] = begun
            waits[row] = max(now - begun - change.own, 0)
        place += 1
        fresh = manner.jump and runs_as_measured(state, trace, times, row, place)
        if fresh:
            member = next_member(members, member, place)
            place = max(place, members[member]) if member < len(members) else rows
    reached[0], reached[1] = min(place, until), fresh


@inner
def next_member(members: Columns, member: int, place: int) -> int:
    """Return the first member, from this one on, that is not before a place."""
    while member < len(members) and members[member] < place:
        member += 1
    return member


@inner
def change_of(trace: Trace, fix: Fix, manner: Manner, row: int, changed: bool) -> Change:
    """Return what the fix changes of a call, if it changes it."""
    own = int(trace.duration[row] - trace.wait[row])
    if not changed:
        return Change(own, behind_wait(trace, row), False, False, False)
    kind, flags = trace.kind[row], trace.problem[row]
    no_wait = False
    no_call = False
    no_work = False
    later = False
    if kind == ALLOCATION:
        no_call = True
        no_wait = True
    elif fix.fixes and fix.needed:
        no_wait = True
        no_call = kind == SYNCHRONIZATION
    elif fix.fixes:
        no_wait = (flags & UNNECESSARY_SYNCHRONIZATION) != 0
        later = (flags & MISPLACED_SYNCHRONIZATION) != 0 and not no_wait
        no_work = (flags & UNNECESSARY_TRANSFER) != 0
        no_call = no_work or (no_wait and kind == SYNCHRONIZATION)
        if kind == FREE and no_wait and trace.partner[row] >= 0:
            no_call = True
    if no_wait and trace.action[row] == SET_AND_WAIT:
        own = int(trace.copied[row]) // manner.set_bytes_a_nanosecond
        no_work = True
    elif no_call:
        own = 0
    behind = min(behind_wait(trace, row), own)
    if (no_wait or later) and not fix.copies:
        own -= behind
        behind = 0
    return Change(own, behind, no_wait, no_work, later)


@inner
def call(state: State, trace: Trace, times: Gpu, fix: Fix, manner: Manner, change: Change, row: int, begun: int) -> int:
    """Simulate a call; return when it is over."""
    does = trace.action[row] if trace.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
    now = begun
    if does in (LOAD, LOAD_AND_ENQUEUE) and manner.loads_wait:
        now = begin_of_load(state, trace, times, row, now)
    if does in (ENQUEUE, ENQUEUE_AND_WAIT, LOAD_AND_ENQUEUE):
        now += change.own - change.behind
        if not change.no_work:
            enqueue(state, trace, times, manner, row, now)
    if ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
        now = wait_for_gpu(state, trace, times, fix, manner, change, row, now)
        now += change.behind if does == ENQUEUE_AND_WAIT else change.own
        if does == WAIT_AND_ENQUEUE and trace.wait[row] <= manner.uploads_overlap:
            now -= min(overlapped(trace, change, row), now - change.own - begun)
    else:
        now += change.behind if does in (ENQUEUE, LOAD_AND_ENQUEUE) else change.own
        if not change.no_wait:
            now += int(trace.wait[row])
        if does in (RECORD_EVENT, STREAM_WAIT_EVENT):
            order_by_event(state, trace, row)
    if does == WAIT_AND_ENQUEUE and not change.no_work:
        enqueue(state, trace, times, manner, row, now)
    starve(state, trace, times, row)
    return now


@inner
def overlapped(trace: Trace, change: Change, row: int) -> int:
    """Return how much of an upload's own time may not be for copying into the driver's buffer. Nearly all of it is, if
    these are more than a few bytes.
    """
    copied = int(trace.copied[row])
    return max(change.own - copied // COPIED_BYTES_A_NANOSECOND, 0) if copied < WORTH_TIMING_BYTES else 0


@inner
def begin_of_load(state: State, trace: Trace, times: Gpu, row: int, begun: int) -> int:
    """Return when code is loaded that could be from `begun` on: then as much of the GPU's work is left as there was."""
    return int(max(begun, state.latest[process_of(trace, row)] - max(int(times.left[row]), 0)))


@inner
def runs_as_measured(state: State, trace: Trace, times: Gpu, row: int, place: int) -> bool:
    """Return whether the process, after this row, runs as measured from a place on, only earlier."""
    thread = thread_of(trace, row)
    process, early = process_of(trace, row), state.early[thread]
    if state.moved_until[thread] >= 0 or place >= len(trace.start):
        return False
    following = row_at(trace.order, place)
    if process_of(trace, following) != process:
        return True
    # The GPU is early by as much, or as idle as before.
    start, left = trace.start[following], int(times.left[following])
    idle = state.latest[process] + times.pause <= start - early and left + times.pause <= 0
    alike = idle or start + left - state.latest[process] == early
    return bool(alike and state.removed.over[thread] <= start - early)
