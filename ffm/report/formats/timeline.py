"""A run in time, small enough for a page: what threads and streams did, and the critical path through them.

A page cannot hold millions of spans. Spans that would be too short to see even when enlarged are joined with their
neighbours, so that runs of any length take about the same space; each joined span says how many it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import orjson
from markupsafe import Markup
from numpy.typing import NDArray

from ffm.model.gpu_times.call_times import own_before_wait
from ffm.model.grouping import parts
from ffm.model.waiting.path import Part, cut_path
from ffm.report.formats.spans import MIXED, Spans, Times, bounded
from ffm.report.waiting.rows import region_title
from ffm.results.stored import Results
from ffm.results.waiting.regions import Regions, find_regions
from ffm.results.waiting.run_path import RunPath, run_path, stored_waiting

MOST_SPANS = 8_000
"""Spans of all lanes, about: some 300 kB."""

MOST_PIECES = 3_000
"""Pieces of the critical path, about."""

MOST_LANES = 24
"""Threads and streams that are drawn, those that are busy longest."""

TICKS = 10_000_000
"""Into how many units a run is divided at most: whole numbers take least room."""

NAMES = {
    "call": "traced calls",
    "wait": "waiting",
    "problem": "waiting with a problem",
    "kernel": "kernels",
    "transfer": "transfers",
    "cpu": "CPU work on the path",
    "overhead": "overhead",
    "unknown": "unknown",
}
KINDS = tuple(NAMES)
"""What a span can be; the page has a colour for each."""

_OF_PART = {Part.START: 5, Part.WORK: 5, Part.CALL: 0, Part.REST: 6, Part.UNKNOWN: 7, Part.GPU: 3}


@dataclass(frozen=True, slots=True)
class TimelineData:
    """What the page draws."""

    json: Markup
    """Without `<`, so that it ends no element of the page."""
    inferred: bool
    """Whether the GPU's times are; False if it did nothing."""
    hidden_lanes: int
    key: list[tuple[str, str]]
    """The colours that occur, and what they stand for."""


def timeline_data(results: Results) -> TimelineData | None:
    """Return what the page draws; None if the results contain no single operations."""
    if results.work is None or not len(results.timeline):
        return None
    run = run_path(results)
    found = find_regions(results.document, run, stored_waiting(results).regions)
    threads = len(run.work.process_of_thread)
    stretches = run.stretches
    origin = int(stretches.begin[0]) if len(stretches.begin) else 0
    length = max(stretches.length, 1)
    busy = _Lanes.of(_blocks(run, found, threads))
    order = busy.longest()
    spans = bounded(_of_lanes(_blocks(run, found, threads), order), busy.first(order), length, MOST_SPANS)
    path = bounded(_path(run, found), origin, length, MOST_PIECES, in_lanes=False)
    place = {lane: number for number, lane in enumerate(order.tolist())}
    shown = np.concatenate([np.where(each.name == each.last, each.name, MIXED) for each in (spans, path)])
    names, numbers = np.unique(shown, return_inverse=True)
    tick = max(length // TICKS, 1)
    content = {
        "length": length / 1e9,
        "tick": tick / 1e9,
        "kinds": KINDS,
        "lanes": [_lane_name(run, int(lane), threads) for lane in order],
        "names": [region_title(found, name) for name in names.tolist()],
        "spans": _columns(spans, [place[lane] for lane in spans.lane.tolist()], numbers[: len(spans)], origin, tick),
        "path": _columns(
            path, [place.get(lane, -1) for lane in path.lane.tolist()], numbers[len(spans) :], origin, tick
        ),
    }
    text = orjson.dumps(content).replace(b"<", b"\\u003c").decode()
    occurring = np.union1d(spans.kind, path.kind).tolist()
    key = [(KINDS[kind], NAMES[KINDS[kind]]) for kind in occurring] + [("path", "the critical path")]
    inferred = run.work.began is None and bool(run.graph.works.any())
    return TimelineData(Markup(text), inferred, len(busy.used) - len(order), key)


def _columns(spans: Spans, lane: list[int], name: Times, origin: int, tick: int) -> dict[str, list[int]]:
    """Return spans as columns of whole numbers, times in ticks."""
    begin, end = (spans.begin - origin) // tick, -((origin - spans.end) // tick)
    return {
        "lane": lane,
        "begin": begin.tolist(),
        "length": (end - begin).tolist(),
        "kind": spans.kind.tolist(),
        "name": name.tolist(),
        "count": spans.count.tolist(),
    }


@dataclass(frozen=True, slots=True)
class _Lanes:
    """How long each lane is busy, and when its first span begins; of shape (lanes,), nanoseconds."""

    busy: NDArray[np.float64]
    begin: Times

    @classmethod
    def of(cls, blocks: Iterable[Spans]) -> _Lanes:
        """Add up spans."""
        lanes = cls(np.zeros(0), np.zeros(0, np.int64))
        for spans in blocks:
            if more := max(int(spans.lane.max(initial=-1)) + 1 - len(lanes.busy), 0):
                never = np.full(more, np.iinfo(np.int64).max)
                lanes = cls(np.append(lanes.busy, np.zeros(more)), np.append(lanes.begin, never))
            lanes.busy[:] += np.bincount(spans.lane, spans.taken, len(lanes.busy))
            np.minimum.at(lanes.begin, spans.lane, spans.begin)
        return lanes

    @property
    def used(self) -> Times:
        """The lanes that are busy at all."""
        return np.flatnonzero(self.busy > 0)

    def longest(self) -> Times:
        """Return the lanes that are busy longest, ascending."""
        used = self.used
        return np.sort(used[np.argsort(-self.busy[used], kind="stable")][:MOST_LANES])

    def first(self, lanes: Times) -> int:
        """Return when the first span of some lanes begins."""
        return int(self.begin[lanes].min(initial=np.iinfo(np.int64).max))


def _of_lanes(blocks: Iterable[Spans], lanes: Times) -> Iterator[Spans]:
    """Yield what lies in some lanes."""
    for spans in blocks:
        yield spans.chosen(np.isin(spans.lane, lanes))


def _blocks(run: RunPath, found: Regions, threads: int) -> Iterator[Spans]:
    """Yield what the run did, in blocks: what calls do before they wait, their waits, what they do after that, and then
    the GPU's work.
    """
    rows = len(run.timeline)
    waits_first = run.work.waits_first
    for piece in range(3):
        for part in parts(rows):
            yield _calls(run, found, part, waits_first[part], piece)
    for part in parts(rows):
        yield _gpu(run, found, threads, part)


def _calls(run: RunPath, found: Regions, part: slice, waits_first: NDArray[np.bool_], piece: int) -> Spans:
    """Return one of the pieces of some traced calls: what they do before they wait (0), the wait (1), and what they do
    after that (2).
    """
    timeline = run.timeline
    start = timeline.start[part]
    waits = start + np.where(waits_first, 0, own_before_wait(timeline, run.work, part))
    moments = (start, waits, waits + timeline.wait[part], start + timeline.duration[part])
    begin, end = moments[piece], moments[piece + 1]
    waiting = np.where(timeline.problem[part] != 0, KINDS.index("problem"), KINDS.index("wait"))
    kind = waiting if piece == 1 else np.full(len(start), KINDS.index("call"))
    spans = Spans.single(timeline.thread[part], begin, end, kind, found.number[found.cells.of_call[part]])
    return spans.chosen(end > begin)


def _gpu(run: RunPath, found: Regions, threads: int, part: slice) -> Spans:
    """Return what the GPU did for some calls; lanes of streams come after those of threads."""
    begin, end = run.graph.gpu_begin[part], run.graph.gpu_end[part]
    name = found.number[found.cells.of_gpu[part]]
    kind = np.where(_are_transfers(found)[name], KINDS.index("transfer"), KINDS.index("kernel"))
    spans = Spans.single(threads + run.work.stream[part].astype(np.int64), begin, end, kind, name)
    return spans.chosen(end > begin)


def _path(run: RunPath, found: Regions) -> Iterator[Spans]:
    """Yield the pieces of the critical path, in blocks."""
    of_part = np.array([_OF_PART[Part(part)] for part in range(max(Part) + 1)])
    for part in parts(len(run.stretches.where)):
        path = cut_path(run.timeline, run.work, run.graph, run.stretches.some(part))
        region = found.of_pieces(path)
        transfers = (path.part == Part.GPU) & _are_transfers(found)[region]
        kind = np.where(transfers, KINDS.index("transfer"), of_part[path.part])
        yield Spans.single(path.lane, path.begin, path.end, kind, region)


def _are_transfers(found: Regions) -> NDArray[np.bool_]:
    """Return which regions are transfers; the last entry is for no region."""
    return np.array([*(region.kind == "transfer" for region in found.regions), False])


def _lane_name(run: RunPath, lane: int, threads: int) -> str:
    process = f"process {_process(run, lane, threads) + 1}, " if run.work.processes > 1 else ""
    if lane < threads:
        return f"{process}thread {lane + 1}"
    stream, device = lane - threads, run.work.stream_device
    if device is not None and len(np.unique(device)) > 1:
        process += f"GPU {device[stream]}, "
    default = stream == run.work.legacy[run.work.stream_process[stream]]
    return f"{process}default stream" if default else f"{process}stream {stream + 1}"


def _process(run: RunPath, lane: int, threads: int) -> int:
    return int(run.work.process_of_thread[lane] if lane < threads else run.work.stream_process[lane - threads])
