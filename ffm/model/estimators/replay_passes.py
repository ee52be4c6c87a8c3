"""The passes of a replay (`ffm.model.estimators.replay`). Each simulates a run once: with a fix, one of the GPU's
timelines, and a manner, which says what is assumed where the trace leaves several things possible.
"""

from __future__ import annotations

import functools
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import has_any
from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.encounter_order import order_of_encounters
from ffm.model.estimators.late_run import LateRun
from ffm.model.estimators.shared_engines import needed_engines
from ffm.model.estimators.simulation.lone import is_of_one_thread, replay_lone
from ffm.model.estimators.simulation.passes import replay_group
from ffm.model.estimators.simulation.state import Fix, Gpu, Manner, Probes, Trace, at_the_start
from ffm.model.estimators.stretches import Course, Stretches
from ffm.model.gpu_times.fitting import WAITED_NS
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.grouping import parts
from ffm.model.thread_relations import find_family, related_threads, without_guesses
from ffm.model.timeline import Problem, Timeline
from ffm.model.visits import inverse
from ffm.model.waiting.fixed import SET_BYTES_A_NANOSECOND
from ffm.model.waiting.graph import Threads


class Manners(NamedTuple):
    """How a run is simulated with each timeline of the GPU."""

    likely: Manner
    slow: Manner
    fast: Manner
    recurring: Manner
    """Also with the fast timeline, for the lower end of the interval."""
    as_measured: Manner
    """If nothing is fixed."""


class _Beside(NamedTuple):
    """The columns of `Gpu` with the same names."""

    beside: NDArray[np.int64]
    delays: NDArray[np.int64]


NO_ROWS = np.zeros(0, np.int64)
_PROBES_STAY = Probes(NO_ROWS, NO_ROWS, NO_ROWS)
NOTHING = Fix(NO_ROWS, fixes=False, needed=False, fences=False, copies=False)
"""Changes no row."""


class Passes:
    """Simulates one run any number of times. The arguments are those of `ffm.model.estimators.replay.Replay`."""

    def __init__(self, timeline: Timeline, work: DeviceWork, inference: Inference) -> None:
        self._timeline = timeline
        self._work = work
        self.inference = inference
        self._expected = 1
        self._reaches: dict[int, int] = {}
        met = work.encounters
        self.order = inference.order if met is None else order_of_encounters(timeline, met)
        self.place = inverse(self.order)
        self._related = find_family(timeline, work, self.place)
        self.family = self._related if met is None else without_guesses(self._related, _who_meets(timeline, work))
        threads = np.bincount(work.process_of_thread, minlength=work.processes)
        streams = np.bincount(work.stream_process, minlength=work.processes)
        self.jump = bool((threads <= 1).all() and (streams <= 1).all() and work.events == 0 and met is None)
        """Whether stretches that run as before can be skipped: each process has one thread and one stream."""
        gpus = work.gpus
        self.trace = Trace(
            order=self.order,
            thread=timeline.thread,
            start=timeline.start,
            duration=timeline.duration,
            wait=timeline.wait,
            kind=timeline.kind,
            problem=timeline.problem,
            first_use=timeline.first_use,
            site=timeline.site,
            action=work.action,
            stream=work.stream,
            event=work.event,
            partner=work.partner,
            copied=work.copied,
            after_wait=work.behind,
            process_of_thread=work.process_of_thread,
            legacy=work.legacy,
            apart=work.apart,
            stream_process=work.stream_process,
            gpu_of_stream=gpus.of_stream,
            first_gpu=gpus.first,
            events=work.events,
            related=bool((threads > 1).any()),
            shortened=NO_ROWS,
            engine=needed_engines(timeline, work),
        )
        self._beside: dict[tuple[str, bool], _Beside] = {}
        self.stretches = Stretches(
            timeline.start,
            comparable=len(work.process_of_thread) == 1 and met is None,
            size=4 * (work.events + len(work.stream_process)),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reaches": {}, "_beside": {}, "stretches": self.stretches.emptied()}

    def likely_alone(self) -> Passes:
        """Return the same for passes with the likely timeline alone, which takes less than half of the memory."""
        alone = copy(self)
        alone.inference = self.inference.likely_alone()
        alone._beside = {}
        return alone

    @property
    def threads(self) -> Threads:
        """Which thread has started, joined and followed which, as recorded or as it seems."""
        return related_threads(self._timeline, self._work, self._related, self.order)

    def expect(self, replays: int) -> None:
        """Announce how many replays follow: compiling pays for many even if the table is small."""
        self._expected = max(self._expected, replays)

    def visits(self, fix: Fix) -> int:
        """Return about how many rows a pass visits: a jump visits a few for each changed one."""
        return min(len(self._timeline), 20 * len(fix.members)) if self.jump else len(self._timeline)

    def manners(self, *, jump: bool = False) -> Manners:
        """Return how a run is simulated; with `jump`, stretches that run as before are skipped where possible."""
        inference = self.inference
        likely = Manner(
            strict=False,
            jump=jump and self.jump,
            set_bytes_a_nanosecond=SET_BYTES_A_NANOSECOND,
            waking=inference.latency_ns,
            recurs=False,
            uploads_overlap=-1,
            loads_wait=True,
            kernels_wait=False,
            as_measured=False,
        )
        slow = likely._replace(strict=True, kernels_wait=True)
        return Manners(
            likely=likely,
            slow=slow,
            fast=likely._replace(waking=inference.waking_ns, loads_wait=False, uploads_overlap=WAITED_NS),
            recurring=slow._replace(recurs=True),
            as_measured=likely._replace(loads_wait=False),
        )

    def run(
        self,
        visits: int,
        times: GpuTimes,
        fix: Fix | Course,
        manner: Manner,
        probes: Probes = _PROBES_STAY,
        trace: Trace | None = None,
        way: int = 0,
    ) -> NDArray[np.int64]:
        """Make one pass over about this many rows; return the nanoseconds by which each thread ends earlier.

        `way` is for fixes that are replayed in several ways, as `Course.follow` takes it.
        """
        course = fix if isinstance(fix, Course) else Course.whole(fix, len(self._timeline))
        trace = self.trace if trace is None else trace
        if not len(course.fix.members) and not len(probes.time):
            return np.zeros(len(trace.process_of_thread), np.int64)
        gpu = self._gpu(times, manner, self._beside_others(times, manner.kernels_wait))
        reach = self._reach(way, times) if course.digests else 0
        return self._simulate(4 * self._expected * visits, gpu, course, manner, probes, trace, way, reach)

    def _simulate(
        self,
        rows: int,
        gpu: Gpu,
        course: Course,
        manner: Manner,
        probes: Probes,
        trace: Trace,
        way: int,
        reach: int,
    ) -> NDArray[np.int64]:
        simulate = replay_lone if is_of_one_thread(trace, self.family) else replay_group
        state = at_the_start(trace, len(self.family.locks.goes_on), self.family.encounters.total, manner.jump)

        def visit(part: Fix, until: int) -> None:
            run(simulate, rows // len(course.ends), trace, gpu, self.family, part, manner, probes, state, until)

        course.follow(way, state, visit, reach)
        return state.early

    def _beside_others(self, times: GpuTimes, kernels_wait: bool) -> _Beside:
        """Return how long work ran beside other work in one of the timelines of the GPU, even if some of it is faster
        there, where the kernels need the same engine as in a manner with `kernels_wait`.
        """
        if not len(self.trace.engine):
            return _Beside(NO_ROWS, NO_ROWS)
        inference = self.inference
        given = {"likely": inference.likely, "slow": inference.slow, "fast": inference.fast}
        name = next(name for name, one in given.items() if one.latency is times.latency)
        key = name, kernels_wait
        if key not in self._beside:
            rows = len(self._timeline)
            beside = _Beside(np.zeros(rows, np.int64), np.zeros(rows, np.int64))
            manner = self.manners().as_measured._replace(as_measured=True, kernels_wait=kernels_wait)
            gpu = self._gpu(given[name], manner, beside)
            self._simulate(rows, gpu, Course.whole(NOTHING, rows), manner, _PROBES_STAY, self.trace, 0, 0)
            self._beside[key] = beside  # only now: others may ask meanwhile
        return self._beside[key]

    def _gpu(self, times: GpuTimes, manner: Manner, beside: _Beside) -> Gpu:
        """Return the GPU's times for a pass, with what is known of waits that woke late."""
        likely, late = self.inference.likely.latency, self.late
        # The other timelines are limits: in the slow one, lateness is the GPU's work, in the fast one it is all saved.
        chance = late.by_chance if times.latency is likely else late.never
        apart = manner.strict or manner.recurs
        longer, after = (NO_ROWS, NO_ROWS) if apart else late.starved
        return Gpu(
            times.gpu,
            times.left,
            times.latency,
            chance,
            self.inference.latency_ns,
            times.pause,
            late.never_sharing if apart else late.by_sharing,
            longer,
            after,
            likely if self._saves_lateness(times, manner) else likely[:0],
            late.limit_ns,
            *beside,
        )

    @functools.cached_property
    def late(self) -> LateRun:
        """Which waits woke late."""
        return LateRun(self._timeline, self._work, self.inference.likely.latency, self.inference.latency_ns)

    def _saves_lateness(self, times: GpuTimes, manner: Manner) -> bool:
        """Return whether what removed waits woke late is saved in a timeline: in the fast one, for the upper end."""
        limits = times.latency is not self.inference.likely.latency  # it may be in place of the others
        return limits and times.latency is self.inference.fast.latency and not manner.recurs

    def _reach(self, way: int, times: GpuTimes) -> int:
        """Return for how many nanoseconds at most GPU work that is over may still delay the CPU, in one of the ways in
        which each fix is replayed.
        """
        if way not in self._reaches:
            self._reaches[way] = int(times.latency.max(initial=0)) + times.pause + self._longest_moved
        return self._reaches[way]

    @functools.cached_property
    def _longest_moved(self) -> int:
        """How long the longest call takes if waits may be moved to first uses; otherwise 0."""
        problem = self._timeline.problem
        moved = any(has_any(problem[part], Problem.MISPLACED_SYNCHRONIZATION).any() for part in parts(len(problem)))
        return int(self._timeline.duration.max(initial=0)) if moved else 0


def _who_meets(timeline: Timeline, work: DeviceWork) -> NDArray[np.bool_]:
    """Return which threads meet others, as a profiler recorded, shape (threads,)."""
    meets = np.zeros(len(work.process_of_thread), np.bool_)
    if work.encounters is not None:
        meets[timeline.thread[work.encounters.row]] = True
    return meets
