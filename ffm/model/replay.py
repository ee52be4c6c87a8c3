"""The `replay` estimator: lives through the run once more, on the CPU and the GPU, with some problems fixed.

Both timelines are as the trace shows them (the GPU's as `ffm.model.gpu_times` infers it). A fix takes operations away or
moves them; everything after moves up as far as the order of the streams, events, the legacy default stream and the
synchronizations that stay allow. What the end of the run moves is what the fix saves. In contrast to
`ffm.model.carry`, the GPU limits how much of a removed wait can be saved, and what was idle because of it runs sooner.

What a fix does to a row:

- **Unnecessary synchronization**: its wait goes, with the latency that ended it. An explicit synchronization goes whole.
- **Free**: the memory is kept for the next allocation at its place (`ffm.model.hoisting`): both calls go. Where no
  allocation follows, the free comes later: its wait goes, its own time stays.
- **Misplaced synchronization**: the CPU waits at the first use instead; nothing is saved if the work takes until then.
- **Unnecessary transfer**: the call and the GPU's copy go; its wait goes if it is unnecessary too, else it stays as a
  wait for the stream's earlier work.

Threads of a process meet in the GPU only: which of them waits for which on the CPU is not known. The run is shorter by as
much as the thread that ends last ends earlier. Ranks of a program end together; the saving is that of the rank
with the smallest among those that the fix touches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model import replay_kernels
from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times import GpuTimes, Inference, infer_gpu_times
from ffm.model.timeline import Kind, Timeline

NANOSECONDS_IN_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Replayed:
    """Seconds that a fix saves. `low_s` and `high_s` enclose `likely_s`: they rest on the slow and the fast timeline of
    the GPU, and on what is not known of threads and ranks."""

    likely_s: float
    low_s: float
    high_s: float


class Replay:
    """Replays one run for any number of groups of problems.

    Args:
        timeline: the operations, sorted by thread, then start.
        work: what they do on the GPU.
        inference: the GPU's times, if they are known already.
    """

    def __init__(self, timeline: Timeline, work: DeviceWork, inference: Inference | None = None) -> None:
        self._timeline = timeline
        self._work = work
        self.inference = inference or infer_gpu_times(timeline, work)
        self._place = np.empty(len(timeline), np.int64)
        self._place[self.inference.order] = np.arange(len(timeline))
        self._ends = _thread_ends(timeline, len(work.process_of_thread))
        # Where each process has one thread and one stream, stretches that run as before can be skipped.
        threads = np.bincount(work.process_of_thread, minlength=work.processes)
        streams = np.bincount(work.stream_process, minlength=work.processes)
        self._jump = bool((threads <= 1).all() and (streams <= 1).all() and work.events == 0)

    def selected(self, rows: NDArray[np.bool_]) -> Replayed:
        """Seconds that fixing the problems of the selected rows together saves; `rows` has shape (n,)."""
        label = rows.view(np.int8) - np.int8(1)
        return self.by_group(label, np.zeros(1, np.int32), 1)[0]

    def by_group(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int, wanted: list[int] | None = None
    ) -> list[Replayed]:
        """Seconds that fixing each group by itself saves; arguments as for `ffm.model.carry.carry_by_group`.

        `wanted` names the groups to replay, default all. A pass for each, over the rows that it can change.
        """
        members = self._members(label, group_of, groups)
        numbers = range(groups) if wanted is None else wanted
        return [self._replay(members[number], label, group_of, number) for number in numbers]

    def _members(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int
    ) -> list[NDArray[np.int64]]:
        """For each group the places in the order of the rows that its fix changes, allocations included."""
        timeline, partner = self._timeline, self._work.partner
        if len(group_of):
            group = np.where(label >= 0, group_of[np.maximum(label, 0)], -1).astype(np.int64)
        else:
            group = np.full(len(timeline), -1, np.int64)
        group[timeline.problem == 0] = -1
        served = np.flatnonzero((timeline.kind == Kind.ALLOCATION) & (partner >= 0))
        freed = partner[served]
        group[served] = np.where(timeline.problem[freed] & 1, group[freed], -1)
        rows = np.flatnonzero(group >= 0)
        by_group = rows[np.lexsort((self._place[rows], group[rows]))]
        ends = np.searchsorted(group[by_group], np.arange(groups + 1))
        return [self._place[by_group[ends[number] : ends[number + 1]]] for number in range(groups)]

    def _replay(
        self, members: NDArray[np.int64], label: NDArray[np.integer], group_of: NDArray[np.integer], group: int
    ) -> Replayed:
        if not len(members):
            return Replayed(0.0, 0.0, 0.0)
        likely, low, high = (
            self._early(times, members, label, group_of, group)
            for times in (self.inference.likely, self.inference.slow, self.inference.fast)
        )
        touched = np.unique(self._work.process_of_thread[self._timeline.thread[self.inference.order[members]]])
        best = self._run_saving(likely, touched)
        bounds = [self._run_saving(early, touched) for early in (low, high)]
        single = [self._thread_savings(early) for early in (likely, low, high)]
        lowest = min(best, *bounds, *(min(savings) for savings in single))
        highest = max(best, *bounds, *(max(savings) for savings in single))
        return Replayed(best, max(lowest, 0.0), highest)

    def _early(
        self,
        times: GpuTimes,
        members: NDArray[np.int64],
        label: NDArray[np.integer],
        group_of: NDArray[np.integer],
        group: int,
    ) -> NDArray[np.int64]:
        timeline, work = self._timeline, self._work
        # A jump visits a few rows for each one that is changed.
        visits = min(len(timeline), 20 * len(members)) if self._jump else len(timeline)
        early, _ = run(
            replay_kernels.replay_group,
            4 * visits,
            self.inference.order,
            timeline.thread,
            timeline.start,
            timeline.duration,
            timeline.wait,
            timeline.gap,
            timeline.kind,
            timeline.problem,
            timeline.first_use,
            work.action,
            work.stream,
            work.event,
            work.partner,
            work.process_of_thread,
            work.legacy,
            work.stream_process,
            work.events,
            times.gpu,
            times.ready,
            times.latency,
            members,
            label,
            group_of,
            group,
            int(self._jump),
        )
        saved: NDArray[np.int64] = early
        return saved

    def _thread_savings(self, early: NDArray[np.int64]) -> list[float]:
        return [float(saved) / NANOSECONDS_IN_SECOND for saved in early]

    def _run_saving(self, early: NDArray[np.int64], touched: NDArray[np.integer]) -> float:
        """Seconds by which the run ends earlier: the least of the touched processes'."""
        savings = []
        for process in touched:
            mine = self._work.process_of_thread == process
            ends = self._ends[mine]
            savings.append(float(ends.max() - (ends - early[mine]).max()))
        return max(min(savings), 0.0) / NANOSECONDS_IN_SECOND


def _thread_ends(timeline: Timeline, threads: int) -> NDArray[np.int64]:
    """When each thread's last operation, and the gap behind it, are over."""
    ends = np.zeros(threads, np.int64)
    np.maximum.at(ends, timeline.thread, timeline.start + timeline.duration + timeline.gap)
    return ends
