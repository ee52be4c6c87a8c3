"""The critical path: what the end of a run waited for, followed backwards to its start (Dietrich 2019, 5.4.1).

The walk starts at the last event of the run. On a thread it goes back to where the thread waited: for GPU work, whose
end it then follows, or for a thread that it joined. From GPU work it goes on to what that work waited for: earlier GPU
work, or the call that launched it. The path's stretches join without hole or overlap, so that their sum is the run's
length. Shortening what lies beside the path does not end the run sooner.

Only rows with a cause can be left, so the walk is a binary search for each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times.inference import WAITED_NS
from ffm.model.timeline import Timeline
from ffm.model.waiting import path_kernels
from ffm.model.waiting.graph import LATEST_LAUNCH_NS, WORTH_FOLLOWING_NS, Graph, Threads
from ffm.model.waiting.meetings import Meetings

Times = NDArray[np.int64]

STRETCHES_AT_ONCE = 1 << 16
ROWS_AT_ONCE = 1 << 18
"""How much of a long path is cut at once: so many stretches, which cover about so many rows."""


class Part(IntEnum):
    """What part of a row lies on the path."""

    START = path_kernels.START
    """The time before the first call of the row's thread."""
    CALL = path_kernels.CALL
    """The driver call, without waiting."""
    WORK = path_kernels.WORK
    """The CPU work between the call and the thread's next one."""
    REST = path_kernels.REST
    """Overhead of waiting and launching: from the end of the GPU's work until the CPU continued, or from the cause of
    GPU work until it began.
    """
    UNKNOWN = path_kernels.UNKNOWN
    """A wait for nothing that is known: of the CPU, or of GPU work that began long after its launch."""
    GPU = path_kernels.GPU
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
    where: NDArray[np.int64]
    """The thread, or the row of the GPU work."""
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    lane: NDArray[np.integer]
    """As in `Path`."""

    @classmethod
    def of(
        cls, timeline: Timeline, work: DeviceWork, kind: NDArray[np.uint8], where: Times, begin: Times, end: Times
    ) -> Stretches:
        """Return stretches with their lanes."""
        lane = where.astype(np.int32)
        on_gpu, between = (np.flatnonzero(kind == one) for one in (StretchKind.ON_GPU, StretchKind.BETWEEN))
        lane[on_gpu] = len(work.process_of_thread) + work.stream[where[on_gpu]]
        lane[between] = timeline.thread[where[between]]
        return cls(kind, where, begin, end, lane)

    @classmethod
    def on_threads(cls, thread: NDArray[np.integer], begin: Times, end: Times) -> Stretches:
        """Return stretches on threads, which need not join; the arguments have one entry for each."""
        where = thread.astype(np.int64)
        return cls(np.full(len(thread), StretchKind.ON_HOST, np.uint8), where, begin, end, where)

    @classmethod
    def nothing(cls) -> Stretches:
        """Return no stretch."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint8), nothing, nothing, nothing, nothing)

    @property
    def length(self) -> int:
        """As in `Path`."""
        return int(self.end[-1] - self.begin[0]) if len(self.end) else 0

    def some(self, rows: slice) -> Stretches:
        """Return some of them."""
        return Stretches(self.kind[rows], self.where[rows], self.begin[rows], self.end[rows], self.lane[rows])


@dataclass(frozen=True, slots=True)
class Places:
    """Where a path is: only the moments at which it moves."""

    begin: NDArray[np.int64]
    lane: NDArray[np.int32]
    """As in `Path`."""
    end: int
    """When it is over."""

    @property
    def length(self) -> int:
        """As in `Path`."""
        return self.end - int(self.begin[0]) if len(self.begin) else 0


def cut_in_parts(timeline: Timeline, work: DeviceWork, graph: Graph, stretches: Stretches) -> Iterator[Path]:
    """Yield a path part by part, so that no more than a part of a long run's is in memory."""
    for first in range(0, len(stretches.kind), STRETCHES_AT_ONCE):
        some, rows = _in_short_stretches(timeline, work, stretches.some(slice(first, first + STRETCHES_AT_ONCE)))
        over = np.cumsum(rows + 1)
        begin = 0
        while begin < len(over):
            before = over[begin - 1] if begin else 0
            end = max(int(np.searchsorted(over, before + ROWS_AT_ONCE, side="right")), begin + 1)
            yield cut_path(timeline, work, graph, some.some(slice(begin, end)))
            begin = end


def _in_short_stretches(
    timeline: Timeline, work: DeviceWork, stretches: Stretches
) -> tuple[Stretches, NDArray[np.int64]]:
    """Divide the stretches of threads where rows begin, so that none covers much more than `ROWS_AT_ONCE` rows; also
    return how many rows each covers.
    """
    begins = np.searchsorted(timeline.thread, np.arange(len(work.process_of_thread) + 1))
    first, rows = np.zeros((2, len(stretches.kind)), np.int64)
    host = np.flatnonzero(stretches.kind == path_kernels.ON_HOST)
    for thread in np.unique(stretches.where[host]).tolist():
        mine = host[stretches.where[host] == thread]
        start = timeline.start[begins[thread] : begins[thread + 1]]
        first[mine] = begins[thread] + np.searchsorted(start, stretches.begin[mine], side="right")
        rows[mine] = begins[thread] + np.searchsorted(start, stretches.end[mine], side="right") - first[mine]
    times = 1 + rows // ROWS_AT_ONCE
    begin, end = np.repeat(stretches.begin, times), np.repeat(stretches.end, times)
    place = np.cumsum(times) - times
    for number in np.flatnonzero(times > 1).tolist():
        borders = timeline.start[first[number] + ROWS_AT_ONCE * np.arange(1, times[number]) - 1]
        begin[place[number] + 1 : place[number] + times[number]] = borders
        end[place[number] : place[number] + times[number] - 1] = borders
    again = np.repeat(np.arange(len(times)), times)
    divided = Stretches(stretches.kind[again], stretches.where[again], begin, end, stretches.lane[again])
    return divided, np.repeat(-(-rows // times), times)


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
    number = len(work.process_of_thread)
    related = Threads.unrelated(number) if threads is None else threads
    if not len(timeline):
        return Stretches.nothing()
    begins = np.searchsorted(timeline.thread, np.arange(number + 1)).astype(np.int64)
    end = timeline.start + timeline.duration
    leads, led = _leads(timeline, related, begins, end)
    if meetings is not None:
        _lead_from_meetings(timeline, meetings, begins, leads, led)
    if work.awaits is not None:
        _lead_from_starts(timeline, work.awaits, leads, led)
    jumps = np.sort(np.concatenate((2 * np.flatnonzero(leads >= 0), 2 * np.flatnonzero(graph.cause >= 0) + 1)))
    end += timeline.gap
    over = end
    last_call, last_work = int(np.argmax(over)), int(np.argmax(graph.gpu_end))
    ends_on_gpu = graph.gpu_end[last_work] > over[last_call]
    ways = path_kernels.Ways(
        thread=timeline.thread,
        gpu_begin=graph.gpu_begin,
        gpu_end=graph.gpu_end,
        gpu_after=graph.gpu_after,
        jumps=jumps,
        leads=leads,
        led=led,
        parent=related.parent,
        started=related.started,
        born=np.where(related.born >= 0, related.born, timeline.start[begins[:-1].clip(max=len(timeline) - 1)]),
    )
    stretches = run(
        path_kernels.walk,
        len(timeline),
        _rows(timeline, work, graph, begins),
        ways,
        int(timeline.start.min()),
        int(max(over[last_call], graph.gpu_end[last_work])),
        path_kernels.GPU_WORK if ends_on_gpu else int(timeline.thread[last_call]),
        last_work,
    )
    columns = list(stretches)
    del stretches, leads, led, jumps, ways
    for place, column in enumerate(columns):  # one after the other: they can be the largest of all
        columns[place] = column[::-1].copy()
        del column
    kind, where, begin, until = columns
    return Stretches.of(timeline, work, kind, where, begin, until)


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
    number = len(work.process_of_thread)
    begins = np.searchsorted(timeline.thread, np.arange(number + 1)).astype(np.int64)
    part, row, since, until = run(
        path_kernels.cut,
        len(timeline),
        path_kernels.Pieces(stretches.kind, stretches.where, stretches.begin, stretches.end),
        _rows(timeline, work, graph, begins),
        0 if work.began is not None else WAITED_NS,
        LATEST_LAUNCH_NS,
    )
    lane = np.where(part == Part.GPU, number + work.stream[row], timeline.thread[row])
    return Path(row, part, since, until, lane)


def _rows(timeline: Timeline, work: DeviceWork, graph: Graph, begins: NDArray[np.int64]) -> path_kernels.Rows:
    """Return what both passes are told of the rows."""
    return path_kernels.Rows(timeline.start, timeline.duration, timeline.wait, work.action, graph.cause, begins)


def _leads(
    timeline: Timeline, threads: Threads, begins: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each row, the row of another thread for whose end its thread waited before it, and that end; -1 if
    there is none.

    That is the last wait of the thread that it follows, if it ended within the gap before the row, or else the last row
    of the thread that ended last of those that are joined there, if it ended in that gap.
    """
    leads = np.full(len(timeline), -1, np.int64)
    known = np.flatnonzero((threads.joined >= 0) & (begins[1:] > begins[:-1]))
    ended, joined = begins[known + 1] - 1, threads.joined[known]
    order = np.argsort(end[ended], kind="stable")
    follows_row = joined > begins[timeline.thread[joined]]  # else it is the first of its thread
    order = order[(~follows_row | (end[ended] > end[joined - 1]))[order]]  # others had ended before they were joined
    leads[joined[order]] = ended[order]  # the last assignment stays
    for thread in np.flatnonzero(threads.follows >= 0).tolist():
        rows = np.arange(begins[thread] + 1, begins[thread + 1])
        leader = np.arange(*begins[threads.follows[thread] :][:2])
        waits = leader[timeline.wait[leader] > WORTH_FOLLOWING_NS]
        if not len(rows) or not len(waits):
            continue
        last = waits[(np.searchsorted(end[waits], timeline.start[rows], side="right") - 1).clip(0)]
        within = (end[last] <= timeline.start[rows]) & (end[last] >= end[rows - 1])
        within &= timeline.start[rows] - end[rows - 1] > WORTH_FOLLOWING_NS
        leads[rows[within]] = last[within]
    led = np.full(len(timeline), -1, np.int64)
    led[leads >= 0] = end[leads[leads >= 0]]
    return leads, led


def _lead_from_meetings(
    timeline: Timeline,
    meetings: Meetings,
    begins: NDArray[np.int64],
    leads: NDArray[np.int64],
    led: NDArray[np.int64],
) -> None:
    """Let the rows after meetings, for which their threads waited, be led by the last one that came, in place."""
    last = meetings.last[meetings.number]
    by_first: dict[int, tuple[int, int]] = {}
    for entry in np.flatnonzero(meetings.waited > 0).tolist():
        thread, leader, came = meetings.thread[entry], meetings.thread[last[entry]], meetings.came[last[entry]]
        row = begins[thread] + np.searchsorted(timeline.start[begins[thread] : begins[thread + 1]], came)
        before = begins[leader] + np.searchsorted(timeline.start[begins[leader] : begins[leader + 1]], came) - 1
        if row < begins[thread + 1] and before >= begins[leader]:
            leads[row], led[row] = before, came
        elif row < begins[thread + 1] and begins[leader] < begins[leader + 1]:
            by_first[int(row)] = int(begins[leader]), int(came)
    # The first row of a thread can lead if nothing leads it: there the path ends.
    for row, (first, came) in by_first.items():
        if leads[first] < 0 and first not in by_first:
            leads[row], led[row] = first, came


def _lead_from_starts(
    timeline: Timeline, awaits: NDArray[np.int32], leads: NDArray[np.int64], led: NDArray[np.int64]
) -> None:
    """Let the rows that another thread's row started be led by its start, in place."""
    started = np.flatnonzero((awaits >= 0) & (timeline.wait == 0))
    started = started[timeline.start[awaits[started]] < timeline.start[started]]
    leads[started] = awaits[started]
    led[started] = timeline.start[leads[started]]


def places_of(path: Path | Stretches) -> Places:
    """Return where a path is at each time."""
    moves = np.ones(len(path.lane), np.bool_)
    np.not_equal(path.lane[1:], path.lane[:-1], out=moves[1:])
    return Places(path.begin[moves], path.lane[moves].astype(np.int32), int(path.end[-1]) if len(path.end) else 0)


def agreement(paths: Sequence[Places]) -> float:
    """Return on which share of the time all paths are at the same place, 0 to 1; they are of the same run."""
    if not paths or paths[0].length == 0:
        return 1.0
    offsets = np.cumsum([0, *(len(path.begin) for path in paths)])
    begin = np.concatenate([path.begin for path in paths])
    lane = np.concatenate([path.lane for path in paths])
    same = run(path_kernels.shared, len(begin), begin, lane, offsets, min(path.end for path in paths))
    return float(same) / max(path.length for path in paths)
