"""The Perfetto trace contains every operation, wait, problem and GPU work, at its time and on its track."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from ffm.errors import FfmError
from ffm.model.device import Action, DeviceWork, LockWaits
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.waiting.graph import build_graph
from ffm.report.formats.perfetto import FIRST_USE, WAIT, WAIT_FOR_THREAD, perfetto_chunks
from ffm.results.columnar.gpu_times_file import GPU_TIMES_FILE, save_gpu_times
from ffm.results.columnar.timeline_file import save_timeline
from ffm.results.documents.files import write_document
from ffm.results.stored import Results
from tests.model.given_times import given_gpu_times
from tests.report.sample_analysis import sample_analysis

BEGIN = 1_000_000


def run(
    rows: list[tuple[int, int, int, Action, int, int]], *, streams: int = 2, legacy: int = -1, events: int = 1
) -> tuple[Timeline, DeviceWork]:
    """Rows are (start, duration, wait, action, stream, event), all of one thread."""
    start, duration, wait, action, stream, event = np.array(rows, np.int64).reshape(-1, 6).T
    zeros = np.zeros(len(rows), np.int64)
    timeline = Timeline(
        thread=zeros.astype(np.int32),
        start=start + BEGIN,
        duration=duration,
        wait=wait,
        gap=zeros,
        site=zeros.astype(np.int32),
        kind=np.full(len(rows), Kind.LAUNCH, np.uint8),
        problem=zeros.astype(np.uint8),
        first_use=zeros.copy(),
        occurrences=zeros + 1,
    )
    work = DeviceWork(
        action=action.astype(np.uint8),
        stream=stream.astype(np.int32),
        event=event.astype(np.int32),
        partner=np.full(len(rows), -1, np.int32),
        copied=zeros,
        measured=zeros - 1,
        process_of_thread=np.zeros(1, np.int32),
        legacy=np.array([legacy], np.int32),
        stream_process=np.zeros(streams, np.int32),
        events=events,
    )
    return timeline, work


def spans(timeline: Timeline, work: DeviceWork, gpu: list[int]) -> dict[int, tuple[int, int]]:
    inference = given_gpu_times(timeline, work, np.array(gpu, np.int64))
    graph = build_graph(timeline, work, inference, inference.likely)
    return {
        row: (int(graph.gpu_begin[row]) - BEGIN, int(graph.gpu_end[row]) - BEGIN)
        for row in np.flatnonzero(graph.works).tolist()
    }


def test_work_of_a_stream_comes_in_order_and_not_before_its_call_is_over() -> None:
    rows = [(0, 5, 0, Action.ENQUEUE, 0, -1), (10, 5, 0, Action.ENQUEUE, 0, -1), (900, 5, 0, Action.ENQUEUE, 1, -1)]
    assert spans(*run(rows), [100, 50, 7]) == {0: (5, 105), 1: (105, 155), 2: (905, 912)}


def test_a_stream_waits_for_the_event_of_another() -> None:
    rows = [
        (0, 5, 0, Action.ENQUEUE, 0, -1),
        (10, 1, 0, Action.RECORD_EVENT, 0, 0),
        (20, 1, 0, Action.STREAM_WAIT_EVENT, 1, 0),
        (30, 5, 0, Action.ENQUEUE, 1, -1),
    ]
    assert spans(*run(rows), [100, 0, 0, 50]) == {0: (5, 105), 3: (105, 155)}


def test_the_legacy_stream_orders_all_streams_of_its_process() -> None:
    rows = [(time, 5, 0, Action.ENQUEUE, stream, -1) for time, stream in [(0, 1), (10, 0), (20, 1)]]
    assert spans(*run(rows, legacy=0), [100, 50, 7]) == {0: (5, 105), 1: (105, 155), 2: (155, 162)}


Slices = dict[str, list[tuple[str, int, int, dict[str, Any]]]]


def slices(content: bytes) -> Slices:
    """Name, begin, end and arguments of each slice, by the name of its track; events without length end at -1.

    Read as Perfetto does: tracks are described before, each once; events come in the order of their times, and as
    written at equal ones; an end closes what began last on its track; an arrow leads from one event to a later one.
    """
    trace = Trace()
    trace.ParseFromString(content)
    names: dict[int, str] = {}
    events: list[TracePacket] = []
    for packet in trace.packet:
        described = packet.track_descriptor
        if packet.HasField("track_descriptor"):
            assert described.uuid not in names
            assert not described.HasField("parent_uuid") or described.parent_uuid in names
            names[described.uuid] = described.name
        else:
            assert packet.track_event.track_uuid in names
            assert packet.timestamp >= 0
            events.append(packet)
    found: Slices = defaultdict(list)
    begun: dict[int, list[tuple[str, int, dict[str, Any]]]] = defaultdict(list)
    arrows: list[int] = []
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event, time = packet.track_event, packet.timestamp
        arguments = {note.name: getattr(note, str(note.WhichOneof("value"))) for note in event.debug_annotations}
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun[event.track_uuid].append((event.name, time, arguments))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            name, begin, arguments = begun[event.track_uuid].pop()
            found[names[event.track_uuid]].append((name, begin, time, arguments))
        else:
            found[names[event.track_uuid]].append((event.name, time, -1, arguments))
        assert not set(event.flow_ids) & set(arrows)
        arrows += event.flow_ids
        for arrow in event.terminating_flow_ids:
            arrows.remove(arrow)
    assert not any(begun.values()), "a slice has no end"
    assert not arrows, "an arrow leads nowhere"
    return found


def results_of(folder: Path, timeline: Timeline, work: DeviceWork | None) -> Results:
    analysis = sample_analysis()
    save_timeline(timeline, folder / analysis.timeline, work=work)
    inference = None if work is None else infer_gpu_times(timeline, work)
    save_gpu_times(inference, folder / GPU_TIMES_FILE)
    return Results(folder, write_document(analysis, folder / "analysis.json"))


def test_calls_waits_problems_and_work_lie_on_their_tracks(tmp_path: Path) -> None:
    rows = [(0, 10_000, 0, Action.ENQUEUE, 0, -1), (20_000, 80_000, 75_000, Action.WAIT_STREAM, 0, -1)]
    timeline, work = run(rows, streams=1)
    timeline.problem[1] = Problem.MISPLACED_SYNCHRONIZATION
    timeline.first_use[1] = 33_000
    found = slices(b"".join(perfetto_chunks(results_of(tmp_path, timeline, work), "carry")))
    assert found.keys() == {"CPU thread 1", "problems of thread 1", "GPU stream 1 (inferred)", "critical path"}
    assert [row[:3] for row in found["CPU thread 1"]] == [
        ("cudaFree", 0, 10_000),
        (WAIT, 20_000, 95_000),
        ("cudaFree", 20_000, 100_000),
    ]
    problem, first_use = found["problems of thread 1"]
    assert problem[:3] == ("misplaced synchronization: cudaFree", 20_000, 100_000)
    assert problem[3]["site"] == 1
    assert problem[3]["site would save"] == "10.000 s (1.00 % of the run)"
    assert "nothing that the CPU does" in problem[3]["verdicts"]
    assert first_use[:3] == (FIRST_USE, 133_000, -1)
    [(name, begin, end, _)] = found["GPU stream 1 (inferred)"]
    assert (name, begin) == ("cudaFree", 10_000)
    assert 90_000 < end <= 100_000
    path = [row[:3] for row in found["critical path"]]
    assert [name for name, _, _ in path] == ["cudaFree", "GPU work of cudaFree", "cudaFree"]
    assert [begin for _, begin, _ in path] == [0, 10_000, path[1][2]]
    assert path[2][2] == 100_000


def with_two_kernels(*, device: int | None = None) -> tuple[Timeline, DeviceWork]:
    """Return a run of two kernels, at 10 to 60 and 110 to 150 us, of which the CPU waits for the first until 65 us."""
    rows = [
        (0, 10_000, 0, Action.ENQUEUE, 0, -1),
        (20_000, 45_000, 45_000, Action.WAIT_STREAM, 0, -1),
        (100_000, 10_000, 0, Action.ENQUEUE, 0, -1),
        (120_000, 40_000, 38_000, Action.WAIT_STREAM, 0, -1),
    ]
    timeline, work = run(rows, streams=1)
    measured, began = np.array([50_000, -1, 40_000, -1]), np.array([10_000, -1, 110_000, -1])
    began[began >= 0] += BEGIN
    on = None if device is None else np.array([device], np.int32)
    return timeline, replace(work, measured=measured, began=began, stream_device=on)


def test_each_gpu_has_a_track_of_its_idle_times_with_what_was_to_blame(tmp_path: Path) -> None:
    """From 60 to 110 us no kernel runs: the CPU wakes until 65, works until 100, and then launches the next one."""
    timeline, work = with_two_kernels(device=3)
    found = slices(b"".join(perfetto_chunks(results_of(tmp_path, timeline, work), "carry")))
    [(name, begin, end, arguments)] = found["GPU 3 idle"]
    assert (begin, end) == (60_000, 110_000)
    assert name.startswith("idle during CPU ")
    first, second = arguments["blamed"].split("; ")
    assert first.startswith("CPU ")
    assert first.endswith(": 0.035 ms")
    assert second.startswith("call cudaFree")
    assert second.endswith(": 0.015 ms")
    assert arguments["thread"] == 1


def test_waits_name_the_work_that_they_were_for(tmp_path: Path) -> None:
    timeline, work = with_two_kernels()
    found = slices(b"".join(perfetto_chunks(results_of(tmp_path, timeline, work), "carry")))
    assert "GPU idle" in found
    first, second = [arguments for name, _, _, arguments in found["CPU thread 1"] if name == WAIT]
    assert first["waited for"].startswith("kernel ")
    assert first["until it was over"] == "0.040 ms"
    assert second["until it was over"] == "0.030 ms"


@pytest.mark.parametrize(("released", "until"), [(30_000, 40_000), (45_000, 50_000)])
def test_a_wait_for_another_thread_lies_between_calls(tmp_path: Path, released: int, until: int) -> None:
    """The first thread waits from 12 us on, until the second one lets it go, or until its next call at 50 us."""
    rows = [(start, 10_000, 0, Action.NONE, -1, -1) for start in (0, 50_000, 0, 60_000)]
    timeline, work = run(rows, streams=1)
    timeline = replace(
        timeline, thread=np.array([0, 0, 1, 1], np.int32), gap=np.array([40_000, 0, 50_000, 0], np.int64)
    )
    locks = LockWaits(*(np.array([one], np.int64) for one in (0, 2_000, 2, released)))
    work = replace(work, process_of_thread=np.zeros(2, np.int32), locks=locks)
    found = slices(b"".join(perfetto_chunks(results_of(tmp_path, timeline, work), "carry")))
    waits = [row for row in found["CPU thread 1"] if row[0] == WAIT_FOR_THREAD]
    assert waits == [(WAIT_FOR_THREAD, 12_000, until, {"waited for": "CPU thread 2"})]
    assert [row[1:3] for row in found["CPU thread 1"] if row[0] != WAIT_FOR_THREAD] == [(0, 10_000), (50_000, 60_000)]


def test_imported_totals_are_no_trace(tmp_path: Path) -> None:
    timeline, _ = run([(0, 1, 0, Action.NONE, -1, -1)])
    with pytest.raises(FfmError, match="contains totals per call stack"):
        list(perfetto_chunks(results_of(tmp_path, timeline, None), "carry"))
