"""The critical path of stored results."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.errors import FfmError
from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import Graph, build_graph
from ffm.model.waiting.path import Path, agreement, find_path
from ffm.results.stored import Results


@dataclass(frozen=True, slots=True)
class RunPath:
    """What a run waited for."""

    timeline: Timeline
    work: DeviceWork
    graph: Graph
    path: Path
    agreed: float | None
    """On which share of the path all timelines of the GPU agree, 0 to 1; None if its times were recorded."""


def run_path(results: Results) -> RunPath:
    """Find the critical path of a run, with the likely timeline of the GPU.

    Raises:
        FfmError: The results contain totals instead of single operations.
        DocumentError: The timeline next to the document cannot be read.
    """
    work, replay = results.work, results.estimates.replay
    if work is None or replay is None:
        raise FfmError(
            f"{results.folder} contains totals per call stack, not single operations, so nothing shows what waited for "
            "what. Measure the program with `ffm run`."
        )
    timeline, inference, threads = results.timeline, replay.inference, replay.threads
    if not len(timeline):
        raise FfmError(f"{results.document.application} made no traced call, so there is no path to show.")
    graph = build_graph(timeline, work, inference, inference.likely)
    path = find_path(timeline, work, graph, threads)
    agreed = None
    if work.began is None:
        others = [
            find_path(timeline, work, build_graph(timeline, work, inference, times), threads)
            for times in (inference.slow, inference.fast)
        ]
        agreed = agreement([path, *others])
    return RunPath(timeline, work, graph, path, agreed)
