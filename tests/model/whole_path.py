"""The critical path of a run by rows, in one call."""

from __future__ import annotations

from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import Graph, Threads
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Path, cut_path, find_stretches


def find_path(
    timeline: Timeline,
    work: DeviceWork,
    graph: Graph,
    threads: Threads | None = None,
    meetings: Meetings | None = None,
) -> Path:
    """Find it; arguments as for `find_stretches`."""
    return cut_path(timeline, work, graph, find_stretches(timeline, work, graph, threads, meetings))
