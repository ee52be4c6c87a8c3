"""The critical path of stored results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ffm.errors import FfmError
from ffm.model.device import DeviceWork
from ffm.model.replay import Replay
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.fixed import Fixed
from ffm.model.waiting.graph import Graph, build_graph
from ffm.model.waiting.path import Part, Path, agreement, find_path
from ffm.results.analysis_document import PathShares
from ffm.results.stored import Results


@dataclass(frozen=True, slots=True)
class RunPath:
    """What a run waited for."""

    timeline: Timeline
    work: DeviceWork
    graph: Graph
    path: Path

    def shares(self, agreed: float | None = None) -> PathShares:
        """Return the path's seconds by kind of time; `agreed` as there."""
        path = self.path
        seconds = (path.end - path.begin) / 1e9
        transfer = (path.part == Part.GPU) & (self.timeline.kind[path.row] == Kind.TRANSFER)
        return PathShares(
            cpu_s=float(seconds[np.isin(path.part, (Part.START, Part.WORK))].sum()),
            calls_s=float(seconds[path.part == Part.CALL].sum()),
            kernels_s=float(seconds[(path.part == Part.GPU) & ~transfer].sum()),
            transfers_s=float(seconds[transfer].sum()),
            overhead_s=float(seconds[path.part == Part.REST].sum()),
            unknown_s=float(seconds[path.part == Part.UNKNOWN].sum()),
            agreed=agreed,
        )


def path_of(timeline: Timeline, work: DeviceWork, replay: Replay, fixed: Fixed | None = None) -> RunPath:
    """Find the critical path with the likely timeline of the GPU, or with that of the `fixed` run, whose columns these
    then are.
    """
    inference = replay.inference if fixed is None else fixed.inference
    graph = build_graph(timeline, work, inference, inference.likely if fixed is None else fixed.times)
    return RunPath(timeline, work, graph, find_path(timeline, work, graph, replay.threads))


def path_shares(timeline: Timeline, work: DeviceWork, replay: Replay) -> PathShares:
    """Return the shares of the critical path, and how much of it is certain."""
    run = path_of(timeline, work, replay)
    return run.shares(_agreed(run, replay))


def _agreed(run: RunPath, replay: Replay) -> float | None:
    """Return on which share of the path all timelines of the GPU agree, 0 to 1; None if its times were recorded."""
    if run.work.began is not None:
        return None
    inference, threads = replay.inference, replay.threads
    others = [
        find_path(run.timeline, run.work, build_graph(run.timeline, run.work, inference, times), threads)
        for times in (inference.slow, inference.fast)
    ]
    return agreement([run.path, *others])


def run_path(results: Results) -> tuple[RunPath, Replay]:
    """Find the critical path of a run, and return the run's replay as well.

    Raises:
        FfmError: The results contain totals instead of single operations, or none.
        DocumentError: The timeline next to the document cannot be read.
    """
    work, replay = results.work, results.estimates.replay
    if work is None or replay is None:
        raise FfmError(
            f"{results.folder} contains totals per call stack, not single operations, so nothing shows what waited for "
            "what. Measure the program with `ffm run`."
        )
    if not len(results.timeline):
        raise FfmError(f"{results.document.application} made no traced call, so there is no path to show.")
    return path_of(results.timeline, work, replay), replay
