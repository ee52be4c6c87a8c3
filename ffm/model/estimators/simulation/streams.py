"""When the work of streams is over: in order, behind events and behind the legacy default stream's."""

from __future__ import annotations

from ffm.model.compiled import index, inner
from ffm.model.estimators.simulation.state import ENGINES, KERNELS, PERHAPS_KERNELS, Gpu, Manner, State, Trace
from ffm.model.numbers import RECORD_EVENT
from ffm.model.visits import is_legacy, process_of, thread_of


@inner
def let_gpu_be_early(state: State, trace: Trace, times: Gpu, row: int) -> None:
    """Let the GPU be early by as much as the CPU."""
    thread, process = thread_of(trace, row), process_of(trace, row)
    state.latest[process] = trace.start[row] + times.left[row] - state.early[thread]
    state.legacy_latest[process] = state.latest[process]
    for number in range(len(trace.stream_process)):
        if trace.stream_process[number] == process:
            state.over[number] = state.latest[process]
            state.latest_on[trace.gpu_of_stream[number]] = state.latest[process]


@inner
def enqueue(state: State, trace: Trace, times: Gpu, manner: Manner, row: int, now: int) -> None:
    """Let the GPU do a row's work after what comes before it, and the pause after that."""
    lane, process = trace.stream[row], process_of(trace, row)
    legacy = trace.legacy[process]
    first = max(now, state.ordered[process])
    if state.over[lane] > 0:
        first = max(first, state.over[lane] + (times.pause if times.gpu[row] > 0 else 0))
    if is_legacy(trace, row):
        first = max(first, state.legacy_latest[process])
    elif legacy >= 0 and not trace.apart[lane]:
        first = max(first, state.over[legacy])
    if len(times.beside) > 0 and times.gpu[row] > 0:
        first = begin_on_engine(state, trace, times, manner, row, first)
    work_until(state, trace, row, first + int(times.gpu[row]))


@inner
def begin_on_engine(state: State, trace: Trace, times: Gpu, manner: Manner, row: int, ready: int) -> int:
    """Return when the engine that a row's work needs begins it, if it could begin at `ready`.

    It may also begin in the pause before that engine's latest work. Kernels that may run beside others begin before
    those that need the engine alone, or when these are over, and do not keep the engine.
    """
    needs = trace.engine[row]
    if needs == 0:
        return ready
    beside = needs == PERHAPS_KERNELS and not manner.kernels_wait
    engine = index(min(needs, KERNELS)) - 1
    place = index(3 * (ENGINES * trace.gpu_of_stream[trace.stream[row]] + engine))
    free, begin, end = state.engines[place], state.engines[place + 1], state.engines[place + 2]
    length = int(times.gpu[row])
    before = max(ready, free) + (1 if beside else length) <= begin
    wait = max((free if before else end) - ready, 0)
    if manner.as_measured:
        times.beside[row] = wait
        wait = 0
    else:
        wait = max(wait - int(times.beside[row]), 0)
    first = ready + wait
    if beside:
        return int(first)
    if before:
        state.engines[place] = max(free, first + length)
    else:
        if first > end:
            state.engines[place] = end
            state.engines[place + 1] = first
        state.engines[place + 2] = max(end, first + length)
    return int(first)


@inner
def work_until(state: State, trace: Trace, row: int, end: int) -> None:
    """Note that the work of a row's stream is over at `end`: for the stream itself, for all of its process, and for all
    that the legacy stream orders.
    """
    stream_until(state, trace, process_of(trace, row), trace.stream[row], end)


@inner
def stream_until(state: State, trace: Trace, process: int, lane: int, end: int) -> None:
    """Note that the work of a stream of a process is over at `end`, as `work_until` does."""
    state.over[lane] = end
    state.latest[process] = max(state.latest[process], end)
    gpu = trace.gpu_of_stream[lane]
    state.latest_on[gpu] = max(state.latest_on[gpu], end)
    if not trace.apart[lane]:
        state.legacy_latest[process] = max(state.legacy_latest[process], end)


@inner
def order_by_event(state: State, trace: Trace, row: int) -> None:
    """Record an event, or let a stream wait for it."""
    lane, process, event = trace.stream[row], process_of(trace, row), trace.event[row]
    if trace.action[row] == RECORD_EVENT:
        state.recorded[event] = state.legacy_latest[process] if is_legacy(trace, row) else state.over[lane]
        state.recorded_on[event] = lane
    else:
        work_until(state, trace, row, max(state.over[lane], state.recorded[event]))
