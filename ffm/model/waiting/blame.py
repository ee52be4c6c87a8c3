"""What is to blame for waiting: GPU work that the CPU waited for, CPU work while the GPU was idle, and what threads did
while others waited for them (Dietrich 2019, 5.4.2).

The CPU's waiting is shared among the work that it waited for, by how long each piece ran. The GPU's idle time belongs
to the thread whose launch ended it, and is shared among what that thread did meanwhile; while it waited for another
thread, among what that one did. CASITA blames each thread for all of the idle time, so that its blame exceeds it; here
each kind of blame adds up to what was found. `ffm.model.waiting.meeting_blame` shares waiting for threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.device import DeviceWork
from ffm.model.grouping import looked_up
from ffm.model.timeline import Timeline
from ffm.model.union import gaps
from ffm.model.waiting import blame_kernels
from ffm.model.waiting.graph import Graph
from ffm.model.waiting.holders import on_holders
from ffm.model.waiting.meeting_blame import Shared, share_meetings
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Stretches


@dataclass(frozen=True, slots=True)
class Blame:
    """Blame for waiting, in nanoseconds."""

    work: NDArray[np.int64]
    """How much waiting of the CPU each row's GPU work is to blame for; shape (n,)."""
    threads: Shared
    """What threads did that others waited for."""
    passed_on: Shared
    """The same, with blame for waiting passed on to what was waited for."""
    work_passed_on: NDArray[np.int64]
    """As `work`, with what is passed on to it."""


def find_idlers(timeline: Timeline, work: DeviceWork, graph: Graph, meetings: Meetings) -> Stretches:
    """Return which threads left the GPU idle, or held up those that did, and when; `ffm.model.waiting.path.cut_path`
    tells what they did then. O(n log n), compiled.
    """
    return on_holders(Stretches.joined([each for _, each in idle_stretches(timeline, work, graph)]), meetings)


def find_blame(timeline: Timeline, work: DeviceWork, graph: Graph, meetings: Meetings) -> Blame:
    """Share waiting among what it was for. O(n log n), compiled."""
    blamed = _of_work(timeline, graph, graph.waited)
    shared = share_meetings(timeline, work, graph, meetings)
    passed_on = share_meetings(timeline, work, graph, meetings, pass_on=True) if len(meetings.number) else shared
    indirect = blamed
    if passed_on.on_wait.any():
        indirect = _of_work(timeline, graph, graph.waited + passed_on.on_wait.astype(np.int64))
    return Blame(blamed, shared, passed_on, indirect)


def idle_stretches(timeline: Timeline, work: DeviceWork, graph: Graph) -> list[tuple[int, Stretches]]:
    """Return the number of each GPU that worked (`DeviceWork.gpu_of`), and when it was idle between its first and its
    last work, on the thread whose launch ended that.
    """
    if work.one_gpu and (graph.gpu_end > graph.gpu_begin).any():
        behind, since, until = gaps(graph.gpu_begin, graph.gpu_end)
        return [(0, Stretches.on_threads(looked_up(timeline.thread, behind), since, until))]
    found = []
    for gpu, rows in work.rows_by_gpu(np.flatnonzero(graph.works), timeline.thread):
        behind, since, until = gaps(graph.gpu_begin[rows], graph.gpu_end[rows])
        found.append((gpu, Stretches.on_threads(timeline.thread[rows[behind]], since, until)))
    return found


def _of_work(timeline: Timeline, graph: Graph, waited: NDArray[np.int64]) -> NDArray[np.int64]:
    """Share what each row waited among the GPU work that it was for; shape (n,)."""
    blamed = np.zeros(len(timeline), np.int64)
    run(
        blame_kernels.blame_work,
        len(timeline),
        timeline.thread,
        graph.gpu_begin,
        graph.gpu_end,
        graph.gpu_after,
        graph.cause,
        waited,
        blamed,
    )
    return blamed
