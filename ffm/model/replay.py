"""The `replay` estimator: simulates the run again, on the CPU and the GPU, with some problems fixed.

Both timelines are as the trace shows them (the GPU's as `ffm.model.gpu_times` infers it). A fix removes or moves
operations. Everything after them moves up as far as the order of streams, events, the legacy default stream and the
remaining synchronizations allows. What the fix saves is how much earlier the run ends. Unlike in `ffm.model.carry`, the
GPU limits how much of a removed wait can be saved, and GPU work that the wait had delayed runs sooner.

What a fix does to a row:

- **Unnecessary synchronization**: its wait disappears; an explicit one disappears entirely. So does the latency that
  ended it, unless a later wait still has to wait for the same work: that one then wakes as late.
- **Free**: the memory is kept for the next allocation at its place (`ffm.model.hoisting`), and both calls disappear. If
  no allocation follows, the free comes later: its wait disappears, its own time stays.
- **Set** of memory that the CPU can access: the CPU does it, and neither waits nor keeps the GPU busy.
- **Misplaced synchronization**: the CPU waits at the first use instead; nothing is saved if the work lasts that long.
- **Unnecessary transfer**: the call and the GPU's copy disappear. So does its wait if that is unnecessary too;
  otherwise it remains as a wait for the stream's earlier work.

The trace does not show which thread waits for which on the CPU. If all calls of a thread are within one gap of another
thread, the other is assumed to have started it there and joined it. It then starts earlier by as much as its parent
does, and the parent continues earlier by as much as the joined thread does; if there are several, those that the fix
does not touch are assumed to wait for those that it does. If most of a thread's gaps end with a wait of another thread,
it is assumed to wait for that one in its gaps. The lower end of the interval assumes neither: there, each thread keeps
its pace. Likewise, the ranks of a program end together: the run's saving is the smallest among the ranks that the fix
touches.

`without` answers another question: what removing a synchronization would save although the program needs it, if the
need were met otherwise, such as by an event that orders streams, or by reading a status later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model import replay_kernels
from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times import GpuTimes, Inference
from ffm.model.timeline import Kind, Timeline

NANOSECONDS_IN_SECOND = 1e9

SET_BYTES_A_NANOSECOND = 10
"""Approximate speed at which a CPU sets memory: one core of a server from 2017 or later."""

WORTH_FOLLOWING_NS = 20_000
"""Shorter gaps and waits do not show which thread waits for which: waking a thread takes about as long."""

FOLLOWED_OFTEN = 10
"""This many gaps must end with another thread's waits before that is more than chance."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Seconds that a fix saves. `low_s` and `high_s` enclose `likely_s`. They are based on the slow and the fast
    timeline of the GPU, and on what is unknown about threads and ranks.
    """

    likely_s: float
    low_s: float
    high_s: float


_NO_ROWS = np.zeros(0, np.int64)
_NOTHING = replay_kernels.Fix(_NO_ROWS, np.zeros(0, np.int8), np.zeros(0, np.int32), group=0, needed=False)
"""Changes no row."""
_PROBES_STAY = replay_kernels.Probes(_NO_ROWS, _NO_ROWS, _NO_ROWS)


class Replay:
    """Replays one run for any number of groups of problems.

    Args:
        timeline: the operations, sorted by thread, then start.
        work: what they do on the GPU.
        inference: the GPU's times.
    """

    def __init__(self, timeline: Timeline, work: DeviceWork, inference: Inference) -> None:
        self._timeline = timeline
        self._work = work
        self.inference = inference
        self.planned = 1
        """How many replays are planned: compiling pays for many."""
        self._family = _family(timeline, work, inference.order)
        self._place = np.empty(len(timeline), np.int64)
        self._place[inference.order] = np.arange(len(timeline))
        self._ends = _thread_ends(timeline, len(work.process_of_thread))
        # If each process has one thread and one stream, stretches that run as before can be skipped.
        threads = np.bincount(work.process_of_thread, minlength=work.processes)
        streams = np.bincount(work.stream_process, minlength=work.processes)
        self._jump = bool((threads <= 1).all() and (streams <= 1).all() and work.events == 0)
        self._trace = replay_kernels.Trace(
            order=inference.order,
            thread=timeline.thread,
            start=timeline.start,
            duration=timeline.duration,
            wait=timeline.wait,
            kind=timeline.kind,
            problem=timeline.problem,
            first_use=timeline.first_use,
            action=work.action,
            stream=work.stream,
            event=work.event,
            partner=work.partner,
            copied=work.copied,
            process_of_thread=work.process_of_thread,
            legacy=work.legacy,
            stream_process=work.stream_process,
            events=work.events,
            spare=inference.spare,
        )

    def selected(self, rows: NDArray[np.bool_]) -> Replayed:
        """Return the seconds that fixing the problems of the selected rows together saves; `rows` has shape (n,)."""
        label = rows.view(np.int8) - np.int8(1)
        return self.by_group(label, np.zeros(1, np.int32), 1)[0]

    def without(self, rows: NDArray[np.bool_]) -> Replayed:
        """Return the seconds that removing the selected rows' waits would save although they are needed; shape (n,)."""
        label = rows.view(np.int8) - np.int8(1)
        members = np.sort(self._place[rows])
        return self._replay(replay_kernels.Fix(members, label, np.zeros(1, np.int32), group=0, needed=True))

    def by_group(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int, wanted: list[int] | None = None
    ) -> list[Replayed]:
        """Return the seconds that fixing each group alone saves; arguments as for `ffm.model.carry.carry_by_group`.

        `wanted` lists the groups to replay, by default all. Each takes one pass over the rows that it can change.
        """
        members = self._members(label, group_of, groups)
        numbers = range(groups) if wanted is None else wanted
        self.planned = max(self.planned, len(numbers))
        return [
            self._replay(replay_kernels.Fix(members[number], label, group_of, number, needed=False))
            for number in numbers
        ]

    def _members(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int
    ) -> list[NDArray[np.int64]]:
        """For each group, return the positions in `order` of the rows that its fix changes, including allocations."""
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

    def _replay(self, fix: replay_kernels.Fix) -> Replayed:
        if not len(fix.members):
            return Replayed(0.0, 0.0, 0.0)
        inference = self.inference
        touched = np.unique(self._timeline.thread[inference.order[fix.members]])
        # A jump visits a few rows for each changed one.
        visits = min(len(self._timeline), 20 * len(fix.members)) if self._jump else len(self._timeline)
        savings = []
        for times, strict in ((inference.likely, False), (inference.slow, True), (inference.fast, False)):
            early = self._run(visits, times, fix, strict=strict, jump=self._jump)
            savings.append(self._run_savings(early, touched))
        likely, slow, fast = savings
        low = min(slow[0], likely[0]) if len(self._family.parent) > 1 else min(slow[1], likely[1])
        return Replayed(likely[1], max(min(low, slow[1]), 0.0), max(likely[2], fast[2], slow[1]))

    def without_probes(self, probe: NDArray[np.int64]) -> Timeline:
        """Return the timeline as it would be if the probes had taken no time.

        `probe`, shape (n,), is the nanoseconds that probes took since the thread's previous row. If the CPU comes to a
        wait earlier, it waits longer for the GPU, so the run is not shorter by all of that time. If several threads of
        a process call the driver, it is not known well enough who waits for whom to move them against each other; then
        only the time between calls shrinks.
        """
        timeline, process = self._timeline, self._work.process_of_thread
        alone = (np.bincount(process)[process] == 1)[timeline.thread]
        start, wait = timeline.start.copy(), timeline.wait.copy()
        probes = replay_kernels.Probes(np.where(alone, probe, 0), start, wait)
        self._run(len(timeline), self.inference.likely, _NOTHING, strict=False, jump=False, probes=probes)
        duration = timeline.duration - timeline.wait + wait
        gap = timeline.gap.copy()
        following = timeline.thread[1:] == timeline.thread[:-1]
        between = start[1:] - (start + duration)[:-1] - np.where(alone, 0, probe)[1:]
        gap[:-1] = np.where(following, np.maximum(between, 0), gap[:-1])
        return replace(timeline, start=start, wait=wait, duration=duration, gap=gap)

    def _run(
        self,
        visits: int,
        times: GpuTimes,
        fix: replay_kernels.Fix,
        *,
        strict: bool,
        jump: bool,
        probes: replay_kernels.Probes = _PROBES_STAY,
    ) -> NDArray[np.int64]:
        """Make one pass over about this many rows; return the nanoseconds by which each thread ends earlier."""
        early: NDArray[np.int64] = run(
            replay_kernels.replay_group,
            3 * self.planned * visits,
            self._trace,
            replay_kernels.Gpu(times.gpu, times.ready, times.latency),
            self._family,
            fix,
            replay_kernels.Manner(strict, jump, SET_BYTES_A_NANOSECOND, self.inference.latency_ns),
            probes,
        )
        return early

    def _run_savings(self, early: NDArray[np.int64], touched: NDArray[np.integer]) -> tuple[float, float, float]:
        """Return the seconds by which the run ends earlier (at least, likely, at most), given the same for each thread.

        At least: determined by each process's last thread to end and, among processes, by the slowest. Likely: the
        smallest saving among any process's touched threads, including those that started them. At most: the largest
        saving of any thread.
        """
        family, process = self._family.parent, self._work.process_of_thread
        roots = np.unique(self._roots(touched))
        at_least = []
        for number in np.unique(process):
            mine = process == number
            ends = self._ends[mine]
            at_least.append(int(ends.max() - (ends - early[mine]).max()))
        by_root = [int(early[root]) for root in roots]
        unrooted = [int(early[thread]) for thread in touched if family[thread] < 0] or by_root
        likely = min(max(value, 0) for value in unrooted)
        most = int(early.max())
        return (
            max(min(at_least), 0) / NANOSECONDS_IN_SECOND,
            likely / NANOSECONDS_IN_SECOND,
            max(most, likely) / NANOSECONDS_IN_SECOND,
        )

    def _roots(self, threads: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the threads that started these, directly or indirectly."""
        found = threads.copy()
        while (self._family.parent[found] >= 0).any():
            found = np.where(self._family.parent[found] >= 0, self._family.parent[found], found)
        return found


def _family(timeline: Timeline, work: DeviceWork, order: NDArray[np.int64]) -> replay_kernels.Family:
    """Find threads that lived within one gap between two calls of another thread of the process."""
    threads = len(work.process_of_thread)
    parent = np.full(threads, -1, np.int32)
    forked = np.full(threads, -1, np.int64)
    joined = np.full(threads, -1, np.int64)
    follows = np.full(threads, -1, np.int32)
    if threads == work.processes:
        return replay_kernels.Family(parent, forked, joined, follows)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    begins = np.searchsorted(timeline.thread, np.arange(threads + 1))
    end = timeline.start + timeline.duration
    for thread in range(threads):
        first, last = begins[thread], begins[thread + 1] - 1
        if first > last:
            continue
        forked[thread] = place[first]
        for other in range(threads):
            if other == thread or work.process_of_thread[other] != work.process_of_thread[thread]:
                continue
            rows = slice(begins[other], begins[other + 1])
            after = int(np.searchsorted(timeline.start[rows], timeline.start[first])) + begins[other]
            inside = begins[other] < after < begins[other + 1] and end[after - 1] <= timeline.start[first]
            if inside and end[last] <= timeline.start[after]:
                parent[thread], joined[thread] = other, place[after]
                break
    for thread in range(threads):
        follows[thread] = _leader(timeline, work, begins, thread)
    return replay_kernels.Family(parent, forked, joined, follows)


def _leader(timeline: Timeline, work: DeviceWork, begins: NDArray[np.integer], thread: int) -> int:
    """Return the thread that this one's gaps wait for, because most of them end soon after one of its waits; else -1.

    Soon means within a quarter of the mean time between that thread's waits: chance would give a quarter of the gaps.
    """
    rows = slice(begins[thread], begins[thread + 1] - 1)
    waiting = timeline.gap[rows] > WORTH_FOLLOWING_NS
    goes_on = timeline.start[begins[thread] + 1 : begins[thread + 1]][waiting]
    if len(goes_on) < FOLLOWED_OFTEN:
        return -1
    best, leader = 0.5, -1
    for other in range(len(begins) - 1):
        if other == thread or work.process_of_thread[other] != work.process_of_thread[thread]:
            continue
        theirs = slice(begins[other], begins[other + 1])
        waits = timeline.wait[theirs] > WORTH_FOLLOWING_NS
        ends = (timeline.start[theirs] + timeline.duration[theirs])[waits]
        if len(ends) < FOLLOWED_OFTEN:
            continue
        last = np.searchsorted(ends, goes_on) - 1
        since = goes_on - ends[np.maximum(last, 0)]
        share = float((since[last >= 0] < np.diff(ends).mean() / 4).mean()) if (last >= 0).any() else 0.0
        if share > best:
            best, leader = share, other
    return leader


def _thread_ends(timeline: Timeline, threads: int) -> NDArray[np.int64]:
    """Return when each thread's last operation, and the gap after it, are over."""
    ends = np.zeros(threads, np.int64)
    np.maximum.at(ends, timeline.thread, timeline.start + timeline.duration + timeline.gap)
    return ends
