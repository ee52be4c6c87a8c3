"""The critical path of stored results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.errors import FfmError
from ffm.model.device import DeviceWork
from ffm.model.gpu_times.inference import Inference
from ffm.model.replay import Replay
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting.fixed import Fixed
from ffm.model.waiting.graph import Graph, Threads, build_graph
from ffm.model.waiting.meetings import Meetings, joined_teams, told_meetings
from ffm.model.waiting.path import Part, Path, agreement, cut_in_parts, find_path, find_stretches, places_of
from ffm.results.analysis_document import PathShares
from ffm.results.stored import Results


@dataclass(frozen=True, slots=True)
class RunPath:
    """What a run waited for."""

    timeline: Timeline
    work: DeviceWork
    graph: Graph
    meetings: Meetings
    """Where threads waited for each other."""
    path: Path

    def shares(self, agreed: float | None = None) -> PathShares:
        """Return the path's seconds by kind of time; `agreed` as there."""
        return _shares(_nanoseconds(self.timeline, self.path), agreed)


def _nanoseconds(timeline: Timeline, path: Path) -> NDArray[np.float64]:
    """Return the nanoseconds of a path by `Part` and, last, those of the GPU's transfers.

    The sums are exact far beyond the length of any run.
    """
    transfer = (path.part == Part.GPU) & (timeline.kind[path.row] == Kind.TRANSFER)
    kind = np.where(transfer, len(Part), path.part)
    return np.bincount(kind, weights=path.end - path.begin, minlength=len(Part) + 1).astype(np.float64)


def _shares(nanoseconds: NDArray[np.float64], agreed: float | None) -> PathShares:
    seconds = nanoseconds / 1e9
    return PathShares(
        cpu_s=float(seconds[Part.START] + seconds[Part.WORK]),
        calls_s=float(seconds[Part.CALL]),
        kernels_s=float(seconds[Part.GPU]),
        transfers_s=float(seconds[len(Part)]),
        overhead_s=float(seconds[Part.REST]),
        unknown_s=float(seconds[Part.UNKNOWN]),
        agreed=agreed,
    )


def path_of(timeline: Timeline, work: DeviceWork, replay: Replay, fixed: Fixed | None = None) -> RunPath:
    """Find the critical path with the likely timeline of the GPU, or with that of the `fixed` run, whose columns these
    then are.
    """
    inference = replay.inference if fixed is None else fixed.inference
    graph = build_graph(timeline, work, inference, inference.likely if fixed is None else fixed.times)
    threads = replay.threads
    meetings = _meetings(timeline, work, threads)
    return RunPath(timeline, work, graph, meetings, find_path(timeline, work, graph, threads, meetings))


def _meetings(timeline: Timeline, work: DeviceWork, threads: Threads) -> Meetings:
    """Return where threads waited for each other: as a profiler told, or else as their starts and ends show."""
    return joined_teams(timeline, threads) if work.awaits is None else told_meetings(timeline, work.awaits)


def path_shares(timeline: Timeline, work: DeviceWork, inference: Inference, threads: Threads) -> PathShares:
    """Return the shares of the critical path, and on how much of it all timelines of the GPU agree, 0 to 1. That is
    None if the GPU's times were recorded.

    Of a long run, a path by rows takes more memory than anything else: only a part of it exists at any time.
    """
    meetings = joined_teams(timeline, threads)
    graph = build_graph(timeline, work, inference, inference.likely)
    likely = find_stretches(timeline, work, graph, threads, meetings)
    nanoseconds = np.zeros(len(Part) + 1)
    for part in cut_in_parts(timeline, work, graph, likely):
        nanoseconds += _nanoseconds(timeline, part)
    places = [places_of(likely)]
    del likely, part
    if work.began is not None:
        return _shares(nanoseconds, None)
    for times in (inference.slow, inference.fast):
        del graph
        graph = build_graph(timeline, work, inference, times)
        places.append(places_of(find_stretches(timeline, work, graph, threads, meetings)))
    del graph
    return _shares(nanoseconds, agreement(places))


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
