"""The `replay` estimator: simulates the run again, on the CPU and the GPU, with some problems fixed.

Both timelines are as the trace shows them (the GPU's as `ffm.model.gpu_times` infers it). A fix removes or moves
operations. Everything after them moves up as far as the order of streams, events, the legacy default stream and the
remaining synchronizations allows. What the fix saves is how much earlier the run ends. Unlike in
`ffm.model.estimators.carry`, the GPU limits how much of a removed wait can be saved, and GPU work that the wait had
delayed runs sooner.

What a fix does to a row:

- **Unnecessary synchronization**: its wait disappears; an explicit one disappears entirely. So does the latency that
  ended it, unless a later wait still has to wait for the same work: that one then wakes as late. For the upper end of
  the interval, what was late by chance is gone whatever waits next. For the lower end, the next one waits for as long
  as that latency again: what of it was the GPU's, and what was falling asleep and waking, cannot be seen. Waits of
  other threads take part only if they began after it: others show themselves when the work was done. What a download
  does behind a wait that remains, copying from the driver's buffers, comes after that. What it does behind a wait that
  disappears or moves is not needed: such a download is asynchronous, to pinned memory, to which the GPU copies itself.
- **Free**: the memory is kept for the next allocation at its place that it is large enough for
  (`ffm.model.estimators.hoisting`), and both calls disappear. If no such allocation follows, the free comes later: its
  wait disappears, and so does its own time if the memory is left to the process's end.
- **Set** of memory that the CPU can access: the CPU does it, and neither waits nor keeps the GPU busy.
- **Misplaced synchronization**: the CPU waits at the first use instead; nothing is saved if the work lasts that long.
- **Unnecessary transfer**: the call and the GPU's copy disappear. So does its wait if that is unnecessary too;
  otherwise it remains as a wait for the stream's earlier work.

An upload from pageable memory waits for earlier work, and then copies. What it does besides, such as checking its
arguments, comes before the wait or after it: the trace does not show which, if the upload did not have to wait. All of
it comes after a wait that a fix brings about there. For the upper end of the interval, it comes before that if the
upload is of few bytes; with more, copying takes nearly all of the time.

A device copies one transfer at a time in each direction. Kernels of different streams overlap if they fit on the device
together. One that fills it (`ffm.model.device.Fills`) overlaps neither with the kernels behind it nor with others that
fill it. The measured time of such work contains what it waited for the other, and the replay determines anew how long
it waits. What was ready first comes first. If all kernels of the device fill little of it, they overlap; otherwise, the
lower end of the interval assumes that they overlap no more than they did.

Loading device code may wait for the GPU (`ffm.model.device.Action.LOAD`). So a call that loads code overlaps with no
more of the GPU's work than it did. The upper end of the interval assumes that it never waits.

The trace does not show which thread waits for which on the CPU; `ffm.model.thread_relations` infers it. A thread starts
earlier by as much as the one that started it does, and who joined threads continues earlier by as much as these do. The
lower end of the interval assumes neither: there, each thread keeps its pace. Where it is recorded that a thread waited
until another one let it go (`ffm.model.lock_order`), it goes on when that one does, in the same order as before. Where
a profiler recorded who can wait for whom (`ffm.model.encounter_order`), they wait for each other again, and nothing is
inferred of these threads.

Calls of several threads overlap, and are simulated one after the other, in the order in which they acted on the GPU.
So a wait may meet work that another call enqueued after the wait began. That does not delay it: what a fix leaves comes
no later than it did, and no wait of such a run ends later.

Threads may share processors (`ffm.model.estimators.lateness`). Then one that woke late had to wait until another one
stopped running: it goes on as early as that one, but no earlier than if it had woken as usual. So does one that lost
its processor in a call or between two, whatever had let it go on before. None of its lateness is chance. The lower end
of the interval assumes that it is as late as before. The upper end adds the time in which all of them were late at
once, by the part that the waits of the fix have in their lateness.

How much earlier several threads end together depends on what they do. Threads that share a call site run the same code
side by side: the last of them to end counts, as it does for ranks of a program. Threads without one do different things
for each other: they are assumed to wait for the one that becomes faster. So the largest saving of all such sets of
threads counts. Whatever else a fix touches, it never saves less for that.

`without` answers another question: what removing a synchronization would save although the program needs it, if the
need were met otherwise, such as by an event that orders streams, or by reading a status later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.estimators.faster import Faster, FasterRun, faster_run
from ffm.model.estimators.member_kernels import Longest, touched_by
from ffm.model.estimators.members import Changing
from ffm.model.estimators.probe_kernels import Times, Traced, probes_of_lone_threads, settle_times
from ffm.model.estimators.replay_passes import NO_ROWS, NOTHING, Passes
from ffm.model.estimators.run_end import RunEnd
from ffm.model.estimators.simulation.state import Fix, Manner, Probes
from ffm.model.estimators.stretches import Course
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.grouping import parts
from ffm.model.side_by_side import side_by_side
from ffm.model.timeline import NANOSECONDS_IN_SECOND, Timeline
from ffm.model.visits import at
from ffm.model.waiting.fixed import Fixed, fixed_run
from ffm.model.waiting.graph import Threads
from ffm.steps import Tell, silently


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


Elsewhere = Callable[["Replay", list[Fix], int], list[Replayed]]


class Replay:
    """Replays one run for any number of groups of problems.

    Args:
        timeline: the operations, sorted by thread, then start.
        work: what they do on the GPU.
        inference: the GPU's times.
        elsewhere: replays several fixes, possibly in other processes; its last argument is how many rows they visit
            together. By default they are replayed one after the other. It is not pickled.
        tell: called with how far replaying has come; not pickled, either.
        fences: whether all that follows a wait that disappears still comes after what it waited for, on the GPU.
        copies: whether the CPU still copies from a buffer what a download fetches whose wait disappears.
    """

    def __init__(
        self,
        timeline: Timeline,
        work: DeviceWork,
        inference: Inference,
        elsewhere: Elsewhere | None = None,
        tell: Tell = silently,
        *,
        fences: bool = False,
        copies: bool = False,
    ) -> None:
        self._elsewhere, self._tell, self._threads, self._fences, self._copies = elsewhere, tell, True, fences, copies
        self._timeline = timeline
        self._work = work
        self._passes = Passes(timeline, work, inference)
        self._known: dict[tuple[bytes, bool], Replayed] = {}
        self._end = RunEnd(timeline, work, self._passes.family)

    @property
    def inference(self) -> Inference:
        """The GPU's times."""
        return self._passes.inference

    @property
    def threads(self) -> Threads:
        """Which thread has started, joined and followed which, as recorded or as it seems."""
        return self._passes.threads

    def __getstate__(self) -> dict[str, Any]:
        # Other processes replay one fix on each processor, so their passes start no threads.
        kept = {name: value for name, value in self.__dict__.items() if name != "_changing"}
        return {**kept, "_known": {}, "_elsewhere": None, "_tell": silently, "_threads": False}

    def for_likely_changes(self) -> Replay:
        """Return the same for `likely_change` alone, which takes less than half of the memory."""
        alone = copy(self)  # without what is not pickled
        alone._passes = self._passes.likely_alone()
        return alone

    def expect(self, replays: int) -> None:
        """Announce how many replays follow: compiling pays for many even if the table is small."""
        self._passes.expect(replays)

    def selected(self, rows: NDArray[np.bool_]) -> Replayed:
        """Return the seconds that fixing the problems of the selected rows together saves; `rows` has shape (n,)."""
        label = rows.view(np.int8) - np.int8(1)
        return self.by_group(label, np.zeros(1, np.int32), 1)[0]

    def without(self, rows: NDArray[np.bool_]) -> Replayed:
        """Return the seconds that removing the selected rows' waits would save although they are needed; shape (n,)."""
        return self.without_each([np.flatnonzero(rows)])[0]

    def without_each(self, groups: Sequence[NDArray[np.int64]]) -> list[Replayed]:
        """Return the same for each of some groups of rows alone."""
        members = (np.sort(at(self._passes.place, rows)).astype(np.int64) for rows in groups)
        return self._replays([Fix(each, fixes=True, needed=True, fences=True, copies=False) for each in members])

    def by_group(
        self, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int, wanted: list[int] | None = None
    ) -> list[Replayed]:
        """Return the seconds that fixing each group alone saves.

        The arguments are as for `ffm.model.estimators.carry.carry_by_group`. `wanted` lists the groups to replay, by
        default all. Each takes one pass over the rows that it can change.
        """
        members = self._changing.by_group(label, group_of, groups)
        numbers = range(groups) if wanted is None else wanted
        return self._replays([self._fix(members[number]) for number in numbers])

    def _fix(self, members: NDArray[np.int64]) -> Fix:
        return Fix(members, fixes=True, needed=False, fences=self._fences, copies=self._copies)

    @functools.cached_property
    def _changing(self) -> Changing:
        return Changing.of(self._timeline, self._work, self._passes.place)

    def _replays(self, fixes: list[Fix]) -> list[Replayed]:
        """Replay fixes, except those that were replayed before: a site, a fold and a sequence may all be the same
        rows.
        """
        self.expect(len(fixes))
        keys = [(xxhash.xxh3_128_digest(fix.members.data), fix.needed) for fix in fixes]
        fresh = {key: fix for key, fix in zip(keys, fixes, strict=True) if key not in self._known}
        if self._elsewhere is None:
            found = []
            for number, fix in enumerate(fresh.values(), 1):
                self._tell(f"replaying fix {number} of {len(fresh)}")
                found.append(self.replayed(fix))
        else:
            self._tell(f"replaying {len(fresh)} fixes")
            visits = 4 * sum(self._passes.visits(fix) for fix in fresh.values())
            found = self._elsewhere(self, list(fresh.values()), visits)
        self._known.update(zip(fresh, found, strict=True))
        return [self._known[key] for key in keys]

    def replayed(self, fix: Fix) -> Replayed:
        """Return the seconds that a fix saves, whose members are places in the order of rows, ascending."""
        if not len(fix.members):
            return Replayed(0.0, 0.0, 0.0, 0.0)
        inference = self.inference
        visits = self._passes.visits(fix)
        alike = visits == len(self._timeline)  # where rows are skipped, there is little to have in common
        course = self._passes.stretches.course_of(fix) if alike else Course.whole(fix, len(self._timeline))

        def passed(way: int, times: GpuTimes, manner: Manner) -> tuple[float, float, float]:
            return self._end.savings(self._passes.run(visits, times, course, manner, way=way))

        manners = self._passes.manners(jump=True)
        passes = [
            functools.partial(passed, 0, inference.likely, manners.likely),
            functools.partial(passed, 1, inference.slow, manners.slow),
            functools.partial(passed, 2, inference.fast, manners.fast),
            functools.partial(passed, 3, inference.fast, manners.recurring),
        ]
        likely, slow, fast, recurring = side_by_side(passes, visits if self._threads else 0)
        self._passes.stretches.keep(course)
        certain = 0 if len(self._passes.family.parent) > 1 else 1
        low = min(slow[certain], likely[certain], recurring[certain])
        high = max(likely[2], fast[2], slow[1]) + self._passes.late.handing_over_s(at(self._passes.order, fix.members))
        return Replayed(likely[1], max(low, 0.0), high, self._touched_s(fix))

    def _touched_s(self, fix: Fix) -> float:
        times = self.inference
        longest = Longest(self._timeline.duration, times.likely.gpu, times.slow.gpu, times.fast.gpu)
        touched = run(touched_by, len(fix.members), self._passes.order, fix.members, longest)
        return int(touched) / NANOSECONDS_IN_SECOND

    def changed(self, faster: Faster) -> Replayed:
        """Return the seconds that the run saves if parts of it take less time; a negative saving counts as none."""
        if not len(self._timeline):
            return Replayed(0.0, 0.0, 0.0)
        inference, change = self.inference, self._faster_run(faster)

        def passed(times: GpuTimes, manner: Manner) -> tuple[float, float, float]:
            return self._changed(change, faster, times, manner)

        manners = self._passes.manners()
        passes = [
            functools.partial(passed, inference.likely, manners.likely),
            functools.partial(passed, inference.slow, manners.slow),
            functools.partial(passed, inference.fast, manners.fast),
        ]
        if faster.gone.any():  # as for problems that are fixed
            passes.append(functools.partial(passed, inference.fast, manners.recurring))
        likely, slow, fast, *recurring = side_by_side(passes, len(self._timeline) if self._threads else 0)
        certain = 0 if len(self._passes.family.parent) > 1 else 1
        low = min(found[certain] for found in (likely, slow, *recurring))
        return Replayed(likely[1], max(low, 0.0), max(likely[2], fast[2], slow[1]), self._less_s(faster))

    def _less_s(self, faster: Faster) -> float:
        """Return how much less the changed parts take in all, as `Replayed.touched_s` says of a fix."""
        inference, duration = self.inference, self._timeline.duration
        less = 0 if faster.first is None else int(faster.first.sum())
        for part in parts(len(duration)):
            gone = faster.gone[part]
            work = np.maximum.reduce([times.gpu[part] for times in (inference.likely, inference.slow, inference.fast)])
            less += int(np.where(gone, duration[part], faster.call[part]).sum() + faster.gap[part].sum())
            less += int((work * np.where(gone, 1.0, 1.0 - faster.gpu[part])).sum())
        return less / NANOSECONDS_IN_SECOND

    def likely_change(self, faster: Faster) -> float:
        """Return the likely seconds of `changed` alone, which takes a third of the time."""
        if not len(self._timeline):
            return 0.0
        change, likely = self._faster_run(faster), self._passes.manners().likely
        return self._changed(change, faster, self.inference.likely, likely)[1]

    def _faster_run(self, faster: Faster) -> FasterRun:
        return faster_run(self._timeline, self._work, self._passes.trace, self._passes.place, faster)

    def _changed(
        self, change: FasterRun, faster: Faster, times: GpuTimes, manner: Manner
    ) -> tuple[float, float, float]:
        """Replay a change with one timeline of the GPU; return the seconds of `RunEnd.savings`."""
        less = replace(times, gpu=np.empty_like(times.gpu))
        for part in parts(len(less.gpu)):
            less.gpu[part] = times.gpu[part] * faster.gpu[part]
        probes = Probes(change.before, NO_ROWS, NO_ROWS)
        early = self._passes.run(len(self._timeline), less, change.fix, manner, probes, change.trace)
        return self._end.savings(early + change.last)

    def fixed(self) -> Fixed:
        """Return the run as it would be if all of its problems were fixed, with the likely timeline of the GPU."""
        timeline = self._timeline
        if not len(timeline):
            return fixed_run(timeline, self._work, self.inference, timeline.start, timeline.wait)
        label = (timeline.problem != 0).view(np.int8) - np.int8(1)
        group_of = np.zeros(1, np.int32)
        [members] = self._changing.by_group(label, group_of, 1)
        start, wait = timeline.start.copy(), timeline.wait.copy()
        probes = Probes(np.zeros(len(timeline), np.int64), start, wait)
        likely = self._passes.manners().likely
        self._passes.run(len(timeline), self.inference.likely, self._fix(members), likely, probes)
        return fixed_run(timeline, self._work, self.inference, start, wait)

    def without_probes(self, probe: NDArray[np.int64]) -> Timeline:
        """Return the timeline as it would be if the probes had taken no time.

        `probe`, shape (n,), is the nanoseconds that probes took since the thread's previous row. If the CPU comes to a
        wait earlier, it waits longer for the GPU, so the run is not shorter by all of that time. If several threads of
        a process call the driver, it is not known well enough who waits for whom to move them against each other; then
        only the time between calls shrinks.
        """
        timeline, process, rows = self._timeline, self._work.process_of_thread, len(self._timeline)
        traced = Traced(
            timeline.thread,
            timeline.start,
            timeline.duration,
            timeline.wait,
            timeline.gap,
            probe,
            np.bincount(process)[process] == 1,
        )
        start, wait = timeline.start.copy(), timeline.wait.copy()
        probes = Probes(np.empty(rows, np.int64), start, wait)
        run(probes_of_lone_threads, rows, traced, probes.time)
        self._passes.run(rows, self.inference.likely, NOTHING, self._passes.manners().as_measured, probes)
        duration, gap = probes.time, np.empty(rows, np.int64)  # the probes' own times are not needed any more
        run(settle_times, rows, traced, Times(start, duration, wait, gap))
        return replace(timeline, start=start, wait=wait, duration=duration, gap=gap)
