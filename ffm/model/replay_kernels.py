"""The pass that simulates a run again (`ffm.model.replay`), in the part of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner
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

Columns = NDArray[Any]

EVERYTHING = -1
"""What a wait for all streams of a process waits for; other waits have the stream's number, or the number of streams
and the event's."""


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
    action: Columns
    stream: Columns
    event: Columns
    partner: Columns
    copied: Columns
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    stream_process: Columns
    events: int
    """How much longer a row's call takes because the GPU was idle; disappears if the GPU is idle no more."""


class Gpu(NamedTuple):
    """One timeline of the GPU; the columns of `ffm.model.gpu_times.GpuTimes`."""

    gpu: Columns
    ready: Columns
    latency: Columns


class Family(NamedTuple):
    """Which thread started, joined and follows which; columns of shape (threads,), -1 if there is none."""

    parent: Columns
    """The thread that started it."""
    forked: Columns
    """Position in `order` of the thread's first row."""
    joined: Columns
    """Position in `order` of the parent's row before which it was joined."""
    follows: Columns
    """The thread with whose waits its gaps end."""
    alike: Columns
    """The number of the set of threads of its process that run the same code."""
    children: Columns
    """The threads that were joined, by where, then by `alike`; shape (joined,)."""


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


@inner
def is_covered(earlier: int, scope: int, is_legacy: bool, apart: Columns) -> bool:
    """Return whether a wait of a scope may cover what an earlier one waited for."""
    if scope in (EVERYTHING, earlier):
        return True
    return is_legacy and (earlier >= len(apart) - 1 or earlier == EVERYTHING or not apart[earlier])


@inner
def can_begin(called: int, lane: int, is_legacy: bool, legacy: int, apart: Columns, over: Columns, ordered: int) -> int:
    """Return when work can begin that a stream gets at `called`, if what the legacy stream orders is over at
    `ordered`.
    """
    first: int = max(called, over[lane])
    if is_legacy:
        first = max(first, ordered)
    elif legacy >= 0 and not apart[lane]:
        first = max(first, over[legacy])
    return first


@inner
def work_until(
    end: int, lane: int, process: int, apart: Columns, over: Columns, latest: Columns, ordered: Columns
) -> None:
    """Let the work of a stream be over at `end`: its own, with all of its process, and with all that the legacy stream
    orders.
    """
    over[lane] = end
    latest[process] = max(latest[process], end)
    if not apart[lane]:
        ordered[process] = max(ordered[process], end)


def replay_group(trace: Trace, times: Gpu, family: Family, fix: Fix, manner: Manner, probes: Probes) -> Columns:
    """Simulate the run with one group's problems fixed; return the nanoseconds by which each thread ends earlier.

    The rules are those of `ffm.model.replay`.
    """
    order, thread, start, duration, wait = trace.order, trace.thread, trace.start, trace.duration, trace.wait
    kind, problem, action, stream, event = trace.kind, trace.problem, trace.action, trace.stream, trace.event
    process_of_thread, legacy, stream_process = trace.process_of_thread, trace.legacy, trace.stream_process
    ready, members, needed = times.ready, fix.members, fix.needed
    threads = len(process_of_thread)
    streams = len(stream_process)
    processes = len(legacy)
    early = np.zeros(threads, np.int64)
    over = np.zeros(streams + 1, np.int64)
    latest = np.zeros(processes, np.int64)
    legacy_latest = np.zeros(processes, np.int64)  # of the work that the legacy stream orders
    recorded = np.zeros(trace.events + 1, np.int64)
    # Of the last wait that was removed in each process: when its work should be over and when it is, how long it woke,
    # and what it waited for.
    removed_target = np.zeros(processes, np.int64)
    removed_over = np.full(processes, -1, np.int64)
    removed_waking = np.zeros(processes, np.int64)
    removed_scope = np.zeros(processes, np.int64)
    removed_latency = np.zeros(processes, np.int64)
    moved_until = np.full(threads, -1, np.int64)
    moved_for = np.zeros(threads, np.int64)
    touched = np.zeros(threads, np.uint8)
    ordered = np.zeros(processes, np.int64)
    ended = np.zeros(threads, np.int64)
    rows = len(order)
    timed = len(probes.time) > 0
    if len(members) == 0 and not timed:
        return early
    member = 0
    child = 0  # the next of the joined threads
    alike = -1
    last = np.int64(0)
    sooner = np.int64(0)
    place = members[0] if manner.jump else 0
    fresh = manner.jump
    while place < rows:
        row = order[place]
        lane_thread = thread[row]
        process = process_of_thread[lane_thread]
        lane = stream[row]
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        if family.joined[lane_thread] >= 0 or threads > processes:
            if family.forked[lane_thread] == place and family.parent[lane_thread] >= 0:
                early[lane_thread] = early[family.parent[lane_thread]]
            gain = np.int64(-1)
            least = np.int64(-1)
            while child < len(family.children) and family.joined[family.children[child]] <= place:
                other = family.children[child]
                if child == 0 or family.joined[family.children[child - 1]] < place:
                    alike = -1
                # Those that run the same code are over when the last of them is.
                if family.alike[other] != alike:
                    alike = family.alike[other]
                    last = ended[other]
                    sooner = ended[other] - early[other]
                last = max(last, ended[other])
                sooner = max(sooner, ended[other] - early[other])
                touched[lane_thread] |= touched[other]
                if least < 0 or early[other] < least:
                    least = early[other]
                child += 1
                following = family.children[child] if child < len(family.children) else -1
                if following < 0 or family.joined[following] > place or family.alike[following] != alike:
                    gain = max(gain, last - sooner)
            if manner.strict:
                gain = least
            early[lane_thread] = max(early[lane_thread], gain)
            leader = family.follows[lane_thread]
            if leader >= 0 and touched[leader] and not manner.strict and ended[lane_thread] > 0:
                room = start[row] - ended[lane_thread]  # it cannot have waited longer than it did nothing
                gain = min(early[leader], early[lane_thread] + room)
                early[lane_thread] = max(early[lane_thread], gain)
            ended[lane_thread] = start[row] + duration[row]
        if timed:
            early[lane_thread] += probes.time[row]
        shift = early[lane_thread]
        if fresh:  # the GPU is early by as much as the CPU
            latest[process] = ready[row] - shift
            legacy_latest[process] = latest[process]
            for number in range(streams):
                if stream_process[number] == process:
                    over[number] = latest[process]
            fresh = False
        if moved_until[lane_thread] >= 0 and start[row] >= moved_until[lane_thread]:
            if moved_for[lane_thread] > moved_until[lane_thread] - shift:
                shift = moved_until[lane_thread] - moved_for[lane_thread]
            moved_until[lane_thread] = -1
        is_legacy = legacy[process] >= 0 and legacy[process] == lane
        own = duration[row] - wait[row]
        now = start[row] - shift
        begun = now
        stays_idle = 0
        no_wait = False
        no_call = False
        no_work = False
        later = False
        while member < len(members) and members[member] < place:
            member += 1
        if member < len(members) and members[member] == place:
            touched[lane_thread] = 1
            flags = problem[row]
            if kind[row] == ALLOCATION:
                no_call = True
                no_wait = True
            elif fix.fixes and needed:
                no_wait = True
                no_call = kind[row] == SYNCHRONIZATION
            elif fix.fixes:
                no_wait = (flags & UNNECESSARY_SYNCHRONIZATION) != 0
                later = (flags & MISPLACED_SYNCHRONIZATION) != 0 and not no_wait
                no_work = (flags & UNNECESSARY_TRANSFER) != 0
                no_call = no_work or (no_wait and kind[row] == SYNCHRONIZATION)
                if kind[row] == FREE and no_wait and trace.partner[row] >= 0:
                    no_call = True
        if no_wait and action[row] == SET_AND_WAIT:
            own = trace.copied[row] // manner.set_bytes_a_nanosecond
            no_work = True
        elif no_call:
            own = 0
        for part in range(2):
            if does == WAIT_AND_ENQUEUE if part == 1 else does in (ENQUEUE, ENQUEUE_AND_WAIT):
                if part == 0:
                    now += own
                if not no_work:
                    first = can_begin(now, lane, is_legacy, legacy[process], trace.apart, over, legacy_latest[process])
                    first = max(first, ordered[process])
                    work_until(first + times.gpu[row], lane, process, trace.apart, over, latest, legacy_latest)
            if part == 1:
                break
            if not ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
                if does != ENQUEUE:
                    now += own
                if not no_wait:
                    now += wait[row]
                if does == RECORD_EVENT:
                    recorded[event[row]] = legacy_latest[process] if is_legacy else over[lane]
                elif does == STREAM_WAIT_EVENT:
                    end = max(over[lane], recorded[event[row]])
                    work_until(end, lane, process, trace.apart, over, latest, legacy_latest)
            else:
                if does == WAIT_EVENT:
                    target = recorded[event[row]]
                    scope = streams + event[row]
                elif does == WAIT_CONTEXT:
                    target = latest[process]
                    scope = EVERYTHING
                else:
                    target = legacy_latest[process] if is_legacy else over[lane]
                    scope = lane
                stays_idle = times.latency[row]
                if later:
                    if stays_idle > 0:
                        target += stays_idle
                    until = start[row] + duration[row] + trace.first_use[row]
                    if moved_until[lane_thread] < 0 or until < moved_until[lane_thread]:
                        moved_until[lane_thread] = until
                    moved_for[lane_thread] = max(moved_for[lane_thread], target)
                elif no_wait:
                    if needed:
                        ordered[process] = max(ordered[process], target)
                    # A negative latency: it waited for work that was thought to be done.
                    beyond = stays_idle if stays_idle >= 0 else -1 - stays_idle
                    waking = 0 if manner.recurs else min(beyond, manner.waking)
                    done = (target if stays_idle >= 0 else max(now, target)) + beyond - waking
                    if done > now and removed_over[process] <= now:  # no earlier one would still last
                        removed_latency[process] = 0
                    if done > now and done >= removed_over[process]:
                        removed_target[process] = target
                        removed_over[process] = done
                        removed_waking[process] = waking
                        removed_scope[process] = scope
                        removed_latency[process] = max(removed_latency[process], min(beyond, wait[row]))
                else:
                    arrived = now
                    # Its own work was done quickly; the time until the CPU continues stays the same.
                    if stays_idle < 0 and does == ENQUEUE_AND_WAIT:
                        now = max(now, target) - 1 - stays_idle
                    elif stays_idle < 0:  # nothing was waited for: the call takes as long as before
                        now = max(now - 1 - stays_idle, target)
                    elif target > now:
                        now = target + stays_idle
                    # What a removed wait had to wait for, the next one that covers it waits for: it wakes as late.
                    same = is_covered(removed_scope[process], scope, is_legacy, trace.apart)
                    if same and target >= removed_target[process] and removed_over[process] > arrived:
                        now = max(now, removed_over[process] + removed_waking[process])
                        if manner.recurs:
                            now = max(now, max(arrived, target) + removed_latency[process])
                if does != ENQUEUE_AND_WAIT:
                    now += own
        early[lane_thread] = start[row] + duration[row] - now
        if timed:
            probes.start[row] = begun
            probes.wait[row] = max(now - begun - own, 0)
        place += 1
        if manner.jump:
            settled = moved_until[lane_thread] < 0 and place < rows
            if settled:
                following = order[place]
                same = process_of_thread[thread[following]] == process
                # The GPU is early by as much, or as idle as before.
                idle = latest[process] <= start[following] - early[lane_thread] and ready[following] <= start[following]
                settled = not same or idle or ready[following] - latest[process] == early[lane_thread]
                settled = settled and (not same or removed_over[process] <= start[following] - early[lane_thread])
            if settled:
                while member < len(members) and members[member] < place:
                    member += 1
                if member == len(members):
                    break
                if members[member] > place:
                    place = members[member]
                fresh = True
    for index in range(threads):
        if moved_until[index] >= 0 and moved_for[index] > moved_until[index] - early[index]:
            early[index] = moved_until[index] - moved_for[index]
    return early
