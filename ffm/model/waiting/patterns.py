"""Patterns of waiting in a run, after CASITA (Dietrich 2019, Table 4.1 and appendix): how often, and for how long.

The GPU's idle time is that of each device that a process uses, between the first and the last piece of the process's
work there; of all of them together if it is not known which device a stream is on. Where definitions leave a choice,
the dissertation counts and not CASITA's code: a wait lasts until the last task is over, not until the call returns, and
work on kernels counts once, however many streams run kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import is_one_of
from ffm.model.device import PURE_WAITS, Action, DeviceWork
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.grouping import parts
from ffm.model.timeline import Kind, Timeline
from ffm.model.union import Union, lengths
from ffm.model.waiting.call_patterns import consecutive_transfers, offloads, polling
from ffm.model.waiting.graph import LATEST_LAUNCH_NS, Graph
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.thread_patterns import Reason, find_thread_waits

LONGEST = 1 << 62
"""No time is longer, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """How often something occurred, and the nanoseconds that it took together."""

    count: int
    lasting: int


@dataclass(frozen=True, slots=True)
class GpuUse:
    """How one process used a GPU between its first and last work there. Nanoseconds."""

    process: int
    device: int | None
    """None if it is not known: then all GPUs of the process count as one."""
    lasting: int
    """From the start of the first work to the end of the last."""
    idle: int
    """Without any work."""
    compute_idle: int
    """Without a kernel."""
    copy_overlap: int
    """With a kernel and a transfer at once."""

    @property
    def unhidden(self) -> int:
        """With transfers alone: compute idle time that is not idle."""
        return self.compute_idle - self.idle


@dataclass(frozen=True, slots=True)
class Patterns:
    """What CASITA would find in a run with one kind of device."""

    early: Pattern
    """Waits for GPU work that was not yet over (early blocking synchronization)."""
    early_on_kernels: int
    """The nanoseconds of these during which a kernel ran."""
    late: Pattern
    """Synchronizations for work that was over already; the time that the calls took."""
    late_transfer: Pattern
    """Kernels that could only begin after a transfer that no kernel hid; from the transfer's start to the kernel's."""
    launch_delay: Pattern
    """From the start of a launch to the start of its work, where the work waited for nothing else. Empty unless a
    profiler recorded when work began.
    """
    late_sender: Pattern
    """Receivers that came before their senders; how long they waited for these."""
    late_receiver: Pattern
    """Senders that were seen to wait for their receivers."""
    collective: Pattern
    """Processes that came to a collective operation before the last one."""
    barrier: Pattern
    """Threads of one process that came to a barrier before the last one."""
    imbalance: Pattern
    """Threads that ended before the last of those joined together."""
    locks: Pattern
    """Threads that requested a lock that another one held, and how long they waited for its release."""
    polling: Pattern
    """Runs of queries that found a stream or an event unfinished, and what these calls took."""
    offload: Pattern
    """Waits for nothing but work that the same call or the one before it put on the GPU, and what that work took."""
    consecutive: Pattern
    """Transfers that directly follow another one of their direction; what they, and the rest of their calls, took."""
    gpu: list[GpuUse]


def find_patterns(timeline: Timeline, work: DeviceWork, graph: Graph, meetings: Meetings) -> Patterns:
    """Find the patterns of a run. O(n log n)."""
    caused = graph.cause >= 0
    late = is_one_of(work.action, PURE_WAITS) & ~caused & (timeline.kind == Kind.SYNCHRONIZATION)
    works = graph.works
    transfer = works & (timeline.kind == Kind.TRANSFER)
    kernel = works & ~transfer
    own_first = is_one_of(work.action, (Action.ENQUEUE_AND_WAIT, Action.SET_AND_WAIT))
    on_kernels, late_count, late_ns = 0, 0, 0
    met = find_thread_waits(timeline, work, meetings)
    if work.one_gpu and works.any():
        use = [_gpu_use(work, graph, 0, slice(None), transfer)]
    else:
        by_gpu = work.rows_by_gpu(np.flatnonzero(works), timeline.thread)
        use = [_gpu_use(work, graph, gpu, rows, transfer[rows]) for gpu, rows in by_gpu]
    for number in range(work.processes):
        # Of one process all rows are its own: looking that up takes longer than the passes do.
        mine = np.True_ if work.processes == 1 else (work.process_of_thread == number)[timeline.thread]
        working = kernel & mine
        if not working.any():
            continue
        kernels = Union.of(graph.gpu_begin[working], graph.gpu_end[working])
        waits = np.flatnonzero(caused & mine)
        for part in parts(len(waits)):
            rows = waits[part]
            own = np.where(own_first[rows], own_before_wait(timeline, work, rows), 0)
            begin = timeline.start[rows] + own
            on_kernels += int(kernels.within(begin, begin + graph.waited[rows]).sum())
        after = np.flatnonzero(working & (graph.gpu_after >= 0))
        before = graph.gpu_after[after]
        since, until = graph.gpu_begin[before], graph.gpu_end[before]
        delayed = transfer[before] & (kernels.within(since, until) < until - since)
        late_count += int(delayed.sum())
        late_ns += int((graph.gpu_begin[after] - since)[delayed].sum())
    return Patterns(
        early=Pattern(int(caused.sum()), int(graph.waited.sum())),
        early_on_kernels=on_kernels,
        late=Pattern(int(late.sum()), int(timeline.duration[late].sum())),
        late_transfer=Pattern(late_count, late_ns),
        launch_delay=launch_delay(timeline, work, graph),
        late_sender=Pattern(*met.of(Reason.SENDER)),
        late_receiver=Pattern(*met.of(Reason.RECEIVER)),
        collective=Pattern(*met.of(Reason.COLLECTIVE)),
        barrier=Pattern(*met.of(Reason.BARRIER)),
        imbalance=Pattern(*met.of(Reason.JOIN)),
        locks=Pattern(*met.of(Reason.LOCK)),
        polling=Pattern(*polling(timeline, work)),
        offload=Pattern(*offloads(timeline, work, graph)),
        consecutive=Pattern(*consecutive_transfers(timeline, work, graph)),
        gpu=use,
    )


def launch_delay(timeline: Timeline, work: DeviceWork, graph: Graph) -> Pattern:
    """Return the time from launches to work that waited for nothing else: CASITA's kernel startup delay."""
    if work.began is None:
        return Pattern(0, 0)
    delay = graph.gpu_begin - timeline.start
    alone = graph.works & (graph.gpu_after < 0) & (work.action == Action.ENQUEUE) & (timeline.kind != Kind.TRANSFER)
    alone &= delay <= timeline.duration + LATEST_LAUNCH_NS
    return Pattern(int(alone.sum()), int(delay[alone].sum()))


def _gpu_use(
    work: DeviceWork, graph: Graph, gpu: int, rows: NDArray[np.int64] | slice, transfers: NDArray[np.bool_]
) -> GpuUse:
    """Return the use of a GPU by the work of some rows, as far as they have any; some are transfers."""
    begin, end = graph.gpu_begin[rows], graph.gpu_end[rows]
    works = end > begin
    lasting = int(end.max(where=works, initial=-LONGEST) - begin.min(where=works, initial=LONGEST))
    everything, copies, kernels = lengths(begin, end, transfers)
    process, device = work.gpu_named(gpu)
    return GpuUse(
        process=process,
        device=None if work.stream_device is None else device,
        lasting=lasting,
        idle=lasting - everything,
        compute_idle=lasting - kernels,
        copy_overlap=kernels + copies - everything,
    )
