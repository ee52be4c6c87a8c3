"""The critical path: what the end of a run waited for, followed backwards to its start (Dietrich 2019, 5.4.1).

The walk starts at the last event of the run. On a thread it goes back to where the thread waited: for GPU work, whose
end it then follows, or for a thread that it joined. From GPU work it goes on to what that work waited for: earlier GPU
work, or the call that launched it. The path's stretches join without hole or overlap, so that their sum is the run's
length. Shortening what lies off the path does not end the run sooner.

Only rows with a cause can be left, so the walk is a binary search for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times.fitting import WAITED_NS
from ffm.model.grouping import begins_of, parts
from ffm.model.timeline import Timeline
from ffm.model.waiting import path_kernels, piece_kernels
from ffm.model.waiting.graph import LATEST_LAUNCH_NS, Graph, Threads
from ffm.model.waiting.leads import leads_of_rows
from ffm.model.waiting.meetings import Meetings

Times = NDArray[np.int64]

USUAL_STRETCHES = 2
"""Most paths have no more stretches than that for each row."""


class Part(IntEnum):
    """What part of a row lies on the path."""

    START = piece_kernels.START
    """The time before the first call of the row's thread."""
    CALL = piece_kernels.CALL
    """The driver call, without waiting."""
    WORK = piece_kernels.WORK
    """The CPU work between the call and the thread's next one."""
    REST = piece_kernels.REST
    """Overhead of waiting and launching: from the end of the GPU's work until the CPU continued, or from the cause of
    GPU work until it began.
    """
    UNKNOWN = piece_kernels.UNKNOWN
    """A wait for nothing that is known: of the CPU, or of GPU work that began long after its launch."""
    GPU = piece_kernels.GPU
    """The work of the GPU."""


class StretchKind(IntEnum):
    """What a stretch of the path is."""

    ON_HOST = path_kernels.ON_HOST
    """Time on a thread."""
    ON_GPU = path_kernels.ON_GPU
    """GPU work."""
    BETWEEN = path_kernels.BETWEEN
    """The time from a cause until GPU work began."""


@dataclass(frozen=True, slots=True)
class Path:
    """The pieces of a path, in the order of time. Each begins where the one before it ended. Nanoseconds."""

    row: NDArray[np.int64]
    part: NDArray[np.uint8]
    """A value of `Part`."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    lane: NDArray[np.int64]
    """Where the piece is: a thread or, from the number of threads on, a stream."""

    @property
    def length(self) -> int:
        """The nanoseconds from the start of the run to its end."""
        return int(self.end[-1] - self.begin[0]) if len(self.end) else 0


@dataclass(frozen=True, slots=True)
class Stretches:
    """A path before it is cut by rows: the stretches on one thread, or in one piece of GPU work, earliest first."""

    kind: NDArray[np.uint8]
    """A value of `StretchKind`."""
    where: NDArray[np.int32]
    """The thread, or the row of the GPU work."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def on_threads(cls, thread: NDArray[np.integer], begin: Times, end: Times) -> Stretches:
        """Return stretches on threads, which need not join; the arguments have one entry for each."""
        where = thread.astype(np.int32, copy=False)
        return cls(np.full(len(thread), StretchKind.ON_HOST, np.uint8), where, begin, end)

    @classmethod
    def nothing(cls) -> Stretches:
        """Return no stretch."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint8), np.zeros(0, np.int32), nothing, nothing)

    @property
    def length(self) -> int:
        """As in `Path`."""
        return int(self.end[-1] - self.begin[0]) if len(self.end) else 0

    @classmethod
    def joined(cls, parts: Sequence[Stretches]) -> Stretches:
        """Return all stretches of several, one after the other; of one, without a copy."""
        if len(parts) == 1:
            return parts[0]
        several = [cls.nothing(), *parts]
        return cls(
            np.concatenate([one.kind for one in several]),
            np.concatenate([one.where for one in several]),
            np.concatenate([one.begin for one in several]),
            np.concatenate([one.end for one in several]),
        )

    def some(self, rows: slice) -> Stretches:
        """Return some of them."""
        return Stretches(self.kind[rows], self.where[rows], self.begin[rows], self.end[rows])


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of the parts of rows, each a number below `count`. Columns of length n."""

    call: NDArray[np.int32]
    """Of each row's call; -1 if nobody does, which then lasts no time."""
    gpu: NDArray[np.int32]
    """Of its GPU work; likewise."""
    after: NDArray[np.int32]
    """Of the CPU work after it."""
    before: int
    """Of what comes before a thread's first call."""
    count: int


def time_by_part(timeline: Timeline, work: DeviceWork, graph: Graph, stretches: Stretches) -> NDArray[np.int64]:
    """Return the nanoseconds of a path by `Part`, those of the GPU's transfers apart, which come last."""
    nobody = np.zeros(0, np.int32)
    return tallied(timeline, work, graph, stretches, Owners(nobody, nobody, nobody, 0, 0)).part


def time_by_owner(
    timeline: Timeline, work: DeviceWork, graph: Graph, stretches: Stretches, owners: Owners
) -> NDArray[np.int64]:
    """Return the nanoseconds of stretches by owner; shape (owners,)."""
    return np.asarray(tallied(timeline, work, graph, stretches, owners).owner.sum(axis=0), np.int64)


def tallied(
    timeline: Timeline, work: DeviceWork, graph: Graph, stretches: Stretches, owners: Owners
) -> piece_kernels.Sums:
    """Add up how long the pieces of stretches are, by `Part` as `time_by_part` does, and by `Part` and owner; pieces of
    a long run never lie in memory together.
    """
    begins = _begins(timeline, work)
    sums = piece_kernels.Sums(np.zeros(len(Part) + 1, np.int64), np.zeros((len(Part), owners.count), np.int64))
    run(
        piece_kernels.tally,
        len(timeline),
        piece_kernels.Pieces(stretches.kind, stretches.where, stretches.begin, stretches.end),
        _rows(timeline, work, graph, begins),
        _threshold(work),
        LATEST_LAUNCH_NS,
        piece_kernels.Owners(timeline.kind, owners.call, owners.gpu, owners.after, owners.before),
        sums,
    )
    return sums


def find_stretches(
    timeline: Timeline,
    work: DeviceWork,
    graph: Graph,
    threads: Threads | None = None,
    meetings: Meetings | None = None,
) -> Stretches:
    """Return the critical path of a run, from its first row to the last end of a row's gap or GPU work.

    Without `threads`, no thread started another one; without `meetings`, none waited for another in any other way.
    """
    if not len(timeline):
        return Stretches.nothing()
    related = Threads.unrelated(len(work.process_of_thread)) if threads is None else threads
    begins = _begins(timeline, work)
    leading, leads, led = leads_of_rows(timeline, work, related, meetings, begins)
    jumps = np.empty(sum(int((graph.cause[part] >= 0).sum()) for part in parts(len(timeline))), np.int64)
    run(path_kernels.jumps_to_causes, len(timeline), graph.cause, jumps)
    if len(leading):
        jumps = np.sort(np.concatenate((2 * leading, jumps)))
    columns = timeline.start, timeline.duration, timeline.gap, graph.gpu_end
    last_call, last_work, first = run(path_kernels.last_rows, len(timeline), *columns)
    end = sum(int(column[last_call]) for column in (timeline.start, timeline.duration, timeline.gap))
    gpu_end = int(graph.gpu_end[last_work])
    on_gpu = gpu_end > end
    ways = path_kernels.Ways(
        thread=timeline.thread,
        gpu_begin=graph.gpu_begin,
        gpu_end=graph.gpu_end,
        gpu_after=graph.gpu_after,
        jumps=jumps,
        leading=leading,
        leads=leads,
        led=led,
        parent=related.parent,
        started=related.started,
        born=np.where(related.born >= 0, related.born, timeline.start[begins[:-1].clip(max=len(timeline) - 1)]),
    )
    kind, where, moments = _walked(
        _rows(timeline, work, graph, begins),
        ways,
        int(first),
        max(end, gpu_end),
        path_kernels.GPU_WORK if on_gpu else int(timeline.thread[last_call]),
        int(last_work),
    )
    return Stretches(kind, where, moments[:-1], moments[1:])


def _walked(
    rows: path_kernels.Rows, ways: path_kernels.Ways, first: int, last: int, thread: int, row: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32], Times]:
    """Walk back to the start of the run; return the kinds of the stretches, their threads or rows, earliest first, and
    the moments at which they begin, and the last one.

    There is room for more stretches than most runs have, which is given back. If they are more, the walk is repeated.
    """
    room = USUAL_STRETCHES * len(rows.start)
    while True:
        kind, where, moments = np.empty(room, np.uint8), np.empty(room, np.int32), np.empty(room + 1, np.int64)
        track = path_kernels.Track(kind, where, moments)
        count = run(path_kernels.walk, len(rows.start), rows, ways, first, last, thread, row, track)
        if count <= room:
            break
        room = count
    kind.resize(count, refcheck=False)
    where.resize(count, refcheck=False)
    moments.resize(count + 1, refcheck=False)
    moments[-1] = last
    run(path_kernels.turn_round, count, kind, where, moments)
    return kind, where, moments


def path_on_threads(
    timeline: Timeline,
    work: DeviceWork,
    graph: Graph,
    thread: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> Path:
    """Return what threads did in some stretches of time, which need not join; the arguments have one entry for each."""
    return cut_path(timeline, work, graph, Stretches.on_threads(thread, begin, end))


def cut_path(timeline: Timeline, work: DeviceWork, graph: Graph, stretches: Stretches) -> Path:
    """Cut stretches by rows: return what each piece of them is."""
    begins = _begins(timeline, work)
    part, row, since, until = run(
        piece_kernels.cut,
        len(timeline),
        piece_kernels.Pieces(stretches.kind, stretches.where, stretches.begin, stretches.end),
        _rows(timeline, work, graph, begins),
        _threshold(work),
        LATEST_LAUNCH_NS,
    )
    lane = np.where(part == Part.GPU, len(work.process_of_thread) + work.stream[row], timeline.thread[row])
    return Path(row, part, since, until, lane)


def _begins(timeline: Timeline, work: DeviceWork) -> NDArray[np.int64]:
    """Return where each thread's rows begin; shape (threads + 1,)."""
    return begins_of(timeline.thread, len(work.process_of_thread))


def _threshold(work: DeviceWork) -> int:
    """Return how many nanoseconds a wait without a cause lasts at most that is none."""
    return 0 if work.began is not None else WAITED_NS


def _rows(timeline: Timeline, work: DeviceWork, graph: Graph, begins: NDArray[np.int64]) -> path_kernels.Rows:
    """Return what both passes need to know about the rows."""
    return path_kernels.Rows(
        timeline.start, timeline.duration, timeline.wait, work.action, work.behind, graph.cause, begins
    )
