"""The pass of `ffm.model.gpu_times.kernels` over a run of one thread and one device, in the subset of Python that Numba
compiles: the same rules, with the numbers of these two in registers.
"""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined
from ffm.model.gpu_times.kernels import Fitted, Rules, fit_rows
from ffm.model.gpu_times.simulated_gpu import State, Trace, at_the_start
from ffm.model.gpu_times.stream_ends import Streams
from ffm.model.registers import registers


def is_of_one_device(trace: Trace) -> bool:
    """Return whether a run has one thread, and one device."""
    return len(trace.process_of_thread) == 1 and len(trace.legacy) == 1 and trace.first_gpu.tolist() == [0, 1]


def fit_lone(trace: Trace, rules: Rules, fitted: Fitted) -> tuple[int, int]:
    """Fit the times of such a run; arguments and result as for `ffm.model.gpu_times.kernels.fit`."""
    return fit_rows(without_threads(trace), rules, fitted, in_registers(at_the_start(trace)))


@inlined
def in_registers(state: State) -> State:
    """Return the state with the numbers of the process and of the device in registers. What belongs to streams, events
    and rows stays where it is.
    """
    streams = state.streams
    return State(
        over=state.over,
        streams=Streams(
            leaf=streams.leaf,
            tree=registers((0, streams.tree[1])),
            unnamed=registers((streams.unnamed[0],)),
            first=registers((0, streams.first[1])),
            stream=streams.stream,
            ends=streams.ends,
            ordered_ends=streams.ordered_ends,
            first_pending=streams.first_pending,
            next_pending=streams.next_pending,
            is_pending=streams.is_pending,
        ),
        queues=state.queues,
        last_anywhere=registers((state.last_anywhere[0],)),
        last_here=registers((state.last_here[0],)),
        last_ordered=registers((state.last_ordered[0],)),
        recorded=state.recorded,
        recorded_work=state.recorded_work,
        recorded_number=state.recorded_number,
        awaited_work=state.awaited_work,
        awaited_number=state.awaited_number,
        own_end=state.own_end,
        read_ahead=state.read_ahead,
    )


@inlined
def without_threads(trace: Trace) -> Trace:
    """Return the run without the columns that tell threads and devices apart, so that `ffm.model.visits.is_lone` is
    true of it.
    """
    return Trace(
        order=np.empty(0, np.int64),
        thread=np.empty(0, np.int32),
        start=trace.start,
        duration=trace.duration,
        wait=trace.wait,
        site=trace.site,
        action=trace.action,
        stream=trace.stream,
        event=trace.event,
        copied=trace.copied,
        after_wait=trace.after_wait,
        process_of_thread=registers((0,)),
        legacy=registers((trace.legacy[0],)),
        apart=trace.apart,
        gpu_of_stream=np.empty(0, np.int32),
        first_gpu=registers((0, 1)),
        events=trace.events,
    )
