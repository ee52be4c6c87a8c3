"""A run in time, small enough for a page: what threads and streams did, and the critical path through them.

A page cannot hold millions of spans. Spans that would be too short to see even when enlarged are joined with their
neighbours, so that runs of any length take about the same space; each joined span says how many it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import orjson
from markupsafe import Markup
from numpy.typing import NDArray

from ffm.model.waiting.path import Part
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
_MIXED = -1
"""Instead of a name: several spans that were joined."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Spans:
    """Spans in lanes; all columns have the same length. Nanoseconds."""

    lane: Times
    begin: Times
    end: Times
    kind: Times
    name: NDArray[np.integer]
    count: Times

    @classmethod
    def joined(cls, parts: list[_Spans]) -> _Spans:
        """Return the spans of all parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def chosen(self, rows: NDArray[np.bool_] | Times) -> _Spans:
        """Return some of the spans."""
        return _Spans(*(getattr(self, name)[rows] for name in self.__slots__))

    def __len__(self) -> int:
        return len(self.lane)


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
    origin = int(run.path.begin[0]) if len(run.path.begin) else 0
    length = max(run.path.length, 1)
    drawn, hidden = _lanes(_calls(run, found), _gpu(run, found, threads))
    spans = _bounded(drawn, length, MOST_SPANS)
    path = _bounded(_path(run, found), length, MOST_PIECES, in_lanes=False)
    order = np.unique(drawn.lane)
    place = {lane: number for number, lane in enumerate(order.tolist())}
    names, numbers = np.unique(np.concatenate((spans.name, path.name)), return_inverse=True)
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
    return TimelineData(Markup(text), inferred, hidden, key)


def _columns(spans: _Spans, lane: list[int], name: Times, origin: int, tick: int) -> dict[str, list[int]]:
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


def _calls(run: RunPath, found: Regions) -> _Spans:
    """Return the traced calls of all threads, and their waits."""
    timeline = run.timeline
    waits_first = run.work.waits_first
    end, own = timeline.start + timeline.duration, timeline.duration - timeline.wait
    turn = timeline.start + np.where(waits_first, timeline.wait, own)
    wait = np.where(timeline.problem != 0, KINDS.index("problem"), KINDS.index("wait"))
    call = np.full(len(timeline), KINDS.index("call"))
    lane, one = timeline.thread.astype(np.int64), np.ones(len(timeline), np.int64)
    first = _Spans(lane, timeline.start, turn, np.where(waits_first, wait, call), found.of_call, one)
    second = _Spans(lane, turn, end, np.where(waits_first, call, wait), found.of_call, one)
    both = _Spans.joined([first, second])
    return both.chosen(both.end > both.begin)


def _gpu(run: RunPath, found: Regions, threads: int) -> _Spans:
    """Return what the GPU did; lanes of streams come after those of threads."""
    rows = np.flatnonzero(run.graph.works)
    transfers = np.array([region.kind == "transfer" for region in found.regions] or [False])
    name = found.of_gpu[rows]
    return _Spans(
        threads + run.work.stream[rows].astype(np.int64),
        run.graph.gpu_begin[rows],
        run.graph.gpu_end[rows],
        np.where(transfers[name], KINDS.index("transfer"), KINDS.index("kernel")),
        name,
        np.ones(len(rows), np.int64),
    )


def _path(run: RunPath, found: Regions) -> _Spans:
    path = run.path
    kind = np.array([_OF_PART[Part(part)] for part in range(max(Part) + 1)])[path.part]
    transfers = np.array([region.kind == "transfer" for region in found.regions] or [False])
    region = found.of_pieces(path)
    kind = np.where((path.part == Part.GPU) & transfers[region], KINDS.index("transfer"), kind)
    return _Spans(path.lane, path.begin, path.end, kind, region, np.ones(len(path.row), np.int64))


def _lanes(calls: _Spans, gpu: _Spans) -> tuple[_Spans, int]:
    """Return the spans of the lanes that are busy longest, and how many lanes are left out."""
    spans = _Spans.joined([calls, gpu])
    if not len(spans):
        return spans, 0
    busy = np.bincount(spans.lane, weights=spans.end - spans.begin)
    used = np.flatnonzero(busy > 0)
    most = used[np.argsort(-busy[used], kind="stable")][:MOST_LANES]
    return spans.chosen(np.isin(spans.lane, most)), len(used) - len(most)


def _bounded(spans: _Spans, length: int, most: int, *, in_lanes: bool = True) -> _Spans:
    """Join spans that are shorter than some time with those in the same stretch of that time, which is the shortest
    that leaves about as many as wanted.

    Those of one lane are joined, or, unless `in_lanes`, pieces that follow each other in whatever lanes: as no longer
    piece can lie between those that begin in one stretch, the joined ones follow each other, too.
    """
    if len(spans) <= most:
        return spans.chosen(np.argsort(spans.begin, kind="stable"))
    stretch = max(length // most, 1)
    while True:
        short = spans.end - spans.begin < stretch
        group = (spans.begin[short] - spans.begin.min()) // stretch
        if in_lanes:
            group += spans.lane[short] * (length // stretch + 2)
        groups, which = np.unique(group, return_inverse=True)
        if int((~short).sum()) + len(groups) <= most or stretch > length:
            break
        stretch *= 2
    joined = _joined(spans.chosen(short), which.reshape(-1), len(groups))
    every = _Spans.joined([joined, spans.chosen(~short)])
    return every.chosen(np.argsort(every.begin, kind="stable"))


def _joined(spans: _Spans, which: Times, groups: int) -> _Spans:
    """Return one span for each group: in the lane and of the kind that take most of it, and without a name if it has
    several.
    """
    begin = np.full(groups, np.iinfo(np.int64).max)
    end = np.zeros(groups, np.int64)
    np.minimum.at(begin, which, spans.begin)
    np.maximum.at(end, which, spans.end)
    taken = np.zeros((groups, len(KINDS)))
    np.add.at(taken, (which, spans.kind), spans.end - spans.begin)
    least, most = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
    np.minimum.at(least, which, spans.name)
    np.maximum.at(most, which, spans.name)
    lane = np.zeros(groups, np.int64)
    lanes = int(spans.lane.max(initial=0)) + 1
    parts, part = np.unique(which * lanes + spans.lane, return_inverse=True)
    longest = np.argsort(np.bincount(part.reshape(-1), weights=spans.end - spans.begin), kind="stable")
    lane[parts[longest] // lanes] = parts[longest] % lanes  # of each group, the last one is the longest
    count = np.zeros(groups, np.int64)
    np.add.at(count, which, spans.count)
    return _Spans(lane, begin, end, taken.argmax(axis=1), np.where(least == most, most, _MIXED), count)


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
