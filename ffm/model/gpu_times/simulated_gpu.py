"""The GPU of a run as it was, in the part of Python that Numba compiles: what is on its streams, and when that is done.

As in `ffm.model.kernels`, nothing is compiled here. Columns are those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inlined, inner
from ffm.model.gpu_times.queues import Queues, append, begun_at, queues_of
from ffm.model.gpu_times.stream_ends import (
    Streams,
    latest,
    list_pending,
    ordered,
    set_end,
    streams_of,
    unlist_pending,
)
from ffm.model.numbers import RECORD_EVENT, WAIT_CONTEXT
from ffm.model.visits import is_legacy, process_of

Columns = NDArray[Any]


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
    after_wait: Columns
    """`DeviceWork.behind`."""
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    gpu_of_stream: Columns
    """The columns of `ffm.model.device.Gpus`."""
    first_gpu: Columns
    events: int


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


@inlined
def at_the_start(trace: Trace) -> State:
    """Return the state before the first call."""
    streams, processes = len(trace.gpu_of_stream) - 1, len(trace.legacy)
    gpus = int(trace.first_gpu[processes])
    return State(
        over=np.zeros(streams + 1, np.int64),
        streams=streams_of(trace.gpu_of_stream[:streams], gpus),
        queues=queues_of(trace.start, trace.duration, trace.wait, trace.action, trace.after_wait, streams),
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
def device_of(trace: Trace, stream: int) -> int:
    """Return the device of a stream; if there is only one device, no column needs to tell."""
    return index(trace.gpu_of_stream[stream]) if len(trace.gpu_of_stream) > 0 else 0


@inner
def gpu_of(trace: Trace, process: int, stream: int) -> int:
    """Return the device of a stream; the first of the process for work of no known stream."""
    return device_of(trace, stream) if stream >= 0 else index(trace.first_gpu[process])


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
def waited_gpus(trace: Trace, process: int, stream: int) -> range:
    """Return the devices that a wait for a stream, or for the device that it is on, is about; of no stream (-1), all of
    the process.
    """
    if stream >= 0:
        return range(device_of(trace, stream), device_of(trace, stream) + 1)
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
