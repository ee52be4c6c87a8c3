"""How long threads wait for the GPU, and what becomes of waits that a fix removes."""

from __future__ import annotations

from ffm.model.compiled import inner
from ffm.model.estimators.simulation.state import DEVICE, EVERYTHING, Change, Fix, Gpu, Manner, State, Trace
from ffm.model.estimators.simulation.streams import stream_until
from ffm.model.estimators.simulation.threads import move_wait
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.numbers import (
    ENQUEUE_AND_WAIT,
    SET_AND_WAIT,
    WAIT_CONTEXT,
    WAIT_EVENT,
)
from ffm.model.visits import is_legacy, is_lone, process_of, thread_of

NEVER_OVER = 1 << 62
"""Nanoseconds."""


@inner
def wait_for_gpu(
    state: State, trace: Trace, times: Gpu, fix: Fix, manner: Manner, change: Change, row: int, now: int
) -> int:
    """Simulate the wait of a call, or what becomes of it; return until when the thread waits."""
    lane, process = trace.stream[row], process_of(trace, row)
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
    if trace.related:
        note_lateness(state, trace, times, change, row)
    latency = int(times.latency[row]) - late
    if change.later:
        move_wait(state, trace, row, target, latency)
    elif change.no_wait:
        if fix.fences:
            state.ordered[process] = max(state.ordered[process], target)
        remove_wait(state, trace, manner, row, now, target, scope, latency - disappearing(trace, times, row, latency))
    else:
        until = wait_again(state, trace, times, manner, row, now, target, scope, latency)
        now = max(now, min(until, latest_end(trace, row, now) - late))
    if late > 0:
        stand_still(state, trace, row, now, scope, late)
    return now + late


@inner
def late_by_chance(trace: Trace, times: Gpu, row: int) -> int:
    """Return by how much a wait ended later than usual, if that was chance."""
    latency = int(times.latency[row])
    return latency - times.usual if latency >= times.late_from[trace.site[row]] else 0


@inner
def disappearing(trace: Trace, times: Gpu, row: int, latency: int) -> int:
    """Return how much of a removed wait's latency disappears with it, whatever waits next: how late it woke its thread,
    in the timeline in which all lateness is saved. If threads share processors, the others ran meanwhile, and still do.
    """
    shares = times.late[process_of(trace, row)] < NEVER_OVER
    if len(times.shown) == 0 or shares or times.shown[row] < times.late_limit:
        return 0
    return max(min(int(times.shown[row]), latency) - times.usual, 0)


@inner
def note_lateness(state: State, trace: Trace, times: Gpu, change: Change, row: int) -> None:
    """Remember by how much a wait woke its thread late, for `ffm.model.estimators.simulation.threads.run_in_turn`."""
    thread, latency = thread_of(trace, row), int(times.latency[row])
    if latency < 0:  # nothing was left to wait for
        latency = -1 - latency
    late = latency >= times.late[process_of(trace, row)] and not change.later
    state.late.by[thread] = latency - times.usual if late else 0
    state.late.removed[thread] = change.no_wait
    if not change.no_wait:
        state.late.left[thread] = 0


@inner
def stand_still(state: State, trace: Trace, row: int, now: int, scope: int, late: int) -> None:
    """Delay the work of a scope that is not over: what delayed the thread counts for the GPU, too."""
    process = process_of(trace, row)
    for stream in range(len(trace.stream_process)):
        covered = trace.stream_process[stream] == process and is_covered(stream, scope, trace, row)
        if covered and state.over[stream] > now:
            stream_until(state, trace, process, stream, state.over[stream] + late)


@inner
def latest_end(trace: Trace, row: int, arrived: int) -> int:
    """Return until when a wait lasts at most if several threads call the driver: until it ended in the run as measured,
    or as much later as its thread comes to it at `arrived`. All that it waits for came no later there.

    Calls of threads overlap, but are simulated one after the other. Without this limit, threads would be late because
    of what others do meanwhile, and then delay those. A single thread is not late, and `ffm.model.estimators.stretches`
    compares parts of its runs however early they are.
    """
    if len(trace.process_of_thread) == 1:
        return NEVER_OVER
    began = trace.start[row]
    if trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT):
        shortened = trace.shortened[row] if len(trace.shortened) > 0 else 0
        began = enqueued_at(trace, row) + shortened
    end = began + trace.wait[row]
    return int(max(end, arrived + trace.wait[row]))


@inner
def remove_wait(
    state: State, trace: Trace, manner: Manner, row: int, now: int, target: int, scope: int, latency: int
) -> None:
    """Remember what a removed wait had to wait for, for the next one that covers it."""
    removed, thread = state.removed, thread_of(trace, row)
    # A negative latency: it waited for work that was thought to be done.
    beyond = latency if latency >= 0 else -1 - latency
    waking = 0 if manner.recurs else min(beyond, manner.waking)
    done = (target if latency >= 0 else max(now, target)) + beyond - waking
    if done > now and removed.over[thread] <= now:  # no earlier one would still last
        removed.latency[thread] = 0
    if done > now and done >= removed.over[thread]:
        # A wait with nothing left to wait for after an earlier one does not show how long waking takes; the earlier one
        # does.
        if latency < 0 and not manner.recurs and removed.over[thread] > now:
            waking = max(waking, removed.waking[thread])
        removed.target[thread] = target
        removed.over[thread] = done
        removed.waking[thread] = waking
        removed.scope[thread] = last_of(state, trace, row, target, scope)
        removed.latency[thread] = max(removed.latency[thread], min(beyond, trace.wait[row]))
        removed.ended[thread] = trace.start[row] + trace.duration[row]
        process = process_of(trace, row)
        last = 0 if is_lone(trace) else state.removed_last[process]
        if last < 0 or done >= removed.over[last]:
            state.removed_last[process] = thread


@inner
def wait_again(
    state: State, trace: Trace, times: Gpu, manner: Manner, row: int, now: int, target: int, scope: int, latency: int
) -> int:
    """Let a thread wait as in the measured run, except for when the GPU is done; return when it continues."""
    arrived, thread = now, thread_of(trace, row)
    # Its own work was done quickly; the time until the CPU continues stays the same.
    if latency < 0 and trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT):
        now = max(now, target) - 1 - latency
    elif latency < 0:  # nothing was waited for: the call takes as long as before
        now = max(now - 1 - latency, target)
    elif target > now:
        now = target + latency
    until = take_up(state, trace, manner, row, thread, arrived, target, scope)
    if until > arrived and was_late(state, trace, times, row):
        until += int(state.late.by[thread])
    now = max(now, until)
    # A wait that began before another thread's was over has shown by itself when the work was done.
    if is_lone(trace):
        return now
    other = state.removed_last[process_of(trace, row)]
    if other >= 0 and other != thread and trace.start[row] >= state.removed.ended[other]:
        now = max(now, take_up(state, trace, manner, row, other, arrived, target, scope))
    return now


@inner
def was_late(state: State, trace: Trace, times: Gpu, row: int) -> bool:
    """Return whether the last removed wait of a row's thread was late because others used its processor. They still
    need that time: if the row's wait takes it over, its own lateness comes on top.
    """
    removed, thread = state.removed, thread_of(trace, row)
    return bool(removed.over[thread] - removed.target[thread] >= times.late[process_of(trace, row)] - times.usual)


@inner
def take_up(
    state: State, trace: Trace, manner: Manner, row: int, thread: int, arrived: int, target: int, scope: int
) -> int:
    """Return until when a wait lasts at least because it covers what the last removed wait of its thread had to wait
    for: it wakes the thread as late as that one did. `arrived` if it does not cover that.
    """
    removed = state.removed
    same = is_covered(removed.scope[thread], scope, trace, row)
    if not same or target < removed.target[thread] or removed.over[thread] <= arrived:
        return arrived
    until = int(removed.over[thread] + removed.waking[thread])
    return max(until, max(arrived, target) + int(removed.latency[thread])) if manner.recurs else until


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
    """Return the stream whose work a wait of a scope waited for until `target`; if there are several, one whose work
    was over then.
    """
    if scope >= 0 and not is_legacy(trace, row):
        return scope
    process = process_of(trace, row)
    for stream in range(len(trace.stream_process)):
        within = scope > DEVICE or trace.gpu_of_stream[stream] == DEVICE - scope
        if within and trace.stream_process[stream] == process and state.over[stream] == target:
            return stream
    return scope
