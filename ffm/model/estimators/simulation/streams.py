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
    length = int(times.gpu[row])
    if len(times.beside) > 0 and length > 0 and trace.engine[row] > 0:
        work_until(state, trace, row, over_on_engine(state, trace, times, manner, row, first))
    else:
        work_until(state, trace, row, first + length)


@inner
def over_on_engine(state: State, trace: Trace, times: Gpu, manner: Manner, row: int, ready: int) -> int:
    """Return when the engine that a row's work needs has done it, if it could begin at `ready`.

    It also begins in the pause before that engine's latest work, which then begins later if the pause is too short.
    Kernels that may run beside others begin before those that need the engine alone, or when these are over, and do not
    keep the engine.
    """
    needs = trace.engine[row]
    engine = index(ENGINES * trace.gpu_of_stream[trace.stream[row]] + min(needs, KERNELS) - 1)
    place = index(3 * engine)
    free, begin, end = state.engines[place], state.engines[place + 1], state.engines[place + 2]
    in_pause = max(ready, free) < begin
    wait = max((free if in_pause else end) - ready, 0)
    length = int(times.gpu[row])
    if manner.as_measured:
        times.beside[row] = wait
        wait = 0
    elif contains_wait(times, manner, row):
        length -= int(times.beside[row])
    else:
        wait = max(wait - int(times.beside[row]), 0)
    first = ready + wait
    over = first + length
    if needs == PERHAPS_KERNELS and not manner.kernels_wait:
        return int(over)
    if in_pause:
        state.engines[place] = max(free, over)
        if manner.as_measured:
            times.delays[row] = max(over - begin, 0)
        else:
            begin_later(state, trace, engine, over - begin - times.delays[row])
        return int(over)
    if first > end:
        state.engines[place] = end
        state.engines[place + 1] = first
    state.engines[place + 2] = max(end, over)
    state.newest[engine] = row
    return int(over)


@inner
def contains_wait(times: Gpu, manner: Manner, row: int) -> bool:
    """Return whether what a row's work waited for its engine, as measured, is part of its own time.

    Otherwise it ran beside other work, and still does: because it is only assumed that such kernels wait, or because it
    lasted no longer than that wait.
    """
    return bool(not manner.kernels_wait and times.beside[row] < times.gpu[row])


@inner
def begin_later(state: State, trace: Trace, engine: int, later: int) -> None:
    """Let the latest work of an engine begin so much later, if at all.

    Its own stream is told, unless it has more work by now. Work of other streams that comes directly before it, in the
    same stretch without a pause, is not.
    """
    if later <= 0:
        return
    newest, place = state.newest[engine], index(3 * engine)
    lane, end = trace.stream[newest], state.engines[place + 2]
    state.engines[place + 1] += later
    state.engines[place + 2] += later
    if state.over[lane] == end:
        stream_until(state, trace, process_of(trace, newest), lane, end + later)


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
