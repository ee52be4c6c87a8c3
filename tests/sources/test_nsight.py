"""Reports of Nsight Systems: their calls, what those waited for, and what removing a wait saves at most."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from ffm.errors import DocumentError
from ffm.model.device import Action
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.waiting.graph import build_graph
from ffm.report.formats.perfetto import perfetto_chunks
from ffm.results.documents.analysis import Analysis
from ffm.results.stored import open_results
from ffm.sources.nsight import read_nsight
from ffm.sources.profile import outermost
from ffm.sources.profiled import ProfiledRun, profiled_run
from ffm.sources.profiled_results import write_profile
from tests.model.whole_path import find_path
from tests.sources.nsight_reports import DEVICE, OTHER, PAGEABLE, PINNED, PROCESS, THREAD, TRACES, Report, needs_traces


def run_of(report: Report, folder: Path) -> ProfiledRun:
    profile = read_nsight(report.write(folder / "report.sqlite"))
    return profiled_run(profile, np.arange(len(profile.calls), dtype=np.int32))


def results_of(report: Path, folder: Path) -> Analysis:
    return write_profile(read_nsight(report), "nsys", folder / "results")


def loop(turns: int) -> Report:
    """Ten microseconds of CPU, a launch, 50 of GPU, and a wait that nobody needs."""
    report = Report()
    for begin in range(0, 100 * turns, 100):
        launch = report.call("cudaLaunchKernel_v7000", begin, begin + 5)
        report.kernel("step", begin + 6, begin + 56, launch)
        report.wait(report.call("cudaDeviceSynchronize_v3020", begin + 6, begin + 57))
    report.call("cudaEventQuery_v3020", 100 * turns, 100 * turns + 1)
    return report


def test_calls_work_and_waits_become_rows(tmp_path: Path) -> None:
    run = run_of(loop(3), tmp_path)
    assert run.timeline.start.tolist() == [0, 6000, 100000, 106000, 200000, 206000, 300000]
    assert run.timeline.wait.tolist() == [0, 51000] * 3 + [0]
    assert run.timeline.gap.tolist() == [1000, 43000] * 3 + [0]
    assert run.work.measured.tolist() == [50000, -1] * 3 + [-1]
    assert run.work.action.tolist() == [Action.ENQUEUE, Action.WAIT_CONTEXT] * 3 + [Action.NONE]


def test_perfetto_shows_work_when_the_profiler_saw_it(tmp_path: Path) -> None:
    results_of(loop(2).write(tmp_path / "loop.sqlite"), tmp_path)
    trace = Trace()
    trace.ParseFromString(b"".join(perfetto_chunks(open_results(tmp_path / "results"), "replay")))
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in trace.packet}
    times: dict[str, list[int]] = {name: [] for name in tracks.values() if name.startswith("GPU")}
    for packet in trace.packet:
        if (name := tracks.get(packet.track_event.track_uuid, "")) in times:
            times[name].append(packet.timestamp)
    assert times == {"GPU default stream": [6_000, 56_000, 106_000, 156_000], "GPU idle": [56_000, 106_000]}


def test_a_wait_without_outstanding_work_did_not_wait(tmp_path: Path) -> None:
    report = Report()
    report.kernel("step", 6, 10, report.call("cudaLaunchKernel", 0, 5))
    report.wait(report.call("cudaDeviceSynchronize", 20, 22))
    assert run_of(report, tmp_path).timeline.wait.tolist() == [0, 0]


def test_a_stream_is_waited_for_alone(tmp_path: Path) -> None:
    report = Report()
    report.kernel("long", 6, 500, report.call("cudaLaunchKernel", 0, 5), OTHER)
    report.kernel("short", 12, 15, report.call("cudaLaunchKernel", 6, 11), OTHER + 1)
    report.wait(report.call("cudaStreamSynchronize", 20, 22), OTHER + 1)
    report.wait(report.call("cudaStreamSynchronize", 30, 501), OTHER)
    assert run_of(report, tmp_path).timeline.wait.tolist() == [0, 0, 0, 471000]


def test_an_event_is_over_with_the_work_before_its_record(tmp_path: Path) -> None:
    report = Report()
    report.kernel("first", 6, 100, report.call("cudaLaunchKernel", 0, 5))
    report.event(report.call("cudaEventRecord", 6, 7), 7, 1)
    report.kernel("second", 101, 900, report.call("cudaLaunchKernel", 8, 13))
    report.wait(report.call("cudaEventSynchronize", 20, 101), event=1)
    report.wait(report.call("cudaEventSynchronize", 200, 202), event=1)
    run = run_of(report, tmp_path)
    assert run.timeline.wait.tolist() == [0, 0, 0, 81000, 0]
    assert run.work.event.tolist() == [-1, 0, -1, 0, 0] and run.work.events == 1


def test_copies_wait_as_their_memory_demands(tmp_path: Path) -> None:
    report = Report()
    report.copy(20, 30, report.call("cudaMemcpy", 0, 40), 4096, DEVICE, PAGEABLE)
    report.copy(60, 70, report.call("cudaMemcpyAsync", 50, 55), 4096, DEVICE, PINNED)
    report.copy(80, 90, report.call("cudaMemcpy", 60, 80), 4096, PAGEABLE, DEVICE)
    report.copy(110, 120, report.call("cudaMemcpyAsync", 100, 130), 4096, DEVICE, PAGEABLE)
    run = run_of(report, tmp_path)
    waits = [Action.ENQUEUE_AND_WAIT, Action.ENQUEUE, Action.WAIT_AND_ENQUEUE, Action.ENQUEUE_AND_WAIT]
    assert run.work.action.tolist() == waits
    assert run.work.copied.tolist() == [4096] * 4
    assert run.timeline.wait.tolist() == [35000, 0, 10000, 25000]  # what a call takes that only enqueues is its own


def test_the_work_of_a_graph_lasts_from_its_first_node_to_its_last(tmp_path: Path) -> None:
    report = Report()
    launch = report.call("cudaGraphLaunch", 0, 5)
    for begin in (6, 20, 30):
        report.kernel("node", begin, begin + 5, launch)
    assert run_of(report, tmp_path).work.measured.tolist() == [29000]


def test_correlation_numbers_of_two_processes_do_not_clash(tmp_path: Path) -> None:
    report = Report()
    for process in (PROCESS, PROCESS + 1):
        number = report.call("cudaLaunchKernel", 0, 5, process=process, thread=process)
        report.calls[-1] = (*report.calls[-1][:3], 1, report.calls[-1][4])
        assert number
        report.kernel("step", 6, 6 + 10 * (process - PROCESS + 1), 1, process=process)
    run = run_of(report, tmp_path)
    assert run.work.measured.tolist() == [10000, 20000]
    assert run.work.processes == 2 and run.work.streams == 2


def test_devices_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    report = Report(devices={PROCESS: 0, PROCESS + 1: 5})
    for process in (PROCESS, PROCESS + 1):
        for begin in (0, 100):
            launch = report.call("cudaLaunchKernel", begin, begin + 5, process=process)
            report.kernel("step", begin + 6, begin + 56, launch, process=process)
    run = run_of(report, tmp_path)
    assert run.work.stream_device is not None
    told = zip(run.work.stream_process.tolist(), run.work.stream_device.tolist(), strict=True)
    assert sorted(told) == [(0, 0), (1, 5)]


def test_a_wait_for_one_of_two_devices_is_for_its_work(tmp_path: Path) -> None:
    """20 us of work on the second device outlast the waits for the first one, of which one is for nothing any more."""
    report = Report(devices={1: 0, 2: 1})
    report.kernel("short", 6, 16, report.call("cudaLaunchKernel", 0, 5), context=1)
    report.kernel("long", 12, 32, report.call("cudaLaunchKernel", 6, 11), context=2)
    for begin, end, context in ((12, 17, 1), (18, 20, 1), (21, 33, 2)):
        report.wait(report.call("cudaDeviceSynchronize", begin, end), context=context)
    run = run_of(report, tmp_path)
    assert run.timeline.wait.tolist() == [0, 0, 5_000, 0, 12_000]
    assert run.work.stream_device is not None
    assert run.work.stream_device[run.work.stream[2:]].tolist() == [0, 0, 1]
    assert run.work.action[2:].tolist() == [Action.WAIT_CONTEXT] * 3


def test_what_passes_before_late_work_belongs_to_no_region(tmp_path: Path) -> None:
    """Nothing shows why the kernel begins 495 us after its launch."""
    report = Report()
    report.kernel("step", 500, 600, report.call("cudaLaunchKernel", 0, 5))
    report.wait(report.call("cudaDeviceSynchronize", 6, 602))
    waiting = results_of(report.write(tmp_path / "late.sqlite"), tmp_path).waiting
    assert waiting is not None
    on_path = [(region.kind, round(region.path_s * 1e6)) for region in waiting.regions if region.path_s > 0]
    assert on_path == [("kernel", 100), ("call", 5), ("call", 2)]
    assert (waiting.unaccounted_s, round(waiting.length_s * 1e6)) == (495e-6, 602)


def test_ranges_of_the_program_are_around_its_calls(tmp_path: Path) -> None:
    """NVTX: pushed and popped on a thread. Such ranges tell alike calls apart, and are regions of the path."""
    report = loop(4)
    forward, backward = report.name("forward"), report.name("backward")
    path = report.write(tmp_path / "loop.sqlite")
    with sqlite3.connect(path) as database:
        database.execute("create table NVTX_EVENTS (start, end, eventType, textId, globalTid)")
        rows = [
            (0, 150_000, 59, forward, PROCESS << 24 | THREAD),
            (150_000, 390_000, 59, backward, PROCESS << 24 | THREAD),
        ]
        database.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?, ?)", [*rows, (0, None, 34, forward, 1)])
    database.close()
    analysis = results_of(path, tmp_path)
    found = {(site.call, site.caller): site.count for site in analysis.sites if site.call == "cudaDeviceSynchronize"}
    assert found == {("cudaDeviceSynchronize", "forward"): 2, ("cudaDeviceSynchronize", "backward"): 2}


def test_calls_within_calls_belong_to_the_outer_one(tmp_path: Path) -> None:
    report = Report()
    report.call("cudaLaunchKernel", 0, 10)
    report.kernel("step", 12, 20, report.call("cuLaunchKernel", 2, 8))
    run = run_of(report, tmp_path)
    assert len(run.timeline) == 1 and run.work.measured.tolist() == [8000]


def test_what_doing_without_a_wait_saves_is_shown_as_a_limit(tmp_path: Path) -> None:
    """The GPU needs 50 of the 100 microseconds of a turn, so that the CPU can do without all of its waiting."""
    analysis = results_of(loop(50).write(tmp_path / "loop.sqlite"), tmp_path)
    (wait,) = analysis.unproved
    site = analysis.sites[wait.site]
    assert (site.call, site.caller, wait.occurrences) == ("cudaDeviceSynchronize", "beside step", 50)
    assert wait.saving_s == pytest.approx(50 * 51e-6, rel=0.05)
    assert analysis.everything is not None and analysis.everything.expected_s == 0
    assert open_results(tmp_path / "results").document.unproved == analysis.unproved


@needs_traces
@pytest.mark.parametrize(
    ("report", "milliseconds"), [pytest.param("report2", 5.1, marks=pytest.mark.thorough), ("report3", 5.0)]
)
def test_a_real_solver_saves_what_its_synchronizations_take(tmp_path: Path, report: str, milliseconds: float) -> None:
    """The solver's author took them out: by launch, that saved 3.8 and 4.7 ms (README of the traces)."""
    analysis = results_of(TRACES / "nsys-cestwc-rtx3090" / f"{report}.sqlite", tmp_path)
    waits = [wait for wait in analysis.unproved if analysis.sites[wait.site].call == "cudaDeviceSynchronize"]
    assert 1000 * sum(wait.saving_s for wait in waits) == pytest.approx(milliseconds, abs=0.15)


@needs_traces
def test_all_that_the_gpu_did_in_a_real_run_is_found(tmp_path: Path) -> None:
    profile = read_nsight(TRACES / "nsys-cloverleaf-a100" / "perlmutter-cloverleaf-cuda.sqlite")
    assert (len(profile.calls), len(profile.work), profile.notes) == (3048, 1591, [])
    run = profiled_run(profile, np.zeros(len(profile.calls), np.int32))
    assert int(run.work.measured.clip(0).sum()) == int((profile.work.end - profile.work.start).sum())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("drop table CUPTI_ACTIVITY_KIND_RUNTIME", "contains no calls of CUDA"),
        ("delete from CUPTI_ACTIVITY_KIND_RUNTIME", "contains no calls of CUDA"),
        ("drop table CUPTI_ACTIVITY_KIND_KERNEL", "nothing that the GPU did"),
        ("alter table CUPTI_ACTIVITY_KIND_RUNTIME drop column correlationId", "has no column correlationId"),
        ("update CUPTI_ACTIVITY_KIND_KERNEL set end = start - 1", "end before they start"),
        ("update CUPTI_ACTIVITY_KIND_RUNTIME set start = 'soon'", "other than whole numbers"),
    ],
)
def test_a_damaged_report_is_refused_in_one_sentence(tmp_path: Path, damage: str, said: str) -> None:
    path = loop(3).write(tmp_path / "loop.sqlite")
    database = sqlite3.connect(path)
    database.execute(damage)
    database.commit()
    database.close()
    with pytest.raises(DocumentError, match=said):
        read_nsight(path)


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_what_is_no_report_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "loop.sqlite"
    if content is None:
        whole = loop(500).write(path).read_bytes()
        content = whole[: len(whole) // 2]
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"loop\.sqlite"):
        read_nsight(path)
    with pytest.raises(DocumentError, match="is not a file"):
        read_nsight(tmp_path)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 20)), max_size=30))
def test_outermost_calls_contain_all_others(rows: list[tuple[int, int, int]]) -> None:
    thread = np.array([row[0] for row in rows], np.int64)
    start = np.array([row[1] for row in rows], np.int64)
    end = start + np.array([row[2] for row in rows], np.int64)
    outer, holder = outermost(np.zeros(len(rows), np.int64), thread, start, end)
    assert (holder[outer] == np.arange(len(outer))).all()
    assert (thread[outer][holder] == thread).all() and (start[outer][holder] <= start).all()


@needs_traces
@pytest.mark.parametrize(
    "report", [pytest.param("nsys-cestwc-rtx3090/report2", marks=pytest.mark.thorough), "nsys-h100/h100_2gpu_1s"]
)
def test_the_path_of_a_real_run_covers_each_nanosecond_once(report: str) -> None:
    profile = read_nsight(TRACES / f"{report}.sqlite")
    run = profiled_run(profile, profile.calls.name.astype(np.int32))
    times = infer_gpu_times(run.timeline, run.work)
    graph = build_graph(run.timeline, run.work, times, times.likely)
    path = find_path(run.timeline, run.work, graph)
    assert (path.begin[1:] == path.end[:-1]).all()
    last = max((run.timeline.start + run.timeline.duration + run.timeline.gap).max(), graph.gpu_end.max())
    assert path.length == last - run.timeline.start.min()
    has_work = run.work.measured > 0
    assert (graph.gpu_end - graph.gpu_begin)[has_work].tolist() == run.work.measured[has_work].tolist()
