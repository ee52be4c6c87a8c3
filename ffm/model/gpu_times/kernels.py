"""The passes that fit the GPU's times to the waits (`ffm.model.gpu_times.inference`), in the part of Python that Numba
compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ffm.model.compiled import inner
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.gpu_times.limits import ANY
from ffm.model.gpu_times.queues import advance, begun_at, cut_from, is_pending, write_all_down
from ffm.model.gpu_times.simulated_gpu import (
    Columns,
    State,
    Trace,
    at_the_start,
    await_other,
    device_of,
    end_of_event,
    enqueue,
    latest_of,
    order_by_event,
    ordered_of,
    settle,
    waited_gpus,
    work_until,
)
from ffm.model.gpu_times.stream_ends import forget_unnamed, last_on, latest, stream_that_ends_last
from ffm.model.gpu_times.timelines import LONG_OVER_NS
from ffm.model.numbers import (
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    LOAD_AND_ENQUEUE,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
)
from ffm.model.visits import is_legacy, process_of, row_at

AHEAD = 32
"""This many rows are read ahead: what they need fits into the fastest cache together with the rest."""

SCATTERED = 256
"""From this many threads on, not counting the first of each process. For fewer, the processor itself reads ahead."""


LEAST_SHORT, MOST_SHORT = -(1 << 31), (1 << 31) - 1
"""What fits in 32 bits."""


class Rules(NamedTuple):
    """What a wait shows, in nanoseconds; `fit` says how."""

    threshold: int
    """A wait must last longer to have waited for something."""
    tolerance: int
    allowed: Columns
    """By row; `ANY` allows any."""
    excused: Columns
    """By site."""
    pause: int
    """Between a stream's work and the next if that is queued."""
    shown: Columns = np.zeros(0, np.int64)
    """For each row that waits, until when at most what it waits for lasted (`waits_shown`); empty if waits end in the
    order in which they begin.
    """


class Fitted(NamedTuple):
    """The columns of `ffm.model.gpu_times.timelines.GpuTimes`, which are filled in."""

    gpu: Columns
    left: Columns
    """In 32 bits, as the next one."""
    latency: Columns
    long_left: Columns
    """In 64 bits, in place of `left`; empty if 32 are enough, as far as is known."""
    long_latency: Columns
    too_long: Columns
    """One truth value, which becomes true if 32 bits are not enough."""


def fit(trace: Trace, rules: Rules, fitted: Fitted) -> tuple[int, int]:
    """Simulate the run as it was, and make the GPU's times agree with the waits.

    `gpu` contains the expected nanoseconds of each enqueuing row's work, and is corrected in place. No work lasts
    beyond the end of a wait for it. A wait that ends later than expected by more than `allowed` for the last work, or
    by more than `excused` for the wait's site, shows that this work took longer, by all of that time but `tolerance`.
    The rest of a wait goes into `latency`: the time from the end of the work until the CPU continues or, as a negative
    number (-1 - wait), a wait for nothing known. `left` receives, for each row, how long all earlier work of its
    process still took, as `ffm.model.gpu_times.timelines.GpuTimes` has it.

    Returns the nanoseconds of waiting that the GPU's work explains, and those of all waiting.
    """
    return fit_rows(trace, rules, fitted, at_the_start(trace))


@inner
def fit_rows(trace: Trace, rules: Rules, fitted: Fitted, state: State) -> tuple[int, int]:
    """Do so with the state before the first row."""
    explained = 0
    waited = 0
    order, action, start, duration, wait = trace.order, trace.action, trace.start, trace.duration, trace.wait
    gpu, number = fitted.gpu, state.read_ahead
    left, latency, long_left, long_latency, too_long = fitted[1:]
    scattered = len(trace.process_of_thread) - len(trace.legacy) >= SCATTERED
    for place in range(len(action)):
        if scattered and place % AHEAD == 0:
            number[0] = read_ahead(trace, fitted, state, place)
        row = row_at(order, place)
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        note(left, long_left, too_long, row, left_of(state, trace, row))
        note(latency, long_latency, too_long, row, -1 - wait[row])
        waited += wait[row]
        if does in (ENQUEUE, ENQUEUE_AND_WAIT, LOAD_AND_ENQUEUE):
            enqueue(state, trace, rules.pause, gpu, row, enqueued_at(trace, row))
        if does in (RECORD_EVENT, STREAM_WAIT_EVENT):
            order_by_event(state, trace, gpu, row)
        elif ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
            explained += fit_wait(state, trace, rules, fitted, row)
        if does == WAIT_AND_ENQUEUE:
            enqueue(state, trace, rules.pause, gpu, row, start[row] + duration[row])
    return explained, waited


@inner
def note(short: Columns, long: Columns, too_long: Columns, row: int, nanoseconds: int) -> None:
    """Fill in a time of a row, in 64 bits if there is a column for that."""
    if len(long) > 0:
        long[row] = nanoseconds
    elif LEAST_SHORT <= nanoseconds <= MOST_SHORT:
        short[row] = nanoseconds
    else:
        too_long[0] = True


@inner
def read_ahead(trace: Trace, fitted: Fitted, state: State, place: int) -> int:
    """Read the next rows' columns into the processor's cache, and return a number that depends on all of them.

    Rows of many threads lie far apart in memory. Here, no read waits for another one, as they do in the simulation.
    """
    number = 0
    for ahead in range(place, min(place + AHEAD, len(trace.thread))):
        row = row_at(trace.order, ahead)
        number ^= trace.thread[row] ^ trace.start[row] ^ trace.duration[row] ^ trace.wait[row] ^ trace.site[row]
        number ^= trace.action[row] ^ trace.stream[row] ^ trace.event[row]
        number ^= fitted.gpu[row]
        if len(fitted.long_left) > 0:
            number ^= fitted.long_left[row] ^ fitted.long_latency[row]
        else:
            number ^= fitted.left[row] ^ fitted.latency[row]
        number ^= state.queues.before[row] ^ state.queues.begun[row]
    return number


@inner
def left_of(state: State, trace: Trace, row: int) -> int:
    """Return how long all work of a row's process still takes when the row's call starts."""
    return max(latest_of(state, trace, process_of(trace, row)) - int(trace.start[row]), -LONG_OVER_NS)


@inner
def fit_wait(state: State, trace: Trace, rules: Rules, fitted: Fitted, row: int) -> int:
    """Make the GPU's times agree with a wait; return the nanoseconds of it that the GPU's work explains."""
    lane, process, wait = trace.stream[row], process_of(trace, row), trace.wait[row]
    works_first = trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT)
    after = enqueued_at(trace, row) if works_first else trace.start[row]
    end = after + wait
    seen = max(min(end, int(rules.shown[row])), after) if len(rules.shown) > 0 else end
    blocks = wait > rules.threshold
    for_event = trace.action[row] == WAIT_EVENT
    if lane >= 0:
        await_other(state, trace, fitted.gpu, process, lane)
    if for_event:
        target = end_of_event(state, trace, fitted.gpu, trace.event[row])
    elif trace.action[row] == WAIT_CONTEXT:
        target = latest(state.streams, device_of(trace, lane)) if lane >= 0 else latest_of(state, trace, process)
    else:
        target = ordered_of(state, trace, process) if is_legacy(trace, row) else state.over[lane]
    limit = seen if blocks else after
    if target > limit:  # done by then, whatever was expected
        if for_event:
            shorten_before(state, trace, fitted.gpu, trace.event[row], target - limit, limit)
        else:
            shorten(state, trace, fitted.gpu, row, limit)
        target = limit
    elif blocks and not for_event and seen - rules.tolerance > target:
        target = lengthen(state, trace, rules, fitted.gpu, row, seen, target)
    if not works_first:
        left = left_of(state, trace, row)  # as the wait has shown
        note(fitted.left, fitted.long_left, fitted.too_long, row, left)
    if not for_event:
        settle(state, trace, row)
    if target > after:
        note(fitted.latency, fitted.long_latency, fitted.too_long, row, end - target)
    return int(wait if target > after or not blocks else 0)


@inner
def shorten(state: State, trace: Trace, gpu: Columns, row: int, limit: int) -> None:
    """Let all work that a row waits for be done by then."""
    lane, process = trace.stream[row], process_of(trace, row)
    streams = state.streams
    forget_unnamed(streams, trace.first_gpu[process])
    if trace.action[row] == WAIT_CONTEXT or is_legacy(trace, row):
        whole = trace.action[row] == WAIT_CONTEXT
        for device in waited_gpus(trace, process, lane):
            ends = streams.ends if whole else streams.ordered_ends
            while last_on(streams, ends, device) > limit:
                cut(state, trace, gpu, process, stream_that_ends_last(streams, ends, device), limit)
    elif lane >= 0 and state.over[lane] > limit:
        cut(state, trace, gpu, process, lane, limit)


@inner
def cut(state: State, trace: Trace, gpu: Columns, process: int, stream: int, limit: int) -> None:
    """Let the work of a stream that nothing has waited for be done by then."""
    write_all_down(state.queues, stream)
    cut_from(state.queues, gpu, state.queues.last[stream], limit)
    work_until(state, trace, process, stream, limit)


@inner
def shorten_before(state: State, trace: Trace, gpu: Columns, event: int, earlier: int, limit: int) -> None:
    """Let all work of its stream before an event be done at `limit`, which is `earlier` than was expected. What comes
    after it on the stream begins as much earlier, but not before it arrives.
    """
    state.recorded[event] = limit
    recorded, number = state.recorded_work[event], state.recorded_number[event]
    if recorded < 0 or not is_pending(state.queues, trace.stream[recorded], number):
        return
    stream, process = trace.stream[recorded], process_of(trace, recorded)
    advance(state.queues, stream, recorded, number, earlier)
    cut_from(state.queues, gpu, recorded, limit)
    last = state.queues.last[stream]
    if state.awaited_work[stream] < 0:
        begun = begun_at(state.queues, stream, last, state.queues.number[stream])
        work_until(state, trace, process, stream, begun + gpu[last])


@inner
def lengthen(state: State, trace: Trace, rules: Rules, gpu: Columns, row: int, end: int, target: int) -> int:
    """Let the last work that a row waits for last until about the end of the wait, unless the wait may have been late.

    Returns when that work is done; `target` was expected.
    """
    process = process_of(trace, row)
    stream = state.last_ordered[process] if is_legacy(trace, row) else trace.stream[row]
    if trace.action[row] == WAIT_CONTEXT:
        stream = last_of_all(state, trace, process, trace.stream[row])
    work = state.queues.last[stream] if stream >= 0 else -1
    if work < 0 or end - late_at_most(rules, work, trace.site[row]) <= target:
        return target
    done = end - rules.tolerance
    begun = begun_at(state.queues, stream, work, state.queues.number[stream])
    if done <= begun:
        return target
    gpu[work] = done - begun
    work_until(state, trace, process, stream, done)
    return done


@inner
def late_at_most(rules: Rules, work: int, site: int) -> int:
    """Return how much later than expected a site's wait for some last work may end."""
    allowed, excused = int(rules.allowed[work]), int(rules.excused[site])
    return min(allowed, excused) if allowed < ANY else excused


@inner
def last_of_all(state: State, trace: Trace, process: int, waited: int) -> int:
    """Return the stream whose work a wait for everything, or for the device of the stream `waited`, waited for: the one
    that got work last, unless something has waited for that before; then the one whose work is over last, or -1.
    """
    newest = int(state.last_anywhere[process] if waited < 0 else state.last_here[device_of(trace, waited)])
    if newest < 0 or state.queues.last[newest] >= 0:
        return newest
    found = -1
    gpus = waited_gpus(trace, process, waited)
    for head in range(2 * gpus.start, 2 * gpus.stop):
        stream = state.streams.first_pending[head]
        while stream >= 0:
            later = found < 0 or state.over[stream] > state.over[found]
            alike = found >= 0 and state.over[stream] == state.over[found]
            if state.queues.last[stream] >= 0 and (later or (alike and stream < found)):
                found = stream
            stream = state.streams.next_pending[stream]
    return found
