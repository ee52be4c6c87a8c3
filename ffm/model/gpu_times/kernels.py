"""The passes that infer the GPU's times (`ffm.model.gpu_times.inference`), in the part of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows are visited in `order`: by process, then by time. Columns are
those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inlined, inner
from ffm.model.gpu_times.queues import (
    Queues,
    advance,
    append,
    begun_at,
    cut_from,
    is_pending,
    queues_of,
    write_all_down,
)
from ffm.model.gpu_times.stream_ends import (
    Streams,
    forget_unnamed,
    last_on,
    latest,
    list_pending,
    ordered,
    set_end,
    stream_that_ends_last,
    streams_of,
    unlist_pending,
)
from ffm.model.numbers import (
    ENQUEUE,
    ENQUEUE_AND_WAIT,
    RECORD_EVENT,
    SET_AND_WAIT,
    STREAM_WAIT_EVENT,
    WAIT_AND_ENQUEUE,
    WAIT_CONTEXT,
    WAIT_EVENT,
)
from ffm.model.visits import process_of, row_at

Columns = NDArray[Any]

AHEAD = 32
"""So many rows are read ahead: what they need fits into the fastest cache beside the rest."""

SCATTERED = 256
"""From so many threads on, beside the first of each process. The processor itself reads ahead for a few."""


class Trace(NamedTuple):
    """The run: the columns of `Timeline` and `DeviceWork` with the same names."""

    order: Columns
    """The rows by process, then by when each acts on the GPU, as in `ffm.model.visits`."""
    thread: Columns
    start: Columns
    duration: Columns
    wait: Columns
    site: Columns
    action: Columns
    stream: Columns
    event: Columns
    copied: Columns
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    gpu_of_stream: Columns
    """The columns of `ffm.model.device.Gpus`."""
    first_gpu: Columns
    events: int


class Rules(NamedTuple):
    """What a wait shows, in nanoseconds; `fit` says how."""

    threshold: int
    """A wait must last longer to have waited for something."""
    tolerance: int
    allowed: Columns
    """By row."""
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
    ready: Columns
    latency: Columns


class State(NamedTuple):
    """What the simulation has come to. Streams have one entry more, for none."""

    over: Columns
    """When each stream's work is done."""
    streams: Streams
    queues: Queues
    last_anywhere: Columns
    """The stream of each process's last work."""
    last_here: Columns
    """The stream of each device's last work."""
    last_ordered: Columns
    """The same of work that the legacy stream orders."""
    recorded: Columns
    """When the work before each event is done."""
    recorded_work: Columns
    """The last work of its stream before each event, if that is when this work is done; otherwise -1;"""
    recorded_number: Columns
    """and its number."""
    awaited_work: Columns
    """For each stream, the work of another one that it waits for by an event, and -1 for none;"""
    awaited_number: Columns
    """its number;"""
    own_end: Columns
    """and when its own work is done."""
    read_ahead: Columns
    """One number, which means nothing (`read_ahead`)."""


def fit(trace: Trace, rules: Rules, fitted: Fitted) -> tuple[int, int]:
    """Simulate the run as it was, and make the GPU's times agree with the waits.

    `gpu` contains the expected nanoseconds of each enqueuing row's work, and is corrected in place. No work lasts
    beyond the end of a wait for it. A wait that ends later than expected by more than `allowed` for the last work, or
    by more than `excused` for the wait's site, shows that this work took longer, by all of that time but `tolerance`.
    The rest of a wait goes into `latency`: the time from the end of the work until the CPU continues or, as a negative
    number (-1 - wait), a wait for nothing known. `ready` receives, for each row, when all earlier work of its process
    was done.

    Returns the nanoseconds of waiting that the GPU's work explains, and those of all waiting.
    """
    state = at_the_start(trace)
    explained = 0
    waited = 0
    order, action, start, duration, wait = trace.order, trace.action, trace.start, trace.duration, trace.wait
    gpu, ready, latency, number = fitted.gpu, fitted.ready, fitted.latency, state.read_ahead
    scattered = len(trace.process_of_thread) - len(trace.legacy) >= SCATTERED
    for place in range(len(action)):
        if scattered and place % AHEAD == 0:
            number[0] = read_ahead(trace, fitted, state, place)
        row = row_at(order, place)
        process = process_of(trace, row)
        does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
        ready[row] = latest_of(state, trace, process)
        latency[row] = -1 - wait[row]
        waited += wait[row]
        if does in (ENQUEUE, ENQUEUE_AND_WAIT):
            enqueue(state, trace, rules.pause, gpu, row, start[row] + duration[row] - wait[row])
        if does in (RECORD_EVENT, STREAM_WAIT_EVENT):
            order_by_event(state, trace, gpu, row)
        elif ENQUEUE_AND_WAIT <= does <= WAIT_EVENT:
            explained += fit_wait(state, trace, rules, fitted, row)
        if does == WAIT_AND_ENQUEUE:
            enqueue(state, trace, rules.pause, gpu, row, start[row] + duration[row])
    return explained, waited


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
        number ^= fitted.gpu[row] ^ fitted.ready[row] ^ fitted.latency[row]
        number ^= state.queues.before[row] ^ state.queues.begun[row]
    return number


@inlined
def at_the_start(trace: Trace) -> State:
    """Return the state before the first call."""
    streams, processes = len(trace.gpu_of_stream) - 1, len(trace.legacy)
    gpus = int(trace.first_gpu[processes])
    return State(
        over=np.zeros(streams + 1, np.int64),
        streams=streams_of(trace.gpu_of_stream[:streams], gpus),
        queues=queues_of(trace.start, trace.duration, trace.wait, trace.action, streams),
        last_anywhere=np.full(processes, -1, np.int64),
        last_here=np.full(gpus, -1, np.int64),
        last_ordered=np.full(processes, -1, np.int64),
        recorded=np.zeros(trace.events + 1, np.int64),
        recorded_work=np.full(trace.events + 1, -1, np.int64),
        recorded_number=np.zeros(trace.events + 1, np.int64),
        awaited_work=np.full(streams + 1, -1, np.int64),
        awaited_number=np.zeros(streams + 1, np.int64),
        own_end=np.zeros(streams + 1, np.int64),
        read_ahead=np.zeros(1, np.int64),
    )


@inner
def is_legacy(trace: Trace, row: int) -> bool:
    """Return whether a row's stream is its process's legacy default stream."""
    legacy = trace.legacy[process_of(trace, row)]
    return bool(legacy >= 0 and legacy == trace.stream[row])


@inner
def gpu_of(trace: Trace, process: int, stream: int) -> int:
    """Return the device of a stream; the first of the process for work of no known stream."""
    return index(trace.gpu_of_stream[stream] if stream >= 0 else trace.first_gpu[process])


@inner
def latest_of(state: State, trace: Trace, process: int) -> int:
    """Return when all work of a process is done."""
    end = 0
    for gpu in range(trace.first_gpu[process], trace.first_gpu[process + 1]):
        end = max(end, latest(state.streams, gpu))
    return end


@inner
def ordered_of(state: State, trace: Trace, process: int) -> int:
    """Return when all is done that the legacy stream of a process orders."""
    end = 0
    for gpu in range(trace.first_gpu[process], trace.first_gpu[process + 1]):
        end = max(end, ordered(state.streams, gpu))
    return end


@inner
def work_until(state: State, trace: Trace, process: int, stream: int, end: int) -> None:
    """Let the work of a stream be over at `end`: its own, with all of its device, and with all that the legacy stream
    orders.
    """
    state.over[stream] = end
    apart = trace.apart[stream] or trace.legacy[process] < 0  # without a legacy stream, nobody asks what it orders
    set_end(state.streams, gpu_of(trace, process, stream), stream, apart, end)


@inner
def enqueue(state: State, trace: Trace, pause: int, gpu: Columns, row: int, arrival: int) -> None:
    """Let the GPU do a row's work, which arrives then, after what comes before it, and the pause after that."""
    lane, process = trace.stream[row], process_of(trace, row)
    legacy = trace.legacy[process]
    await_other(state, trace, gpu, process, lane)
    state.awaited_work[lane] = -1
    first = arrival
    if state.over[lane] > 0:
        first = max(first, state.over[lane] + (pause if gpu[row] > 0 else 0))
    if is_legacy(trace, row):
        first = max(first, ordered_of(state, trace, process))
    elif legacy >= 0 and not trace.apart[lane]:
        first = max(first, state.over[legacy])
    work_until(state, trace, process, lane, first + gpu[row])
    append(state.queues, lane, row, first)
    device = gpu_of(trace, process, lane)
    if lane >= 0:
        list_pending(state.streams, device, lane, trace.apart[lane])
    state.last_anywhere[process] = lane
    state.last_here[device] = lane
    if not trace.apart[lane]:
        state.last_ordered[process] = lane


@inner
def order_by_event(state: State, trace: Trace, gpu: Columns, row: int) -> None:
    """Record an event, or let a stream wait for it."""
    lane, process, event = trace.stream[row], process_of(trace, row), trace.event[row]
    if trace.action[row] == RECORD_EVENT:
        await_other(state, trace, gpu, process, lane)
        legacy = is_legacy(trace, row)
        state.recorded[event] = ordered_of(state, trace, process) if legacy else state.over[lane]
        work, number = -1 if legacy else int(state.queues.last[lane]), state.queues.number[lane]
        ends_it = work >= 0 and begun_at(state.queues, lane, work, number) + gpu[work] == state.over[lane]
        state.recorded_work[event] = work if ends_it else -1
        state.recorded_number[event] = number
        return
    end = end_of_event(state, trace, gpu, event)
    if end > state.over[lane]:
        state.own_end[lane] = state.over[lane]
        state.awaited_work[lane] = state.recorded_work[event]
        state.awaited_number[lane] = state.recorded_number[event]
        work_until(state, trace, process, lane, end)


@inner
def end_of_event(state: State, trace: Trace, gpu: Columns, event: int) -> int:
    """Return when the work before an event is done, as far as waits have shown since it was recorded."""
    work = state.recorded_work[event]
    if work < 0:
        return int(state.recorded[event])
    begun = begun_at(state.queues, trace.stream[work], work, state.recorded_number[event])
    return int(min(state.recorded[event], begun + gpu[work]))


@inner
def await_other(state: State, trace: Trace, gpu: Columns, process: int, stream: int) -> None:
    """Let a stream wait for the work of another one no longer than waits have shown since that this work took."""
    work = state.awaited_work[stream]
    if work < 0:
        return
    begun = begun_at(state.queues, trace.stream[work], work, state.awaited_number[stream])
    end = max(state.own_end[stream], begun + gpu[work])
    if end < state.over[stream]:
        work_until(state, trace, process, stream, end)


@inner
def fit_wait(state: State, trace: Trace, rules: Rules, fitted: Fitted, row: int) -> int:
    """Make the GPU's times agree with a wait; return the nanoseconds of it that the GPU's work explains."""
    lane, process, wait = trace.stream[row], process_of(trace, row), trace.wait[row]
    works_first = trace.action[row] in (ENQUEUE_AND_WAIT, SET_AND_WAIT)
    after = trace.start[row] + (trace.duration[row] - wait if works_first else 0)
    end = after + wait
    seen = max(min(end, int(rules.shown[row])), after) if len(rules.shown) > 0 else end
    blocks = wait > rules.threshold
    for_event = trace.action[row] == WAIT_EVENT
    if lane >= 0:
        await_other(state, trace, fitted.gpu, process, lane)
    if for_event:
        target = end_of_event(state, trace, fitted.gpu, trace.event[row])
    elif trace.action[row] == WAIT_CONTEXT:
        target = latest(state.streams, trace.gpu_of_stream[lane]) if lane >= 0 else latest_of(state, trace, process)
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
        fitted.ready[row] = latest_of(state, trace, process)  # as the wait has shown
    if not for_event:
        settle(state, trace, row)
    if target > after:
        fitted.latency[row] = end - target
    return int(wait if target > after or not blocks else 0)


@inner
def waited_gpus(trace: Trace, process: int, stream: int) -> range:
    """Return the devices that a wait for a stream, or for the device that it is on, is about; of no stream (-1), all of
    the process.
    """
    if stream >= 0:
        return range(trace.gpu_of_stream[stream], trace.gpu_of_stream[stream] + 1)
    return range(trace.first_gpu[process], trace.first_gpu[process + 1])


@inner
def settle(state: State, trace: Trace, row: int) -> None:
    """Forget the work that a row has waited for, which is for no event."""
    lane, process = trace.stream[row], process_of(trace, row)
    for gpu in waited_gpus(trace, process, lane):
        if trace.action[row] == WAIT_CONTEXT:
            unlist_pending(state.streams, state.queues.last, 2 * gpu)
            unlist_pending(state.streams, state.queues.last, 2 * gpu + 1)
        elif is_legacy(trace, row):
            unlist_pending(state.streams, state.queues.last, 2 * gpu)
    if lane >= 0:
        state.queues.last[lane] = -1


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
    if work < 0 or end - min(rules.allowed[work], rules.excused[trace.site[row]]) <= target:
        return target
    done = end - rules.tolerance
    begun = begun_at(state.queues, stream, work, state.queues.number[stream])
    if done <= begun:
        return target
    gpu[work] = done - begun
    work_until(state, trace, process, stream, done)
    return done


@inner
def last_of_all(state: State, trace: Trace, process: int, waited: int) -> int:
    """Return the stream whose work a wait for everything, or for the device of the stream `waited`, waited for: the one
    that got work last, unless something has waited for that before; then the one whose work is over last, or -1.
    """
    newest = int(state.last_anywhere[process] if waited < 0 else state.last_here[trace.gpu_of_stream[waited]])
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
