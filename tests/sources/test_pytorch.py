"""Traces of PyTorch's profiler: their calls and Python stacks, and several processes kept apart."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ffm.errors import DocumentError
from ffm.model.device import Action
from ffm.report.terminal.path import render_path
from ffm.report.waiting.path import path_view
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import AmbiguousWork
from ffm.results.stored import open_results
from ffm.sources.profile import Place
from ffm.sources.profiled import ProfiledRun, profiled_run
from ffm.sources.profiled_results import write_profile
from ffm.sources.pytorch import read_pytorch
from tests.sources.nsight_reports import TRACES, needs_traces
from tests.sources.pytorch_traces import PROCESS, Trace, loop


def run_of(trace: Trace, folder: Path) -> ProfiledRun:
    profile = read_pytorch([trace.write(folder / "trace.json")])
    return profiled_run(profile, np.arange(len(profile.calls), dtype=np.int32))


def results_of(paths: list[Path], folder: Path) -> Analysis:
    return write_profile(read_pytorch(paths), "pytorch", folder / "results")


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_calls_work_and_waits_become_rows(tmp_path: Path, name: str) -> None:
    profile = read_pytorch([loop(3).write(tmp_path / name)])
    run = profiled_run(profile, np.zeros(len(profile.calls), np.int32))
    assert run.timeline.start.tolist() == [0, 6000, 100000, 106000, 200000, 206000, 300000]
    assert run.timeline.wait.tolist() == [0, 51000] * 3 + [0]
    assert run.work.measured.tolist() == [50000, -1] * 3 + [-1]
    assert run.work.action.tolist() == [Action.ENQUEUE, Action.WAIT_CONTEXT] * 3 + [Action.NONE]


def test_a_wait_for_an_unnamed_stream_is_for_all_of_the_work(tmp_path: Path) -> None:
    """Without events of synchronizations, the trace does not name the stream that a call waits for."""
    trace = Trace()
    trace.kernel("step", 6, 56, trace.call("cudaLaunchKernel", 0, 5))
    trace.call("cudaStreamSynchronize", 6, 57)
    run = run_of(trace, tmp_path)
    assert run.work.action.tolist() == [Action.ENQUEUE, Action.WAIT_CONTEXT]
    assert run.timeline.wait.tolist() == [0, 51000]


def test_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    trace = Trace()
    begin = 1419116104994.671  # since the base; exact to a nanosecond in a double
    trace.kernel("step", begin + 10, begin + 10.032, trace.call("cudaLaunchKernel", begin, begin + 5))
    trace.call("cudaDeviceSynchronize", begin + 11.5, begin + 12)
    run = run_of(trace, tmp_path)
    assert run.timeline.start.tolist() == [0, 11500] and run.work.measured.tolist() == [32, -1]


def test_what_is_around_a_call_in_time_is_its_stack(tmp_path: Path) -> None:
    trace = Trace()
    trace.span("user_annotation", "ProfilerStep#6", 0, 100)
    trace.span("python_function", "app/train.py(12): step", 1, 90)
    trace.span("python_function", "<built-in method to of Tensor object at 0x7ce279c59e00>", 2, 80)
    trace.span("python_function", "torch/utils/_device.py(100): __torch_function__", 3, 79)
    trace.span("cpu_op", "aten::to", 4, 70)
    trace.span("cpu_op", "aten::copy_", 75, 78)
    trace.copy("HtoD (Pageable -> Device)", 20, 30, trace.call("cudaMemcpyAsync", 5, 25), 4096)
    trace.call("cudaStreamSynchronize", 26, 31)
    analysis = results_of([trace.write(tmp_path / "trace.json")], tmp_path)
    copy = next(site for site in analysis.sites if site.call == "cudaMemcpyAsync")
    assert (copy.caller, copy.file, copy.line) == ("step", "app/train.py", 12)
    assert [frame.function for frame in analysis.stacks[copy.stack].frames] == [
        "cudaMemcpyAsync",
        "aten::to",
        "__torch_function__",
        "<built-in method to of Tensor object>",
        "step",
        "ProfilerStep",
    ]


def test_a_range_that_a_function_left_open_is_not_within_the_function(tmp_path: Path) -> None:
    trace = Trace()
    trace.span("python_function", "run.py(1): main", 0, 100)
    trace.span("python_function", "torch/profiler/profiler.py(821): step", 1, 5)
    trace.span("user_annotation", "ProfilerStep#1", 4, 99)
    trace.kernel("k", 20, 30, trace.call("cudaLaunchKernel", 10, 15))
    (site,) = (analysis := results_of([trace.write(tmp_path / "trace.json")], tmp_path)).sites
    frames = [frame.function for frame in analysis.stacks[site.stack].frames]
    assert frames == ["cudaLaunchKernel", "ProfilerStep", "main"]


def test_steps_and_layers_of_one_kind_share_a_site(tmp_path: Path) -> None:
    trace = Trace()
    for turn in range(3):
        begin = 100 * turn
        trace.span("user_annotation", f"ProfilerStep#{turn}", begin, begin + 90)
        trace.span("python_function", f"nn.Module: Linear_{turn}", begin + 1, begin + 80)
        trace.kernel("k", begin + 20, begin + 30, trace.call("cudaLaunchKernel", begin + 10, begin + 15))
    (site,) = results_of([trace.write(tmp_path / "trace.json")], tmp_path).sites
    assert site.count == 3


def test_a_wait_for_one_of_two_devices_is_not_for_the_other_one(tmp_path: Path) -> None:
    trace = Trace()
    trace.kernel("long", 6, 96, trace.call("cudaLaunchKernel", 0, 5), device=1)
    trace.kernel("short", 11, 15, trace.call("cudaLaunchKernel", 6, 10), device=0)
    trace.wait("Context Synchronize", trace.call("cudaDeviceSynchronize", 20, 22), device=0)
    trace.wait("Context Synchronize", trace.call("cudaDeviceSynchronize", 30, 97), device=1)
    found = results_of([trace.write(tmp_path / "trace.json")], tmp_path)
    assert sum(site.wait_s for site in found.sites if "Synchronize" in site.call) == 67e-6


def test_a_trace_without_correlation_numbers_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    trace = Trace()
    trace.call("cudaLaunchKernel", 0, 5, number=-1)
    trace.kernel("k", 6, 56, -1)
    trace.call("cudaDeviceSynchronize", 6, 57, number=-1)
    with pytest.raises(DocumentError, match="none of its 1 pieces of the GPU's work has the correlation number"):
        results_of([trace.write(tmp_path / "trace.json")], tmp_path)
    assert not (tmp_path / "results").exists()


def test_the_steps_of_the_profiler_are_iterations_on_all_threads(tmp_path: Path) -> None:
    """The backward pass runs on a thread of its own."""
    trace = Trace()
    for turn in range(3):
        begin = 100 * turn
        trace.span("user_annotation", f"ProfilerStep#{turn}", begin, begin + 90)
        trace.kernel("forward", begin + 20, begin + 30, trace.call("cudaLaunchKernel", begin + 10, begin + 15))
        trace.kernel(
            "backward", begin + 40, begin + 50, trace.call("cudaLaunchKernel", begin + 35, begin + 38, thread=2)
        )
    trace.call("cudaDeviceSynchronize", 295, 296)
    marked = results_of([trace.write(tmp_path / "trace.json")], tmp_path).marked
    assert [(one.name, one.thread) for one in marked] == [("ProfilerStep", 0), ("ProfilerStep", 1)]
    assert [list(zip(one.begin, one.end, strict=True)) for one in marked] == [
        [(0, 1), (1, 2), (2, 3)],
        [(4, 5), (5, 6), (6, 7)],
    ]


def test_an_event_is_recorded_on_the_stream_that_its_wait_names(tmp_path: Path) -> None:
    trace = Trace()
    trace.kernel("first", 6, 100, trace.call("cudaLaunchKernel", 0, 5), stream=20)
    record = trace.call("cudaEventRecord", 6, 7)
    trace.kernel("second", 101, 900, trace.call("cudaLaunchKernel", 8, 13), stream=20)
    trace.wait("Event Sync", trace.call("cudaEventSynchronize", 20, 101), event=9, on=20, record=record)
    trace.wait("Stream Wait Event", trace.call("cudaStreamWaitEvent", 110, 111), stream=24, event=9, on=20)
    run = run_of(trace, tmp_path)
    assert run.timeline.wait.tolist() == [0, 0, 0, 81000, 0]
    assert run.work.event.tolist() == [-1, 0, -1, 0, 0]
    assert run.work.stream.tolist() == [0, 0, 0, -1, 1]
    actions = [Action.ENQUEUE, Action.RECORD_EVENT, Action.ENQUEUE, Action.WAIT_EVENT, Action.STREAM_WAIT_EVENT]
    assert run.work.action.tolist() == actions


def test_copies_tell_their_memory(tmp_path: Path) -> None:
    trace = Trace()
    trace.copy("DtoH (Device -> Pageable)", 20, 30, trace.call("cudaMemcpyAsync", 0, 40), 4096)
    trace.copy("HtoD (Pinned -> Device)", 60, 70, trace.call("cudaMemcpyAsync", 50, 55), 8)
    profile = read_pytorch([trace.write(tmp_path / "trace.json")])
    assert profile.work.source.tolist() == [Place.DEVICE, Place.PINNED]
    assert profile.work.destination.tolist() == [Place.PAGEABLE, Place.DEVICE]
    assert profile.work.bytes.tolist() == [4096, 8]


def test_the_gpu_fetches_a_large_upload_from_pageable_memory_while_its_call_lasts(tmp_path: Path) -> None:
    """Of 8 MiB, the first MiB is copied before the GPU begins; of pinned and of little memory, all is enqueued."""
    trace = Trace()
    trace.copy("HtoD (Pageable -> Device)", 100, 830, trace.call("cudaMemcpyAsync", 0, 800), 8 << 20)
    trace.copy("HtoD (Pinned -> Device)", 1010, 1700, trace.call("cudaMemcpyAsync", 1000, 1005), 8 << 20)
    trace.copy("HtoD (Pageable -> Device)", 2050, 2060, trace.call("cudaMemcpyAsync", 2000, 2040), 1 << 19)
    run = run_of(trace, tmp_path)
    assert run.timeline.wait.tolist() == [700_000, 0, 0]
    assert set(run.work.action.tolist()) == {Action.ENQUEUE}


def test_the_files_of_two_ranks_are_kept_apart(tmp_path: Path) -> None:
    """Each container numbers its processes anew, and its trace has its own base of time."""
    for rank, base in enumerate((1_000_000, 1_500_000)):
        trace = Trace(about={"baseTimeNanoseconds": base, "distributedInfo": {"rank": rank}})
        trace.kernel("step", 6, 16 + 10 * rank, trace.call("cudaLaunchKernel", 0, 5))
        trace.call("cudaDeviceSynchronize", 6, 30)
        trace.write(tmp_path / f"{rank}.json")
    profile = read_pytorch([tmp_path / "0.json", tmp_path / "1.json"])
    run = profiled_run(profile, np.zeros(len(profile.calls), np.int32))
    assert run.work.measured.tolist() == [10000, -1, 20000, -1]
    assert run.timeline.start.tolist() == [0, 6000, 500000, 506000]
    assert run.work.processes == 2 and run.work.streams == 2


def test_processes_of_one_file_are_told_apart_by_their_devices(tmp_path: Path) -> None:
    trace = Trace()
    for device, process in enumerate((PROCESS, PROCESS + 1)):
        number = trace.call("cudaLaunchKernel", 0, 5, process=process)
        trace.kernel("own", 6, 7, number, device=device)
    for device, process in enumerate((PROCESS, PROCESS + 1)):
        trace.call("cudaLaunchKernel", 10, 15, process=process, number=1000)
        trace.kernel("clash", 20, 30 + 10 * device, 1000, device=device)
    trace.kernel("anyone's", 20, 90, 1000, device=5)
    profile = read_pytorch([trace.write(tmp_path / "trace.json")])
    run = profiled_run(profile, np.zeros(len(profile.calls), np.int32))
    assert run.work.measured.tolist() == [1000, 10000, 1000, 20000]
    assert profile.notes == [AmbiguousWork(pieces=1)]


def test_each_device_of_a_process_is_idle_for_itself(tmp_path: Path) -> None:
    """One process launches on two devices in turn."""
    trace = Trace()
    for device, begin in ((0, 0), (1, 100), (0, 200), (1, 300)):
        trace.kernel("step", begin + 6, begin + 56, trace.call("cudaLaunchKernel", begin, begin + 5), device=device)
        trace.call("cudaDeviceSynchronize", begin + 6, begin + 57)
    results_of([trace.write(tmp_path / "trace.json")], tmp_path)
    results = open_results(tmp_path / "results")
    idle = {row.device: (row.lasting_s, row.idle_s) for row in path_view(results).gpu}
    assert idle == {device: (pytest.approx(250e-6), pytest.approx(150e-6)) for device in (0, 1)}
    screen = io.StringIO()
    Console(file=screen, width=100).print(render_path(path_view(results), 100))
    assert "device 0: idle for" in screen.getvalue() and "device 1: idle for" in screen.getvalue()


def test_a_wait_for_work_from_before_the_trace_is_a_wait(tmp_path: Path) -> None:
    trace = Trace()
    trace.kernel("earlier", 0, 80, 999)
    trace.call("cudaDeviceSynchronize", 10, 81)
    profile = read_pytorch([trace.write(tmp_path / "trace.json")])
    run = profiled_run(profile, np.zeros(len(profile.calls), np.int32))
    assert run.timeline.wait.tolist() == [71000]
    assert len(profile.unlaunched) == 1 and not len(profile.work)


def test_what_doing_without_a_wait_saves_is_shown_as_a_limit(tmp_path: Path) -> None:
    analysis = results_of([loop(50).write(tmp_path / "loop.json")], tmp_path)
    (wait,) = analysis.unproved
    site = analysis.sites[wait.site]
    assert (site.call, site.caller, site.file, wait.occurrences) == ("cudaDeviceSynchronize", "step", "train.py", 50)
    assert wait.saving_s == pytest.approx(50 * 51e-6, rel=0.05)
    assert not open_results(tmp_path / "results").document.proves


@needs_traces
@pytest.mark.parametrize(
    ("trace", "within"),
    [
        pytest.param("kineto-h100/owlv2", 0, marks=pytest.mark.thorough),
        ("kineto-h100/qwen1.5-0.5b", 0),
        ("kineto-a100/alexnet_cuda_sync", 0),
        ("kineto-a100/event_sync_multi_stream", 0),
    ],
)
def test_all_that_a_real_trace_contains_is_found(trace: str, within: int) -> None:
    """Counted and summed once more from the file's events. Calls `within` others are no rows of their own."""
    path = TRACES / f"{trace}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    called = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    mine = [e for e in work if e["args"]["correlation"] in called]
    profile = read_pytorch([path])
    assert len(profile.calls) == len(called) - within
    assert (len(profile.work), len(profile.unlaunched)) == (len(mine), len(work) - len(mine))
    nanoseconds = [round(1000 * e["dur"]) for e in mine]
    assert (profile.work.end - profile.work.start).sum() == sum(nanoseconds)
    assert profile.work.bytes.sum() == sum(e["args"].get("bytes", 0) for e in mine)


@needs_traces
@pytest.mark.thorough
def test_a_long_wait_of_a_real_run_saves_little(tmp_path: Path) -> None:
    """OWLv2 waits five times for 30 % of its run, at one line; doing without gives back less than a percent."""
    analysis = results_of([TRACES / "kineto-h100" / "owlv2.json.gz"], tmp_path)
    waits = {(analysis.sites[one.site].line, analysis.sites[one.site].caller): one for one in analysis.unproved}
    wait = waits[1421, "box_predictor"]
    assert wait.occurrences == 5 and analysis.sites[wait.site].wait_s == pytest.approx(0.3585, abs=1e-4)
    assert wait.high_s is not None and wait.high_s < 0.01 * analysis.wall_s
