"""The pass that simulates a run again (`ffm.model.estimators.replay`), in the part of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner, zero
from ffm.model.numbers import (
    ALLOCATION,
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    FREE,
    MISPLACED_SYNCHRONIZATION,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    SYNCHRONIZATION,
    UNNECESSARY_SYNCHRONIZATION,
    UNNECESSARY_TRANSFER,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
)
from ffm.model.thread_relations_kernels import Family

Columns = NDArray[Any]

EVERYTHING = -1
"""What a wait for all streams of a process waits for; `DEVICE` less a device's number, for all streams of that. Other
waits have a stream's number: that of an event is the one that it was recorded on.
"""
DEVICE = -2


class Trace(NamedTuple):
    """The run as measured: the columns of `Timeline` and `DeviceWork` with the same names."""

    order: Columns
    """The rows by process, then by start."""
    thread: Columns
    start: Columns
    duration: Columns
    wait: Columns
    kind: Columns
    problem: Columns
    first_use: Columns
    site: Columns
    action: Columns
    stream: Columns
    event: Columns
    partner: Columns
    copied: Columns
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    stream_process: Columns
    gpu_of_stream: Columns
    """The columns of `ffm.model.device.Gpus`."""
    first_gpu: Columns
    events: int


class Gpu(NamedTuple):
    """One timeline of the GPU; the columns of `ffm.model.gpu_times.inference.GpuTimes`."""

    gpu: Columns
    ready: Columns
    latency: Columns
    late_from: Columns
    """For each site, the latency from which on a wait of it was late by chance (`ffm.model.estimators.lateness`)."""
    usual: int
    """The usual latency."""
    pause: int
    """Between a stream's work and the next if that is queued."""


class Fix(NamedTuple):
    """What is fixed."""

    members: Columns
    """Positions in `order` of the rows that the fix changes, ascending: those with problems, and the allocations whose
    memory a free leaves to them.
    """
    fixes: bool
    """Whether the rows' problems are fixed; otherwise they only count as changed."""
    needed: bool
    """Whether the rows' waits disappear although they are needed; what follows on other streams then waits for the same
    work.
    """


class Probes(NamedTuple):
    """Time before each row that did not belong to the program and disappears; empty if there is none."""

    time: Columns
    start: Columns
    """Receives each row's own start, and `wait` its own wait."""
    wait: Columns


class Manner(NamedTuple):
    """How the run is simulated."""

    strict: bool
    """A joined thread helps only if all threads joined there end earlier, and no thread follows another."""
    jump: bool
    """Each process has one stream and one thread. Stretches in which the CPU and the GPU are early by the same time are
    skipped, because there the run is as measured. Not used with probes.
    """
    set_bytes_a_nanosecond: int
    """How fast the CPU sets memory that a fix makes it set."""
    waking: int
    """How much of a wait's latency at most is the waking of its thread; during the rest, the GPU was not done yet."""
    recurs: bool
    """A thread that comes to the next wait while a removed one would still last then waits for as long as the latency
    of that was, as if all of it were falling asleep and waking.
    """


class Removed(NamedTuple):
    """Of the last wait that was removed in each process."""

    target: Columns
    """When its work should be over."""
    over: Columns
    """When its work is over."""
    waking: Columns
    """How long it woke."""
    scope: Columns
    """What it waited for."""
    latency: Columns


class State(NamedTuple):
    """What the simulation has come to."""

    early: Columns
    """By how much each thread is early."""
    over: Columns
    """When each stream's work is done."""
    latest: Columns
    """When all work of each process is done."""
    latest_on: Columns
    """When all work of each device is done."""
    legacy_latest: Columns
    """When all work of each process is done that its legacy stream orders."""
    recorded: Columns
    """When the work before each event is done."""
    recorded_on: Columns
    """The stream of that work."""
    ordered: Columns
    """When the work of each process is done for which later work waits on the GPU, as the CPU does not wait for it."""
    removed: Removed
    moved_until: Columns
    """When each thread waits for what moved waits have left to it, or -1; in the time of the run as measured."""
    moved_for: Columns
    """Until when it waits then."""
    touched: Columns
    """Whether the fix changes each thread."""
    ended: Columns
    """When each thread's last call ended in the run as measured."""


class Change(NamedTuple):
    """What the fix changes of a call."""

    own: int
    """How long the call then takes but for its wait."""
    no_wait: bool
    no_work: bool
    later: bool
    """Whether its wait is moved to the first use."""


def replay_group(trace: Trace, times: Gpu, family: Family, fix: Fix, manner: Manner, probes: Probes) -> Columns:
    """Simulate the run with one group's problems fixed; return the nanoseconds by which each thread ends earlier.

    The rules are those of `ffm.model.estimators.replay`.
    """
    order, members = trace.order, fix.members
    timed = len(probes.time) > 0
    related = len(trace.process_of_thread) > len(trace.legacy)
    state = at_the_start(trace)
    if len(members) == 0 and not timed:
        return state.early
    member = child = zero()  # the next of the changed rows, and of the joined threads
    place = members[0] if manner.jump else 0
    fresh = manner.jump
    while place < len(order):
        row = order[place]
        thread = trace.thread[row]
        if related or family.joined[thread] >= 0:
            child = meet_threads(state, trace, family, manner.strict, place, child)
        if timed:
            state.early[thread] += probes.time[row]
        if fresh:
            let_gpu_be_early(state, trace, times, row)
        member = next_member(members, member, place)
        changed = member < len(members) and members[member] == place
        if changed:
            state.touched[thread] = 1
        change = change_of(trace, fix, manner, row, changed)
        begun = int(trace.start[row]) - shift_of(state, trace, row)
        now = call(state, trace, times, fix, manner, change, row, begun)
        state.early[thread] = trace.start[row] + trace.duration[row] - now
        if timed:
            probes.start[row] = begun
            probes.wait[row] = max(now - begun - change.own, 0)
        place += 1
        fresh = False
        if manner.jump and runs_as_measured(state, trace, times, row, place):
            member = next_member(members, member, place)
            if member == len(members):
                break
            place = max(place, members[member])
            fresh = True
    wait_at_the_end(state)
    return state.early


@inlined
def at_the_start(trace: Trace) -> State:
    """Return the state before the first call."""
    threads, streams, processes = len(trace.process_of_thread), len(trace.stream_process), len(trace.legacy)
    return State(
        early=np.zeros(threads, np.int64),
        over=np.zeros(streams + 1, np.int64),
        latest=np.zeros(processes, np.int64),
        latest_on=np.zeros(trace.first_gpu[processes], np.int64),
        legacy_latest=np.zeros(processes, np.int64),
        recorded=np.zeros(trace.events + 1, np.int64),
        recorded_on=np.full(trace.events + 1, EVERYTHING, np.int64),
        ordered=np.zeros(processes, np.int64),
        removed=Removed(
            target=np.zeros(processes, np.int64),
            over=np.full(processes, -1, np.int64),
            waking=np.zeros(processes, np.int64),
            scope=np.zeros(processes, np.int64),
            latency=np.zeros(processes, np.int64),
        ),
        moved_until=np.full(threads, -1, np.int64),
        moved_for=np.zeros(threads, np.int64),
        touched=np.zeros(threads, np.uint8),
        ended=np.zeros(threads, np.int64),
    )


@inner
def next_member(members: Columns, member: int, place: int) -> int:
    """Return the first member, from this one on, that is not before a place."""
    while member < len(members) and members[member] < place:
        member += 1
    return member


@inner
def meet_threads(state: State, trace: Trace, family: Family, strict: bool, place: int, child: int) -> int:
    """Let a thread be as early as its parent, the threads it has joined and the one it follows allow.

    Returns the next of the joined threads.
    """
    row = trace.order[place]
    thread = trace.thread[row]
    early, ended = state.early, state.ended
    if family.forked[thread] == place and family.parent[thread] >= 0:
        early[thread] = early[family.parent[thread]]
    gain = joined_gain(state, family, strict, place, child)
    while child < len(family.children) and family.joined[family.children[child]] <= place:
        state.touched[thread] |= state.touched[family.children[child]]
        child += 1
    early[thread] = max(early[thread], gain)
    leader = family.follows[thread]
    if leader >= 0 and state.touched[leader] and not strict and ended[thread] > 0:
        room = trace.start[row] - ended[thread]  # it cannot have waited longer than it did nothing
        early[thread] = max(early[thread], min(early[leader], early[thread] + room))
    ended[thread] = trace.start[row] + trace.duration[row]
    return child


@inner
def joined_gain(state: State, family: Family, strict: bool, place: int, child: int) -> int:
    """Return by how much the threads joined at a place, from `child` on, end earlier; -1 if there are none.

    Those that run the same code are over when the last of them is.
    """
    early, ended = state.early, state.ended
    gain = -1
    least = -1
    alike = -1
    last = 0
    sooner = 0
    while child < len(family.children) and family.joined[family.children[child]] <= place:
        other = family.children[child]
        if child == 0 or family.joined[family.children[child - 1]] < place:
            alike = -1
        if family.alike[other] != alike:
            alike = int(family.alike[other])
            last = int(ended[other])
            sooner = int(ended[other] - early[other])
        last = max(last, int(ended[other]))
        sooner = max(sooner, int(ended[other] - early[other]))
        if least < 0 or early[other] < least:
            least = int(early[other])
        child += 1
        following = family.children[child] if child < len(family.children) else -1
        if following < 0 or family.joined[following] > place or family.alike[following] != alike:
            gain = max(gain, last - sooner)
    return least if strict else gain


@inner
def let_gpu_be_early(state: State, trace: Trace, times: Gpu, row: int) -> None:
    """Let the GPU be early by as much as the CPU."""
    thread = trace.thread[row]
    process = trace.process_of_thread[thread]
    state.latest[process] = times.ready[row] - state.early[thread]
    state.legacy_latest[process] = state.latest[process]
    for number in range(len(trace.stream_process)):
        if trace.stream_process[number] == process:
            state.over[number] = state.latest[process]
            state.latest_on[trace.gpu_of_stream[number]] = state.latest[process]


@inner
def shift_of(state: State, trace: Trace, row: int) -> int:
    """Return by how much a call begins earlier, after what the thread waits for since waits were moved."""
    thread = trace.thread[row]
    shift, until = int(state.early[thread]), int(state.moved_until[thread])
    if until >= 0 and trace.start[row] >= until:
        shift = min(shift, until - int(state.moved_for[thread]))
        state.moved_until[thread] = -1
    return shift


@inner
def change_of(trace: Trace, fix: Fix, manner: Manner, row: int, changed: bool) -> Change:
    """Return what the fix changes of a call, if it changes it."""
    own = int(trace.duration[row] - trace.wait[row])
    if not changed:
        return Change(own, False, False, False)
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
    return Change(own, no_wait, no_work, later)


@inner
def call(state: State, trace: Trace, times: Gpu, fix: Fix, manner: Manner, change: Change, row: int, begun: int) -> int:
    """Simulate a call; return when it is over."""
    does = trace.action[row] if trace.action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
    now = begun
    if does in (ENQUEUE, ENQUEUE_AND_WAIT):
        now += change.own
        if not change.no_work:
            enqueue(state, trace, times, row, now)
    if ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
        now = wait_for_gpu(state, trace, times, fix, manner, change, row, now)
        if does != ENQUEUE_AND_WAIT:
            now += change.own
    else:
        if does != ENQUEUE:
            now += change.own
        if not change.no_wait:
            now += int(trace.wait[row])
        if does in (RECORD_EVENT, STREAM_WAIT_EVENT):
            order_by_event(state, trace, row)
    if does == WAIT_AND_ENQUEUE and not change.no_work:
        enqueue(state, trace, times, row, now)
    return now


@inner
def is_legacy(trace: Trace, row: int) -> bool:
    """Return whether a row's stream is its process's legacy default stream."""
    legacy = trace.legacy[trace.process_of_thread[trace.thread[row]]]
    return bool(legacy >= 0 and legacy == trace.stream[row])


@inner
def enqueue(state: State, trace: Trace, times: Gpu, row: int, now: int) -> None:
    """Let the GPU do a row's work after what comes before it, and the pause after that."""
    lane, process = trace.stream[row], trace.process_of_thread[trace.thread[row]]
    legacy = trace.legacy[process]
    first = max(now, state.ordered[process])
    if state.over[lane] > 0:
        first = max(first, state.over[lane] + (times.pause if times.gpu[row] > 0 else 0))
    if is_legacy(trace, row):
        first = max(first, state.legacy_latest[process])
    elif legacy >= 0 and not trace.apart[lane]:
        first = max(first, state.over[legacy])
    work_until(state, trace, row, first + times.gpu[row])


@inner
def work_until(state: State, trace: Trace, row: int, end: int) -> None:
    """Let the work of a row's stream be over at `end`: its own, with all of its process, and with all that the legacy
    stream orders.
    """
    stream_until(state, trace, trace.process_of_thread[trace.thread[row]], trace.stream[row], end)


@inner
def stream_until(state: State, trace: Trace, process: int, lane: int, end: int) -> None:
    """Let the work of a stream of a process be over at `end`, as `work_until` does."""
    state.over[lane] = end
    state.latest[process] = max(state.latest[process], end)
    gpu = trace.gpu_of_stream[lane]
    state.latest_on[gpu] = max(state.latest_on[gpu], end)
    if not trace.apart[lane]:
        state.legacy_latest[process] = max(state.legacy_latest[process], end)


@inner
def order_by_event(state: State, trace: Trace, row: int) -> None:
    """Record an event, or let a stream wait for it."""
    lane, process, event = trace.stream[row], trace.process_of_thread[trace.thread[row]], trace.event[row]
    if trace.action[row] == RECORD_EVENT:
        state.recorded[event] = state.legacy_latest[process] if is_legacy(trace, row) else state.over[lane]
        state.recorded_on[event] = lane
    else:
        work_until(state, trace, row, max(state.over[lane], state.recorded[event]))


@inner
def wait_for_gpu(
    state: State, trace: Trace, times: Gpu, fix: Fix, manner: Manner, change: Change, row: int, now: int
) -> int:
    """Simulate the wait of a call, or what becomes of it; return until when the thread waits."""
    lane, process = trace.stream[row], trace.process_of_thread[trace.thread[row]]
    if trace.action[row] == WAIT_EVENT:
        target = int(state.recorded[trace.event[row]])
        scope = int(state.recorded_on[trace.event[row]])
    elif trace.action[row] == WAIT_CONTEXT and lane >= 0:
        target = int(state.latest_on[trace.gpu_of_stream[lane]])
        scope = int(DEVICE - trace.gpu_of_stream[lane])
    elif trace.action[row] == WAIT_CONTEXT:
        target = int(state.latest[process])
        scope = EVERYTHING
    else:
        target = int(state.legacy_latest[process] if is_legacy(trace, row) else state.over[lane])
        scope = int(lane)
    late = late_by_chance(trace, times, row)
    latency = int(times.latency[row]) - late
    if change.later:
        move_wait(state, trace, row, target, latency)
    elif change.no_wait:
        if fix.needed:
            state.ordered[process] = max(state.ordered[process], target)
        remove_wait(state, trace, manner, row, now, target, scope, latency)
    else:
        now = wait_again(state, trace, manner, row, now, target, scope, latency)
    if late > 0:
        stand_still(state, trace, row, now, scope, late)
    return now + late


@inner
def late_by_chance(trace: Trace, times: Gpu, row: int) -> int:
    """Return by how much a wait ended later than usual, if that was chance."""
    latency = int(times.latency[row])
    return latency - times.usual if latency >= times.late_from[trace.site[row]] else 0


@inner
def stand_still(state: State, trace: Trace, row: int, now: int, scope: int, late: int) -> None:
    """Let the work of a scope that is not over be over later: what delayed the thread passes for the GPU, too."""
    process = trace.process_of_thread[trace.thread[row]]
    for stream in range(len(trace.stream_process)):
        covered = trace.stream_process[stream] == process and is_covered(stream, scope, trace, row)
        if covered and state.over[stream] > now:
            stream_until(state, trace, process, stream, state.over[stream] + late)


@inner
def move_wait(state: State, trace: Trace, row: int, target: int, latency: int) -> None:
    """Let a thread wait at the first use of what it waited for."""
    thread = trace.thread[row]
    until = trace.start[row] + trace.duration[row] + trace.first_use[row]
    if state.moved_until[thread] < 0 or until < state.moved_until[thread]:
        state.moved_until[thread] = until
    state.moved_for[thread] = max(state.moved_for[thread], target + max(latency, 0))


@inner
def remove_wait(
    state: State, trace: Trace, manner: Manner, row: int, now: int, target: int, scope: int, latency: int
) -> None:
    """Remember what a removed wait had to wait for, for the next one that covers it."""
    removed, process = state.removed, trace.process_of_thread[trace.thread[row]]
    # A negative latency: it waited for work that was thought to be done.
    beyond = latency if latency >= 0 else -1 - latency
    waking = 0 if manner.recurs else min(beyond, manner.waking)
    done = (target if latency >= 0 else max(now, target)) + beyond - waking
    if done > now and removed.over[process] <= now:  # no earlier one would still last
        removed.latency[process] = 0
    if done > now and done >= removed.over[process]:
        # One that waited for nothing more after an earlier one does not tell how long waking takes; that one does.
        if latency < 0 and not manner.recurs and removed.over[process] > now:
            waking = max(waking, removed.waking[process])
        removed.target[process] = target
        removed.over[process] = done
        removed.waking[process] = waking
        removed.scope[process] = last_of(state, trace, row, target, scope)
        removed.latency[process] = max(removed.latency[process], min(beyond, trace.wait[row]))


@inner
def wait_again(
    state: State, trace: Trace, manner: Manner, row: int, now: int, target: int, scope: int, latency: int
) -> int:
    """Let a thread wait as in the run measured, but for when the GPU is done; return when it continues."""
    removed, process = state.removed, trace.process_of_thread[trace.thread[row]]
    arrived = now
    # Its own work was done quickly; the time until the CPU continues stays the same.
    if latency < 0 and trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT):
        now = max(now, target) - 1 - latency
    elif latency < 0:  # nothing was waited for: the call takes as long as before
        now = max(now - 1 - latency, target)
    elif target > now:
        now = target + latency
    # What a removed wait had to wait for, the next one that covers it waits for: it wakes as late.
    same = is_covered(removed.scope[process], scope, trace, row)
    if same and target >= removed.target[process] and removed.over[process] > arrived:
        now = max(now, int(removed.over[process] + removed.waking[process]))
        if manner.recurs:
            now = max(now, max(arrived, target) + int(removed.latency[process]))
    return now


@inner
def is_covered(earlier: int, scope: int, trace: Trace, row: int) -> bool:
    """Return whether a row's wait, of a scope, may cover what an earlier one waited for."""
    if scope in (EVERYTHING, earlier):
        return True
    if scope <= DEVICE:
        return earlier >= 0 and trace.gpu_of_stream[earlier] == DEVICE - scope
    return is_legacy(trace, row) and (earlier < 0 or not trace.apart[earlier])


@inner
def last_of(state: State, trace: Trace, row: int, target: int, scope: int) -> int:
    """Return the stream whose work a wait of a scope waited for until `target`: of several, one that was over then."""
    if scope >= 0 and not is_legacy(trace, row):
        return scope
    process = trace.process_of_thread[trace.thread[row]]
    for stream in range(len(trace.stream_process)):
        within = scope > DEVICE or trace.gpu_of_stream[stream] == DEVICE - scope
        if within and trace.stream_process[stream] == process and state.over[stream] == target:
            return stream
    return scope


@inner
def runs_as_measured(state: State, trace: Trace, times: Gpu, row: int, place: int) -> bool:
    """Return whether the process runs as measured from a place on, after this row, but for being early."""
    thread = trace.thread[row]
    process, early = trace.process_of_thread[thread], state.early[thread]
    if state.moved_until[thread] >= 0 or place >= len(trace.order):
        return False
    following = trace.order[place]
    if trace.process_of_thread[trace.thread[following]] != process:
        return True
    # The GPU is early by as much, or as idle as before.
    start, ready = trace.start[following], times.ready[following]
    idle = state.latest[process] + times.pause <= start - early and ready + times.pause <= start
    alike = idle or ready - state.latest[process] == early
    return bool(alike and state.removed.over[process] <= start - early)


@inner
def wait_at_the_end(state: State) -> None:
    """Let the threads wait at the end for what moved waits have left to them."""
    for thread in range(len(state.early)):
        until = state.moved_until[thread]
        if until >= 0:
            state.early[thread] = min(state.early[thread], until - state.moved_for[thread])
