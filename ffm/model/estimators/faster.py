"""Parts of a run that become faster, or disappear, as the replay needs them.

The time that a call loses is taken from before it puts work on a stream, and from after it has waited. A call that
disappears waits for nothing and puts nothing on a stream: the program is assumed to do without it, whatever its
purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.simulation.state import Fix, Trace
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.visits import at


@dataclass(frozen=True, slots=True)
class Faster:
    """What takes less time. Columns of the timeline's length."""

    call: NDArray[np.int64]
    """Nanoseconds that disappear of the row's call, without its wait."""
    gap: NDArray[np.int64]
    """Nanoseconds that disappear between the call and the thread's next one."""
    gpu: NDArray[np.float64]
    """What share of its time the row's work on the GPU still takes, 0 to 1."""
    gone: NDArray[np.bool_]
    """Which calls disappear, with their waits and their work on the GPU."""
    first: NDArray[np.int64] | None = None
    """Shape (threads,): nanoseconds that disappear before each thread's first call; None if none do."""

    @classmethod
    def nothing(cls, rows: int) -> Faster:
        """Return what leaves all as it is."""
        none = np.zeros(rows, np.int64)
        return cls(none, none.copy(), np.ones(rows), np.zeros(rows, bool))

    def also(self, other: Faster) -> Faster:
        """Return both, which change different parts of the run."""
        share = np.minimum(self.gpu, other.gpu)
        firsts = [one.first for one in (self, other) if one.first is not None]
        first = np.sum(firsts, axis=0) if firsts else None
        return Faster(self.call + other.call, self.gap + other.gap, share, self.gone | other.gone, first)


@dataclass(frozen=True, slots=True)
class FasterRun:
    """The run with what takes less time, for `ffm.model.estimators.simulation.passes.replay_group`."""

    trace: Trace
    fix: Fix
    before: NDArray[np.int64]
    """Nanoseconds of the CPU that disappear before each row."""
    last: NDArray[np.int64]
    """Shape (threads,): those after each thread's last row."""


def faster_run(
    timeline: Timeline,
    work: DeviceWork,
    trace: Trace,
    place: NDArray[np.integer],
    faster: Faster,
) -> FasterRun:
    """Prepare a replay; `place` contains each row's position in the trace's order, as in `ffm.model.visits`."""
    gone = faster.gone
    call = np.where(gone, timeline.duration - timeline.wait, faster.call)
    following = timeline.thread[1:] == timeline.thread[:-1]
    lasts = np.append(~following, True)
    waits = (work.action >= Action.ENQUEUE_AND_WAIT) & (work.action <= Action.WAIT_EVENT)
    # What a thread saves last moves its end, which a thread that joins it must see; a wait would swallow it.
    ending = lasts & ~gone & ~waits & (work.action != Action.SET_AND_WAIT)
    if work.encounters is not None:
        ending[work.encounters.row] = False
    before = np.where(ending, call + faster.gap, 0)
    before[1:] += np.where(following, (call + faster.gap)[:-1], 0)
    if faster.first is not None:
        begins = np.flatnonzero(np.append(True, ~following))
        before[begins] += faster.first[timeline.thread[begins]]
    changed = (before > 0) | (call > 0) | (faster.gpu < 1)
    rows = np.flatnonzero((changed & (timeline.kind != Kind.ALLOCATION)) | gone)
    members = np.sort(at(place, rows)).astype(np.int64, copy=False)
    both = Problem.UNNECESSARY_SYNCHRONIZATION | Problem.UNNECESSARY_TRANSFER
    sets = gone & (work.action == Action.SET_AND_WAIT)  # the CPU does not set the memory instead
    shortened = np.where(ending, 0, call)
    shorter = trace._replace(
        duration=timeline.duration - shortened,
        shortened=shortened,
        problem=gone.astype(timeline.problem.dtype) * timeline.problem.dtype.type(both),
        action=np.where(sets, work.action.dtype.type(Action.ENQUEUE_AND_WAIT), work.action),
    )
    # Where nothing disappears, rows only count as changed, so that threads that follow theirs know.
    fix = Fix(members, fixes=bool(gone.any()), needed=False, fences=False, copies=False)
    rows = np.flatnonzero(lasts & ~ending)
    last = np.zeros(len(work.process_of_thread), np.int64)
    last[timeline.thread[rows]] = call[rows] + faster.gap[rows]
    return FasterRun(shorter, fix, before, last)
