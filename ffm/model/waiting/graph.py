"""The graph of a run: for each wait, and each piece of GPU work, the one row that it waited for.

CASITA trims each wait to the one edge that ended it (Dietrich 2019, 5.4.1). So the graph needs no list of edges: it is
columns beside the timeline, and a walk backwards finds exactly one row at each step
(`ffm.model.waiting.path`).

The GPU's times are those that a profiler recorded, or as `ffm.model.gpu_times` infers them. The rest of a wait, after
the work that it waited for was over, is overhead and no waiting (there, 4.1.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.gpu_times.fitting import WAITED_NS
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.timeline import Timeline
from ffm.model.visits import at, inverse
from ffm.model.waiting import graph_kernels

LATEST_LAUNCH_NS = 100_000
"""If GPU work begins later than that after its cause, there is another cause, which is not known. On real GPUs it
begins 1 to 13 microseconds after.
"""

WORTH_FOLLOWING_NS = 20_000
"""Shorter gaps and waits do not show which thread waits for which: waking a thread takes about as long."""


LAST_BLOCKS_SHARE = 0.1
"""When at most this share of a kernel is left, its last blocks may leave room for the next kernel."""


class Reason(IntEnum):
    """Why a piece of GPU work could not begin earlier."""

    LAUNCH = graph_kernels.BY_LAUNCH
    """The CPU put it on its stream only then."""
    STREAM = graph_kernels.BY_STREAM
    """Earlier work of its stream."""
    EVENT = graph_kernels.BY_EVENT
    """Work before an event that its stream had to wait for."""
    LEGACY = graph_kernels.BY_LEGACY
    """The legacy default stream, which orders all streams of a process."""
    ENGINE = 4
    """Work of another stream, launched before, that ended closer to its start than anything else: both need the same
    part of the GPU (there, 6.3.3); or, if nothing else accounts for the start, work that was about to end. Told only
    where a profiler recorded when the work began.
    """


@dataclass(frozen=True, slots=True)
class Graph:
    """Columns of the same length as a timeline's; times in nanoseconds on its clock."""

    gpu_begin: NDArray[np.int64]
    """When the GPU began the row's work; 0, like `gpu_end`, if there is none."""
    gpu_end: NDArray[np.int64]
    gpu_after: NDArray[np.int32]
    """The row whose GPU work had to end first; -1 if the row's own call was what the work waited for."""
    gpu_reason: NDArray[np.uint8]
    """A value of `Reason`."""
    cause: NDArray[np.int32]
    """The row whose GPU work the row's wait was for; -1 if it did not wait, or for nothing known."""
    waited: NDArray[np.int64]
    """How long it waited until that work was over."""

    @property
    def works(self) -> NDArray[np.bool_]:
        """Which rows have GPU work."""
        return self.gpu_end > self.gpu_begin


@dataclass(frozen=True, slots=True)
class Threads:
    """Which thread started and joined which; shape (threads,), -1 if it is unknown."""

    parent: NDArray[np.int32]
    joined: NDArray[np.int64]
    """The row of the parent before which it joined the thread."""
    follows: NDArray[np.int32]
    """The thread whose waits end most of its gaps."""
    started: NDArray[np.int64]
    """The row of the parent before which it started the thread; it may be the one behind the parent's last row."""
    born: NDArray[np.int64]
    """When it was started, nanoseconds on the timeline's clock; if that is unknown, it counts from its first row."""

    @classmethod
    def unrelated(cls, threads: int) -> Threads:
        """Return threads of which nothing is known."""
        nothing, row = np.full(threads, -1, np.int32), np.full(threads, -1, np.int64)
        return cls(nothing, row, nothing, row, row)


def build_graph(timeline: Timeline, work: DeviceWork, inference: Inference, times: GpuTimes) -> Graph:
    """Find what each row waited for, with one of the inference's timelines of the GPU. O(n log n), compiled."""
    rows = len(timeline)
    known = work.began is not None
    gpus = work.gpus
    graph = Graph(
        gpu_begin=np.zeros(rows, np.int64),
        gpu_end=np.zeros(rows, np.int64),
        gpu_after=np.full(rows, -1, np.int32),
        gpu_reason=np.zeros(rows, np.uint8),
        cause=np.full(rows, -1, np.int32),
        waited=np.zeros(rows, np.int64),
    )
    calls = graph_kernels.Calls(
        thread=timeline.thread,
        start=timeline.start,
        duration=timeline.duration,
        wait=timeline.wait,
        action=work.action,
        stream=work.stream,
        event=work.event,
        after_wait=work.behind,
        gpu=times.gpu if work.began is None else np.where(work.began >= 0, work.measured.clip(0), times.gpu),
        pause=times.pause,
        began=np.zeros(0, np.int64) if work.began is None else work.began,
        process_of_thread=work.process_of_thread,
        legacy=work.legacy,
        apart=work.apart,
        gpu_of_stream=gpus.of_stream,
        first_gpu=gpus.first,
    )
    links = graph_kernels.Links(
        graph.gpu_begin, graph.gpu_end, graph.gpu_after, graph.gpu_reason, graph.cause, graph.waited
    )
    threshold = 0 if known else WAITED_NS
    run(graph_kernels.link, rows, inference.order, calls, links, work.streams, work.events, threshold)
    if known:
        _find_shared_engines(graph, timeline, work, inference.order)
    return graph


def _find_shared_engines(graph: Graph, timeline: Timeline, work: DeviceWork, order: NDArray[np.int64]) -> None:
    """Let work come after that of another stream of the device if that ended nearer to its start, in place."""
    place = inverse(order)
    rows = np.flatnonzero(graph.works)
    gpu = work.gpu_of(rows, timeline.thread)
    for number in np.unique(gpu).tolist():
        mine = rows[gpu == number]
        if len(np.unique(work.stream[mine])) < 2:
            continue
        by_end = mine[np.argsort(graph.gpu_end[mine], kind="stable")]
        before = np.searchsorted(graph.gpu_end[by_end], graph.gpu_begin[mine], side="right") - 1
        nearest = by_end[before.clip(0)]
        after = graph.gpu_after[mine]
        called = np.minimum(timeline.start[mine] + timeline.duration[mine], graph.gpu_begin[mine])
        ready = np.where(after >= 0, graph.gpu_end[after], called)
        closer = (before >= 0) & (graph.gpu_end[nearest] > ready) & (at(place, nearest) < at(place, mine))
        closer &= work.stream[nearest] != work.stream[mine]
        graph.gpu_after[mine[closer]] = nearest[closer]
        graph.gpu_reason[mine[closer]] = Reason.ENGINE
        ready = np.where(closer, graph.gpu_end[nearest], ready)
        late = graph.gpu_begin[mine] - ready > LATEST_LAUNCH_NS
        _come_after_last_blocks(graph, work, mine[late], by_end)


def _come_after_last_blocks(graph: Graph, work: DeviceWork, rows: NDArray[np.int64], by_end: NDArray[np.int64]) -> None:
    """Let work come after that of another stream that was about to end when it began, in place; `by_end` is the
    device's work in the order in which it ended. That may have been launched later: the GPU chooses among streams.
    """
    following = np.searchsorted(graph.gpu_end[by_end], graph.gpu_begin[rows], side="right")
    rows, following = rows[following < len(by_end)], following[following < len(by_end)]
    ending = by_end[following]
    left = graph.gpu_end[ending] - graph.gpu_begin[rows]
    almost = left <= LAST_BLOCKS_SHARE * (graph.gpu_end[ending] - graph.gpu_begin[ending])
    almost &= work.stream[ending] != work.stream[rows]
    graph.gpu_after[rows[almost]] = ending[almost]
    graph.gpu_reason[rows[almost]] = Reason.ENGINE
