"""The pass of `ffm.model.estimators.simulation.passes` over a run of one thread, in the subset of Python that Numba
compiles: the same rules, with the numbers of the thread and its process in registers.
"""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import inlined, inner
from ffm.model.estimators.simulation.passes import visit_rows
from ffm.model.estimators.simulation.state import Fix, Gpu, Manner, Probes, Removed, State, Trace
from ffm.model.estimators.simulation.threads import wait_at_the_end
from ffm.model.registers import registers
from ffm.model.thread_relations_kernels import Family


def is_of_one_thread(trace: Trace, family: Family) -> bool:
    """Return whether a run has one thread, which waits for no other one."""
    alone = len(trace.process_of_thread) == 1 and len(trace.legacy) == 1
    return alone and len(family.locks.goes_on) == 0 and family.encounters.total == 0


def replay_lone(
    trace: Trace, times: Gpu, family: Family, fix: Fix, manner: Manner, probes: Probes, state: State, until: int
) -> None:
    """Simulate such a run; arguments as for `ffm.model.estimators.simulation.passes.replay_group`."""
    own = in_registers(state)
    visit_rows(without_threads(trace), times, family, fix, manner, probes, own, until)
    put_back(own, state)
    if until == len(trace.start):
        wait_at_the_end(state)


@inlined
def in_registers(state: State) -> State:
    """Return the state with the numbers of the thread and of its process in registers. What belongs to streams, devices
    and events stays where it is, and what belongs to relations of threads is not used.
    """
    removed = state.removed
    return State(
        early=registers((state.early[0],)),
        over=state.over,
        latest=registers((state.latest[0],)),
        latest_on=state.latest_on,
        legacy_latest=registers((state.legacy_latest[0],)),
        engines=state.engines,
        newest=state.newest,
        recorded=state.recorded,
        recorded_on=state.recorded_on,
        ordered=registers((state.ordered[0],)),
        removed=Removed(
            target=registers((removed.target[0],)),
            over=registers((removed.over[0],)),
            waking=registers((removed.waking[0],)),
            scope=registers((removed.scope[0],)),
            latency=registers((removed.latency[0],)),
            ended=registers((removed.ended[0],)),
        ),
        removed_last=registers((state.removed_last[0],)),
        moved_until=registers((state.moved_until[0],)),
        moved_for=registers((state.moved_for[0],)),
        late=state.late,
        last=state.last,
        touched=state.touched,
        ended=state.ended,
        let_go=state.let_go,
        came=state.came,
        waiting=state.waiting,
        reached=state.reached,
    )


@inner
def put_back(own: State, state: State) -> None:
    """Write what was in registers into the state."""
    state.early[0] = own.early[0]
    state.latest[0] = own.latest[0]
    state.legacy_latest[0] = own.legacy_latest[0]
    state.ordered[0] = own.ordered[0]
    state.removed.target[0] = own.removed.target[0]
    state.removed.over[0] = own.removed.over[0]
    state.removed.waking[0] = own.removed.waking[0]
    state.removed.scope[0] = own.removed.scope[0]
    state.removed.latency[0] = own.removed.latency[0]
    state.removed.ended[0] = own.removed.ended[0]
    state.removed_last[0] = own.removed_last[0]
    state.moved_until[0] = own.moved_until[0]
    state.moved_for[0] = own.moved_for[0]


@inlined
def without_threads(trace: Trace) -> Trace:
    """Return the run without the columns that tell threads apart, so that `ffm.model.visits.is_lone` is true of it."""
    return Trace(
        order=np.empty(0, np.int64),
        thread=np.empty(0, np.int32),
        start=trace.start,
        duration=trace.duration,
        wait=trace.wait,
        kind=trace.kind,
        problem=trace.problem,
        first_use=trace.first_use,
        site=trace.site,
        action=trace.action,
        stream=trace.stream,
        event=trace.event,
        partner=trace.partner,
        copied=trace.copied,
        after_wait=trace.after_wait,
        process_of_thread=registers((0,)),
        legacy=trace.legacy,
        apart=trace.apart,
        stream_process=trace.stream_process,
        gpu_of_stream=trace.gpu_of_stream,
        first_gpu=trace.first_gpu,
        events=trace.events,
        related=False,
        shortened=trace.shortened,
        engine=trace.engine,
    )
