"""A run as a trace for Perfetto (ui.perfetto.dev): its CPU threads, the GPU's streams, waits and problems.

Format: TrackEvent of the Perfetto trace (perfetto.dev/docs/reference/synthetic-track-event). Each operation is a slice
on the track of its thread, with its wait as a slice inside. Next to a thread with problems, a second track shows only
these, with verdict and benefit. Streams have tracks of their own; arrows lead from each call to its work. The GPU's
times are those of `ffm.model.waiting.graph`: a profiler's, or inferred from how long work took and what it waited for.
One more track shows the critical path (`ffm.model.waiting.path`), whose slices join, and one for each GPU when it was
idle. Idle slices and waits are named after, and list, what is to blame for them (`ffm.model.waiting.blame`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from ffm.errors import FfmError
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.lock_order import lock_moments
from ffm.model.timeline import Problem, Timeline
from ffm.model.waiting.path import Part
from ffm.report.findings import findings, site_saving
from ffm.report.formats.perfetto_idle import idle_gpus
from ffm.report.numbers import Estimator, Scale
from ffm.report.waiting.rows import region_title
from ffm.results.documents.analysis import Analysis
from ffm.results.places import place
from ffm.results.stored import Results
from ffm.results.waiting.regions import Regions, find_regions
from ffm.results.waiting.run_path import RunPath, run_path

WAIT = "wait for the GPU"
WAIT_FOR_THREAD = "wait for another thread"
FIRST_USE = "first use"
IDLE = "idle"
UNKNOWN = "what is unknown"

_PROCESS, _THREAD, _PROBLEMS, _STREAM, _PATH, _IDLE = (kind << 32 for kind in range(1, 7))
"""Added to a number, these give the identity of a track."""
_SEQUENCE = 1
_PACKETS = 10_000
"""Packets written at once."""


def perfetto_chunks(results: Results, estimator: Estimator) -> Iterator[bytes]:
    """Yield the trace in pieces. Its clock starts with the run's first operation.

    Raises:
        FfmError: The results were imported, and contain totals instead of single operations.
    """
    work = results.work
    if work is None:
        raise FfmError(
            f"{results.folder} contains totals per call stack, not single operations: imported results have no "
            "timeline to show. Use --format speedscope."
        )
    packets = _packets(results, work, estimator)
    trace = Trace()
    for packet in packets:
        trace.packet.append(packet)
        if len(trace.packet) == _PACKETS:
            yield trace.SerializeToString()
            trace = Trace()
    yield trace.SerializeToString()


def _packets(results: Results, work: DeviceWork, estimator: Estimator) -> Iterator[TracePacket]:
    writer = _Writer(int(results.timeline.start.min(initial=np.iinfo(np.int64).max)))
    yield from _tracks(results.document, results.timeline, work)
    if not len(results.timeline):
        return
    run = run_path(results)
    found = find_regions(results.document, run)
    yield from _calls(results, run, found, writer)
    yield from _problems(results, writer, estimator)
    yield from _streams(results, run, writer)
    yield from _path(results, run, writer)
    yield from _idle(run, found, writer)


@dataclass(slots=True)
class _Writer:
    """Makes packets of events; `begin` is time 0 of the trace."""

    begin: int

    def event(self, time: int, kind: TrackEvent.Type, track: int, name: str = "", category: str = "") -> TracePacket:
        """Return one event. An end has no name."""
        packet = TracePacket(timestamp=time - self.begin, trusted_packet_sequence_id=_SEQUENCE)
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        if name:
            packet.track_event.name = name
        if category:
            packet.track_event.categories.append(category)
        return packet

    def end(self, time: int, track: int) -> TracePacket:
        """Return the end of the slice that was opened last on a track."""
        return self.event(time, TrackEvent.TYPE_SLICE_END, track)

    def slice(self, time: int, track: int, name: str, category: str) -> TracePacket:
        """Return the start of a slice."""
        return self.event(time, TrackEvent.TYPE_SLICE_BEGIN, track, name, category)


def _annotate(packet: TracePacket, **values: str | int | float) -> None:
    """Add values that Perfetto shows as the arguments of a slice."""
    for name, value in values.items():
        annotation = packet.track_event.debug_annotations.add(name=name.replace("_", " "))
        if isinstance(value, str):
            annotation.string_value = value
        elif isinstance(value, int):
            annotation.int_value = value
        else:
            annotation.double_value = value


def _tracks(analysis: Analysis, timeline: Timeline, work: DeviceWork) -> Iterator[TracePacket]:
    """Describe the processes, their threads and streams, and the threads' problem tracks."""
    processes = analysis.run.processes if analysis.run is not None else []
    for number in range(work.processes):
        packet = _track(_PROCESS + number)
        known = processes[number] if number < len(processes) else None
        packet.track_descriptor.process.pid = known.process_id if known is not None else number + 1
        rank = f", rank {known.rank}" if known is not None and known.rank is not None else ""
        packet.track_descriptor.process.process_name = f"{analysis.application}{rank}"
        yield packet
    troubled = set(timeline.thread[timeline.problem != 0].tolist())
    for number, process in enumerate(work.process_of_thread.tolist()):
        yield _track(_THREAD + number, f"CPU thread {number + 1}", _PROCESS + process)
        if number in troubled:
            yield _track(_PROBLEMS + number, f"problems of thread {number + 1}", _PROCESS + process)
    inferred = " (inferred)" if work.began is None else ""
    device = work.stream_device
    for number, process in enumerate(work.stream_process.tolist()):
        gpu = "GPU" if device is None else f"GPU {device[number]}"
        name = "default stream" if number == work.legacy[process] else f"stream {number + 1}"
        yield _track(_STREAM + number, f"{gpu} {name}{inferred}", _PROCESS + process)


def _track(identity: int, name: str = "", parent: int | None = None) -> TracePacket:
    packet = TracePacket(trusted_packet_sequence_id=_SEQUENCE)
    packet.track_descriptor.uuid = identity
    if name:
        packet.track_descriptor.name = name
    if parent is not None:
        packet.track_descriptor.parent_uuid = parent
    return packet


_ON_PATH = {
    Part.START: "CPU work before the first call",
    Part.WORK: "CPU work after {}",
    Part.CALL: "{}",
    Part.GPU: "GPU work of {}",
    Part.REST: "overhead of {}",
    Part.UNKNOWN: "unknown wait at {}",
}
"""What a slice of the critical path is called, given the call of its row."""


def _path(results: Results, run: RunPath, writer: _Writer) -> Iterator[TracePacket]:
    """Yield the pieces of the critical path, on a track of their own."""
    path, sites = run.path, results.document.sites
    yield _track(_PATH, "critical path")
    pieces = zip(path.row.tolist(), path.part.tolist(), path.begin.tolist(), path.end.tolist(), strict=True)
    for row, part, begin, end in pieces:
        site = int(results.timeline.site[row])
        packet = writer.slice(begin, _PATH, _ON_PATH[Part(part)].format(sites[site].call), "critical path")
        _annotate(packet, site=site + 1)
        yield packet
        yield writer.end(end, _PATH)


def _calls(results: Results, run: RunPath, found: Regions, writer: _Writer) -> Iterator[TracePacket]:
    """Yield each operation, with its wait inside, and what its thread waits for after it."""
    analysis, timeline, work = results.document, results.timeline, run.work
    between = _waits_for_threads(run, writer)
    where = [place(analysis, index) for index in range(len(analysis.sites))]
    before_wait = np.where(work.waits_first, 0, own_before_wait(timeline, work, slice(None)))
    of_threads = work.action == Action.WAIT_THREAD
    works, of_gpu = run.graph.works, found.of_gpu
    for row in range(len(timeline)):
        track = _THREAD + int(timeline.thread[row])
        start = int(timeline.start[row])
        end, wait = start + int(timeline.duration[row]), int(timeline.wait[row])
        site = int(timeline.site[row])
        packet = writer.slice(start, track, where[site].call, "problem" if timeline.problem[row] else "call")
        if works[row]:
            packet.track_event.flow_ids.append(row + 1)
        _annotate(packet, site=site + 1, place=where[site].place)
        yield packet
        if wait > 0:
            begin = start + int(before_wait[row])
            packet = writer.slice(begin, track, WAIT_FOR_THREAD if of_threads[row] else WAIT, "wait")
            if (cause := int(run.graph.cause[row])) >= 0:
                _annotate(
                    packet,
                    waited_for=region_title(found, int(of_gpu[cause])),
                    until_it_was_over=_milliseconds(int(run.graph.waited[row])),
                )
            yield packet
            yield writer.end(begin + wait, track)
        yield writer.end(end, track)
        yield from between.get(row, ())


def _waits_for_threads(run: RunPath, writer: _Writer) -> dict[int, list[TracePacket]]:
    """Return the waits of threads between their calls for what other threads let go, by the call that they come after.

    Where one ends as the next call begins, Perfetto closes the slice that was written first: the order matters.
    """
    packets: dict[int, list[TracePacket]] = defaultdict(list)
    locks, timeline = run.work.locks, run.timeline
    if locks is None:
        return packets
    since, released = lock_moments(timeline, locks)
    thread, other = timeline.thread[locks.row], timeline.thread[locks.by]
    until = np.minimum(released, (timeline.start + timeline.duration + timeline.gap)[locks.row])
    order = np.lexsort((since, thread))
    same = thread[order[1:]] == thread[order[:-1]]
    until[order[:-1]] = np.where(same, np.minimum(until[order[:-1]], since[order[1:]]), until[order[:-1]])
    for number in order[until[order] > since[order]].tolist():
        track = _THREAD + int(thread[number])
        packet = writer.slice(int(since[number]), track, WAIT_FOR_THREAD, "wait")
        _annotate(packet, waited_for=f"CPU thread {other[number] + 1}")
        packets[int(locks.row[number])] += [packet, writer.end(int(until[number]), track)]
    return packets


def _problems(results: Results, writer: _Writer, estimator: Estimator) -> Iterator[TracePacket]:
    """Yield each operation with a problem again, named after the problem, and the first use if it is misplaced."""
    analysis, timeline = results.document, results.timeline
    scale = Scale(analysis.wall_s)
    for row in np.flatnonzero(timeline.problem).tolist():
        site, problem = int(timeline.site[row]), Problem(int(timeline.problem[row]))
        track, start = _PROBLEMS + int(timeline.thread[row]), int(timeline.start[row])
        end = start + int(timeline.duration[row])
        packet = writer.slice(start, track, f"{_name(problem)}: {analysis.sites[site].call}", "problem")
        saving = site_saving(analysis, site)
        seconds, percent = saving.seconds(estimator), saving.percent(estimator)
        _annotate(
            packet,
            site=site + 1,
            verdicts="; ".join(f"{found.verdict}: {found.reason}" for found in findings(analysis, site)),
            site_would_save=f"{scale.seconds(seconds)} ({percent:.2f} % of the run)",
            estimator=estimator,
        )
        yield packet
        yield writer.end(end, track)
        if timeline.first_use[row] > 0:
            used = end + int(timeline.first_use[row])
            packet = writer.event(used, TrackEvent.TYPE_INSTANT, track, FIRST_USE, "problem")
            _annotate(packet, of_site=site + 1)
            yield packet


def _name(problem: Problem) -> str:
    """Return `unnecessary synchronization and transfer`, from the problem's flags."""
    words = [flag.name.lower().replace("_", " ") for flag in problem if flag.name is not None]
    return " and ".join(words)


def _streams(results: Results, run: RunPath, writer: _Writer) -> Iterator[TracePacket]:
    """Yield what the GPU did for each operation, in the order of its start."""
    graph, sites = run.graph, results.document.sites
    rows = np.flatnonzero(graph.works)
    rows = rows[np.argsort(graph.gpu_begin[rows], kind="stable")]
    spans = zip(rows.tolist(), graph.gpu_begin[rows].tolist(), graph.gpu_end[rows].tolist(), strict=True)
    for row, begin, end in spans:
        track, site = _STREAM + int(run.work.stream[row]), int(results.timeline.site[row])
        packet = writer.slice(begin, track, sites[site].call, "GPU")
        packet.track_event.terminating_flow_ids.append(row + 1)
        _annotate(packet, site=site + 1)
        yield packet
        yield writer.end(end, track)


def _idle(run: RunPath, found: Regions, writer: _Writer) -> Iterator[TracePacket]:
    """Yield when each GPU was idle, on tracks of their own, with what was to blame."""
    for number, gpu in enumerate(idle_gpus(run, found)):
        name = "GPU" if gpu.device is None else f"GPU {gpu.device}"
        inferred = " (inferred)" if run.work.began is None else ""
        yield _track(_IDLE + number, f"{name} {IDLE}{inferred}", _PROCESS + gpu.process)
        for one in gpu.slices:
            blamed = [(region_title(found, region) or UNKNOWN, lasting) for region, lasting in one.blamed]
            packet = writer.slice(one.begin, _IDLE + number, f"{IDLE} during {blamed[0][0]}", IDLE)
            listed = "; ".join(f"{title}: {_milliseconds(lasting)}" for title, lasting in blamed)
            _annotate(packet, blamed=listed, thread=one.thread + 1)
            yield packet
            yield writer.end(one.end, _IDLE + number)


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.3f} ms"
