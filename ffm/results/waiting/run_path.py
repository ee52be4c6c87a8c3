"""The critical path of a run. Stage 5 stores what most views need of it. The few that show pieces of it find it again,
from the timeline and the GPU's times, because storing it would take 63 bytes per operation.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.errors import FfmError
from ffm.model.device import DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.timeline import Timeline
from ffm.model.waiting.agreement import Moves, moves_of
from ffm.model.waiting.fixed import Fixed
from ffm.model.waiting.graph import Graph, Threads, build_graph
from ffm.model.waiting.meetings import Meetings, joined_teams, lock_meetings, recorded_meetings
from ffm.model.waiting.path import (
    Owners,
    Part,
    Path,
    Stretches,
    cut_path,
    find_stretches,
    tallied,
    time_by_part,
)
from ffm.results.documents.analysis import PathShares
from ffm.results.documents.waiting import Waiting
from ffm.results.stored import Results


@dataclass(frozen=True)
class RunPath:
    """What a run waited for."""

    timeline: Timeline
    work: DeviceWork
    graph: Graph
    meetings: Meetings
    """Where threads waited for each other."""
    stretches: Stretches

    @classmethod
    def found(
        cls, timeline: Timeline, work: DeviceWork, inference: Inference, times: GpuTimes, threads: Threads
    ) -> RunPath:
        """Find it, with one of the inference's timelines of the GPU."""
        if work.awaits is not None:
            met = recorded_meetings(timeline, work.awaits, work.process_of_thread)
        else:
            met = joined_teams(timeline, threads)
            met = met if work.locks is None else Meetings.joined([met, lock_meetings(timeline, work.locks)])
        graph = build_graph(timeline, work, inference, times)
        return cls(timeline, work, graph, met, find_stretches(timeline, work, graph, threads, met))

    @functools.cached_property
    def path(self) -> Path:
        """The path by rows. Of a long run, this takes more memory than anything else."""
        return cut_path(self.timeline, self.work, self.graph, self.stretches)

    @functools.cached_property
    def by_part(self) -> NDArray[np.int64]:
        """The path's nanoseconds as `time_by_part` returns them."""
        return time_by_part(self.timeline, self.work, self.graph, self.stretches)

    def by_part_of_owner(self, owners: Owners) -> NDArray[np.int64]:
        """Return the path's nanoseconds by `Part` and owner; shape (parts, owners)."""
        sums = tallied(self.timeline, self.work, self.graph, self.stretches, owners)
        self.__dict__["by_part"] = sums.part  # which takes as long to find again
        return sums.owner

    def shares(self, agreed: float | None = None) -> PathShares:
        """Return the path's seconds by kind of time; `agreed` as there."""
        seconds = self.by_part / 1e9
        return PathShares(
            cpu_s=float(seconds[Part.START] + seconds[Part.WORK]),
            calls_s=float(seconds[Part.CALL]),
            kernels_s=float(seconds[Part.GPU]),
            transfers_s=float(seconds[len(Part)]),
            overhead_s=float(seconds[Part.REST]),
            unknown_s=float(seconds[Part.UNKNOWN]),
            agreed=agreed,
        )


def likely_path(timeline: Timeline, work: DeviceWork, inference: Inference, threads: Threads) -> RunPath:
    """Find the critical path with the likely timeline of the GPU."""
    return RunPath.found(timeline, work, inference, inference.likely, threads)


def fixed_path(fixed: Fixed, replay: Replay) -> RunPath:
    """Find the critical path of a run as it would be after its fixes."""
    return RunPath.found(fixed.timeline, fixed.work, fixed.inference, fixed.times, replay.threads)


def doubtful_moves(timeline: Timeline, work: DeviceWork, inference: Inference, threads: Threads) -> tuple[Moves, ...]:
    """Return where the path is with the slow and the fast timeline of the GPU; nothing if its times were recorded."""
    if work.began is not None:
        return ()
    return tuple(
        moves_of(timeline, work, RunPath.found(timeline, work, inference, times, threads).stretches)
        for times in (inference.slow, inference.fast)
    )


def run_path(results: Results) -> RunPath:
    """Return the critical path of a run, as stage 5 found it.

    Raises:
        FfmError: The results contain totals instead of single operations, or none.
        DocumentError: The timeline next to the document, or the GPU's times, cannot be read.
    """
    if results.work is None:
        raise _no_operations(results)
    if not len(results.timeline):
        raise _no_calls(results)
    replay = results.estimates.replay
    assert replay is not None, "there are operations"
    return likely_path(results.timeline, results.work, replay.inference, replay.threads)


def stored_waiting(results: Results) -> Waiting:
    """Return what the run waited for besides, as stage 5's document says it; this reads no timeline.

    Raises:
        FfmError: The results contain totals instead of single operations, or none.
    """
    waiting = results.document.waiting
    if waiting is not None:
        return waiting
    raise _no_operations(results) if results.work is None else _no_calls(results)


def _no_operations(results: Results) -> FfmError:
    return FfmError(
        f"{results.folder} contains totals per call stack, not single operations, so nothing shows what waited for "
        "what. Measure the program with `ffm run`."
    )


def _no_calls(results: Results) -> FfmError:
    return FfmError(f"{results.document.application} made no traced call, so there is no path to show.")
