"""What holds for the path and the blame in every published trace, whatever recorded it."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.model.device import DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Timeline
from ffm.model.waiting.blame import find_blame, find_idlers
from ffm.model.waiting.patterns import find_patterns
from ffm.results.waiting.run_path import RunPath, likely_path
from ffm.sources.nsight import read_nsight
from ffm.sources.profile import Profile
from ffm.sources.profiled import profiled_run
from ffm.sources.pytorch import read_pytorch
from ffm.sources.scorep import read_otf2
from tests.sources.nsight_reports import TRACES, needs_traces

CASITA = TRACES.parent / "casita" / "traces"
NAMES = [
    "nsys-cestwc-rtx3090/report2.sqlite",
    "nsys-cestwc-rtx3090/report16.sqlite",
    "nsys-cloverleaf-a100/perlmutter-cloverleaf-cuda.sqlite",
    "nsys-h100/h100_2gpu_1s.sqlite",
    "kineto-h100/owlv2.json.gz",
    "kineto-h100/qwen1.5-0.5b.json.gz",
    "kineto-a100/alexnet_cuda_sync.json.gz",
    "kineto-a100/event_sync_multi_stream.json.gz",
    "4_mpi_ls_barr",
    "10_scorep_mpi_tags",
    "1_ocl_deps",
    "1_sptc",
    "2_cuda_simple",
]

ONE_OF_EACH_KIND = ("nsys-cestwc-rtx3090/report16.sqlite", "kineto-h100/qwen1.5-0.5b.json.gz", "10_scorep_mpi_tags")


def profile_of(name: str) -> Profile:
    if name.endswith(".sqlite"):
        return read_nsight(TRACES / name)
    if name.endswith(".json.gz"):
        return read_pytorch([TRACES / name])
    pytest.importorskip("otf2", reason="the extra `otf2` is not installed")
    return read_otf2(CASITA / name)


def found(timeline: Timeline, work: DeviceWork) -> RunPath:
    inference = infer_gpu_times(timeline, work)
    return likely_path(timeline, work, inference, Replay(timeline, work, inference).threads)


def holds(run: RunPath) -> None:
    timeline, path, graph = run.timeline, run.path, run.graph
    begin = int(timeline.start.min())
    end = max(int((timeline.start + timeline.duration + timeline.gap).max()), int(graph.gpu_end.max()))
    assert (path.begin[1:] == path.end[:-1]).all()  # neither hole nor overlap
    assert (path.end >= path.begin).all()
    assert (path.begin[0], path.end[-1]) == (begin, end)  # the whole run
    shares = run.shares()
    seconds = [shares.cpu_s, shares.calls_s, shares.kernels_s, shares.transfers_s, shares.overhead_s, shares.unknown_s]
    assert min(seconds) >= 0 and sum(seconds) == pytest.approx((end - begin) / 1e9)  # no share above 100 %
    blame = find_blame(timeline, run.work, graph, run.meetings)
    assert abs(int(blame.work.sum()) - int(graph.waited.sum())) <= len(timeline)  # each is rounded to nanoseconds
    shared = blame.threads
    assert shared.blame.sum() + shared.on_meeting.sum() == pytest.approx(run.meetings.waited.sum())
    idle = sum(use.idle for use in find_patterns(timeline, run.work, graph, run.meetings).gpu)
    idlers = find_idlers(timeline, run.work, graph, run.meetings)
    assert int((idlers.end - idlers.begin).sum()) <= idle
    assert (graph.waited <= timeline.duration).all()
    assert (graph.gpu_begin <= graph.gpu_end).all()
    after = np.flatnonzero(graph.gpu_after >= 0)
    assert (graph.gpu_end[graph.gpu_after[after]] < graph.gpu_end[after]).all()  # no work comes after itself


@needs_traces
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ONE_OF_EACH_KIND else pytest.mark.thorough) for name in NAMES]
)
def test_the_path_and_the_blame_of_a_trace_add_up(name: str) -> None:
    profile = profile_of(name)
    traced = profiled_run(profile, profile.calls.name.astype(np.int32))
    holds(found(traced.timeline, traced.work))
