"""The `replay` estimator: simulates the run again, on the CPU and the GPU, with some problems fixed.

Both timelines are as the trace shows them (the GPU's as `ffm.model.gpu_times` infers it). A fix removes or moves
operations. Everything after them moves up as far as the order of streams, events, the legacy default stream and the
remaining synchronizations allows. What the fix saves is how much earlier the run ends. Unlike in `ffm.model.carry`, the
GPU limits how much of a removed wait can be saved, and GPU work that the wait had delayed runs sooner.

What a fix does to a row:

- **Unnecessary synchronization**: its wait disappears; an explicit one disappears entirely. So does the latency that
  ended it, unless a later wait still has to wait for the same work: that one then wakes as late. For the lower end of
  the interval, it waits for as long as that latency again: what of it was the GPU's, and what was falling asleep and
  waking, cannot be seen.
- **Free**: the memory is kept for the next allocation at its place that it is large enough for (`ffm.model.hoisting`),
  and both calls disappear. If no such allocation follows, the free comes later: its wait disappears, and so does its
  own time if the memory is left to the process's end.
- **Set** of memory that the CPU can access: the CPU does it, and neither waits nor keeps the GPU busy.
- **Misplaced synchronization**: the CPU waits at the first use instead; nothing is saved if the work lasts that long.
- **Unnecessary transfer**: the call and the GPU's copy disappear. So does its wait if that is unnecessary too;
  otherwise it remains as a wait for the stream's earlier work.

The trace does not show which thread waits for which on the CPU. If all calls of a thread are within one gap of another
thread, the other is assumed to have started it there and joined it. It then starts earlier by as much as its parent
does, and the parent continues earlier by as much as the joined threads do. If most of a thread's gaps end with a wait
of another thread, it is assumed to wait for that one in its gaps. The lower end of the interval assumes neither: there,
each thread keeps its pace.

How much earlier several threads end together depends on what they do. Threads that share a call site run the same code
side by side: the last of them to end counts, as it does for ranks of a program. Threads without one do different things
for each other: they are assumed to wait for the one that becomes faster. So the largest saving of all such sets of
threads counts. Whatever else a fix touches, it never saves less for that.

`without` answers another question: what removing a synchronization would save although the program needs it, if the
need were met otherwise, such as by an event that orders streams, or by reading a status later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model import replay_kernels
from ffm.model.compiled import run
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import GpuTimes, Inference
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.waiting.fixed import SET_BYTES_A_NANOSECOND, Fixed, fixed_run
from ffm.model.waiting.graph import WORTH_FOLLOWING_NS, Threads

NANOSECONDS_IN_SECOND = 1e9

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
    touched_s: float = np.inf
    """What the changed calls, and their work on the GPU, took in all. Nothing comes earlier by more than that, whatever
    the times of everything else are: each only waits for the last of what comes before it.
    """


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
        self._expected = 1
        self._family = _family(timeline, work, inference.order)
        self._place = np.empty(len(timeline), np.int64)
        self._place[inference.order] = np.arange(len(timeline))
        self._ends = _thread_ends(timeline, len(work.process_of_thread))
        self._groups = _Groups(timeline, work, self._family)
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
        )

    @property
    def threads(self) -> Threads:
        """Which thread seems to have started, joined and followed which."""
        joined = self._family.joined
        rows = self.inference.order[joined.clip(0)] if len(self._timeline) else joined
        return Threads(self._family.parent, np.where(joined >= 0, rows, -1), self._family.follows)

    def expect(self, replays: int) -> None:
        """Say that about so many replays follow: compiling pays for many even if the table is small."""
        self._expected = max(self._expected, replays)

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
        self.expect(len(numbers))
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
        group[served] = np.where(timeline.problem[freed] & Problem.UNNECESSARY_SYNCHRONIZATION, group[freed], -1)
        rows = np.flatnonzero(group >= 0)
        by_group = rows[np.lexsort((self._place[rows], group[rows]))]
        ends = np.searchsorted(group[by_group], np.arange(groups + 1))
        return [self._place[by_group[ends[number] : ends[number + 1]]] for number in range(groups)]

    def _replay(self, fix: replay_kernels.Fix) -> Replayed:
        if not len(fix.members):
            return Replayed(0.0, 0.0, 0.0, 0.0)
        inference = self.inference
        # A jump visits a few rows for each changed one.
        visits = min(len(self._timeline), 20 * len(fix.members)) if self._jump else len(self._timeline)
        savings = []
        usual = inference.latency_ns
        for times, strict, recurs, waking in (
            (inference.likely, False, False, usual),
            (inference.slow, True, False, usual),
            (inference.fast, False, False, inference.waking_ns),
            (inference.fast, True, True, usual),
        ):
            manner = self._manner(strict=strict, jump=self._jump, recurs=recurs, waking=waking)
            early = self._run(visits, times, fix, manner)
            savings.append(self._groups.run_savings(self._ends, early))
        likely, slow, fast, recurring = savings
        certain = 0 if len(self._family.parent) > 1 else 1
        low = min(slow[certain], likely[certain], recurring[certain])
        return Replayed(likely[1], max(low, 0.0), max(likely[2], fast[2], slow[1]), self._touched_s(fix))

    def _touched_s(self, fix: replay_kernels.Fix) -> float:
        rows, inference = self.inference.order[fix.members], self.inference
        work = np.maximum.reduce([times.gpu[rows] for times in (inference.likely, inference.slow, inference.fast)])
        return float((self._timeline.duration[rows] + work).sum() / NANOSECONDS_IN_SECOND)

    def changed(self, saved: NDArray[np.int64], share: NDArray[np.float64]) -> Replayed:
        """Return the seconds that the run saves if parts of it take less time; a negative saving counts as none.

        Args:
            saved: nanoseconds of the CPU that disappear between the row's begin and the thread's next row, shape (n,).
            share: what share of its time the GPU's work of the row still takes, 0 to 1, shape (n,).
        """
        timeline = self._timeline
        if not len(timeline):
            return Replayed(0.0, 0.0, 0.0)
        following = timeline.thread[1:] == timeline.thread[:-1]
        before = np.zeros(len(timeline), np.int64)
        before[1:] = np.where(following, saved[:-1], 0)
        lasts = np.append(~following, True)
        waits = (self._work.action >= Action.ENQUEUE_AND_WAIT) & (self._work.action <= Action.WAIT_EVENT)
        # What a thread saves last moves its end, which whoever joins it must see; a wait would swallow it.
        ending = lasts & ~waits & (self._work.action != Action.SET_AND_WAIT)
        before += np.where(ending, saved, 0)
        lasts &= ~ending
        # No problem is fixed, but whoever follows a thread must know that it changed.
        touched = ((before > 0) | (share < 1)) & (timeline.kind != Kind.ALLOCATION)
        members = np.sort(self._place[touched])
        fix = replay_kernels.Fix(members, np.full(len(timeline), -1, np.int8), np.zeros(1, np.int32), 0, needed=False)
        savings = []
        for times, strict in (
            (self.inference.likely, False),
            (self.inference.slow, True),
            (self.inference.fast, False),
        ):
            less = replace(times, gpu=(times.gpu * share).astype(np.int64))
            probes = replay_kernels.Probes(before, timeline.start.copy(), timeline.wait.copy())
            manner = self._manner(strict=strict, jump=False, recurs=False, waking=self.inference.latency_ns)
            early = self._run(len(timeline), less, fix, manner, probes)
            np.add.at(early, timeline.thread[lasts], saved[lasts])
            savings.append(self._groups.run_savings(self._ends, early))
        likely, slow, fast = savings
        certain = 0 if len(self._family.parent) > 1 else 1
        low = min(slow[certain], likely[certain])
        return Replayed(likely[1], max(low, 0.0), max(likely[2], fast[2], slow[1]))

    def fixed(self) -> Fixed:
        """Return the run as it would be if all of its problems were fixed, with the likely timeline of the GPU."""
        timeline = self._timeline
        if not len(timeline):
            return fixed_run(timeline, self._work, self.inference, timeline.start, timeline.wait)
        label = (timeline.problem != 0).view(np.int8) - np.int8(1)
        group_of = np.zeros(1, np.int32)
        [members] = self._members(label, group_of, 1)
        start, wait = timeline.start.copy(), timeline.wait.copy()
        probes = replay_kernels.Probes(np.zeros(len(timeline), np.int64), start, wait)
        fix = replay_kernels.Fix(members, label, group_of, 0, needed=False)
        manner = self._manner(strict=False, jump=False, recurs=False, waking=self.inference.latency_ns)
        self._run(len(timeline), self.inference.likely, fix, manner, probes)
        return fixed_run(timeline, self._work, self.inference, start, wait)

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
        manner = self._manner(strict=False, jump=False, recurs=False, waking=self.inference.latency_ns)
        self._run(len(timeline), self.inference.likely, _NOTHING, manner, probes)
        duration = timeline.duration - timeline.wait + wait
        gap = timeline.gap.copy()
        following = timeline.thread[1:] == timeline.thread[:-1]
        between = start[1:] - (start + duration)[:-1] - np.where(alone, 0, probe)[1:]
        gap[:-1] = np.where(following, np.maximum(between, 0), gap[:-1])
        return replace(timeline, start=start, wait=wait, duration=duration, gap=gap)

    @staticmethod
    def _manner(*, strict: bool, jump: bool, recurs: bool, waking: int) -> replay_kernels.Manner:
        return replay_kernels.Manner(strict, jump, SET_BYTES_A_NANOSECOND, waking, recurs)

    def _run(
        self,
        visits: int,
        times: GpuTimes,
        fix: replay_kernels.Fix,
        manner: replay_kernels.Manner,
        probes: replay_kernels.Probes = _PROBES_STAY,
    ) -> NDArray[np.int64]:
        """Make one pass over about this many rows; return the nanoseconds by which each thread ends earlier."""
        early: NDArray[np.int64] = run(
            replay_kernels.replay_group,
            4 * self._expected * visits,
            self._trace,
            replay_kernels.Gpu(times.gpu, times.ready, times.latency),
            self._family,
            fix,
            manner,
            probes,
        )
        return early


class _Groups:
    """Which threads, and which processes, run the same code side by side: those that share a call site."""

    def __init__(self, timeline: Timeline, work: DeviceWork, family: replay_kernels.Family) -> None:
        self._threads = [np.flatnonzero(work.process_of_thread == number) for number in range(work.processes)]
        roots = family.parent < 0
        self._roots = [
            [threads[roots[threads] & (family.alike[threads] == one)] for one in np.unique(family.alike[threads])]
            for threads in self._threads
        ]
        process = work.process_of_thread[timeline.thread] if len(timeline) else np.empty(0, np.int32)
        self._processes = _alike(process, timeline.site, work.processes)

    def run_savings(self, ends: NDArray[np.int64], early: NDArray[np.int64]) -> tuple[float, float, float]:
        """Return the seconds by which the run ends earlier (at least, likely, at most), given for each thread when it
        ended and how much earlier it does.

        At least: determined by each process's last thread to end and, among processes, by the slowest. Likely: the
        largest saving of any threads, or processes, that run the same code. At most: the largest of any thread.
        """
        at_least, likely, over = [], [], []
        for threads, sets in zip(self._threads, self._roots, strict=True):
            if not len(threads):  # a process that made no call, such as the parent of the one that did
                likely.append(0)
                over.append(0)
                continue
            at_least.append(_sooner(ends[threads], early[threads]))
            likely.append(max(_sooner(ends[one], early[one]) for one in sets if len(one)))
            over.append(int(ends[threads].max()))
        by_process, ended = np.array(likely), np.array(over)
        together = [self._processes == one for one in np.unique(self._processes)]
        most = max(_sooner(ended[one], by_process[one]) for one in together)
        return (
            max(min(at_least), 0) / NANOSECONDS_IN_SECOND,
            max(most, 0) / NANOSECONDS_IN_SECOND,
            max(int(early.max()), most, 0) / NANOSECONDS_IN_SECOND,
        )


def _sooner(ends: NDArray[np.int64], early: NDArray[np.int64]) -> int:
    """Return how much earlier the last of some threads ends if each ends earlier by its own time."""
    return int(ends.max() - (ends - early).max())


def _alike(owner: NDArray[np.integer], site: NDArray[np.integer], owners: int) -> NDArray[np.int32]:
    """Number the sets of threads or processes that share sites, directly or through others; shape (owners,).

    `owner` and `site` are the columns of a timeline, shape (n,).
    """
    number = np.arange(owners, dtype=np.int32)
    if owners == 1:
        return number
    sites = int(site.max(initial=-1)) + 1
    user, used = np.divmod(np.unique(owner.astype(np.int64) * sites + site), max(sites, 1))
    while True:
        least = np.full(sites, owners, np.int32)
        np.minimum.at(least, used, number[user])
        shared = number.copy()
        np.minimum.at(shared, user, least[used])
        if (shared == number).all():
            return number
        number = shared


def _family(timeline: Timeline, work: DeviceWork, order: NDArray[np.int64]) -> replay_kernels.Family:
    """Find threads that lived within one gap between two calls of another thread of the process, and those alike."""
    threads = len(work.process_of_thread)
    parent = np.full(threads, -1, np.int32)
    forked = np.full(threads, -1, np.int64)
    joined = np.full(threads, -1, np.int64)
    follows = np.full(threads, -1, np.int32)
    alike = np.arange(threads, dtype=np.int32)
    if threads == work.processes:
        return replay_kernels.Family(parent, forked, joined, follows, alike)
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
    # A call site of each process is one of its own.
    sites = int(timeline.site.max(initial=-1)) + 1
    own_site = timeline.site + sites * work.process_of_thread[timeline.thread].astype(np.int64)
    alike = _alike(timeline.thread, own_site, threads)
    return replay_kernels.Family(parent, forked, joined, follows, alike)


def _leader(timeline: Timeline, work: DeviceWork, begins: NDArray[np.integer], thread: int) -> int:
    """Return the thread that this one's gaps wait for, because most of them end soon after one of its waits; else -1.

    Soon means within a quarter of the mean time between that thread's waits: chance would give a quarter of the gaps.
    """
    if begins[thread + 1] - begins[thread] <= FOLLOWED_OFTEN:
        return -1  # it has at most one gap less than calls, and none without a call
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
