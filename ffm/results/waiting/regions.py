"""The regions of a run: its driver calls by site, its GPU work by site, and its CPU work between calls by function.

CPU work between two calls belongs to the functions in which it was sampled (`sampled.py`). Without samples, it belongs
to the deepest function that is on the stacks of both calls: control stayed in it, or below it. It is named after the
program's lines in that function that lead to the calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ffm.model import compiled
from ffm.model.estimators.faster import Faster
from ffm.model.grouping import SPARE, looked_up, numbered, parts
from ffm.model.groups.names import base_name, starts_a_thread
from ffm.model.lock_order import lock_waited
from ffm.model.timeline import Kind, Timeline
from ffm.model.waiting import cell_kernels
from ffm.model.waiting.blame import find_blame
from ffm.model.waiting.bounds import find_bounds
from ffm.model.waiting.meeting_blame import Shared
from ffm.model.waiting.path import Owners, Part, Path, Stretches, time_by_owner
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.stacks import Frame
from ffm.results.documents.waiting import Region
from ffm.results.memory.heap import give_back
from ffm.results.places import file_name, frame_place, place, told_apart
from ffm.results.waiting.run_path import RunPath
from ffm.results.waiting.sampled import REST, SampledFunction, SampledPair, Split, sampled_pairs

RegionKind = Literal["CPU", "call", "kernel", "transfer"]
_Key = tuple[RegionKind, str, str]

BEFORE = "before the first call"
AFTER = "after the last call"
_BESIDE = "beside "
_NO_FRAMES = (_BESIDE, "before any kernel")
"""What a profiler's trace without stacks has in place of frames."""
_STUB = "__device_stub__"
_NS = 1e9


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of the rows of a run, and of pieces of its path."""

    of_call: NDArray[np.int32]
    """For each row, the cell of its call; -1 if there is none."""
    of_gpu: NDArray[np.int32]
    after: NDArray[np.int32]
    """For each row, the cell of the CPU work after it."""
    before: int
    """The cell of what comes before a thread's first call."""
    timeline: Timeline
    count: int

    def of_pieces(self, path: Path) -> NDArray[np.int64]:
        """Return the cell of each piece of a path; -1 for what passes before GPU work for which nothing accounts."""
        cell = np.where(path.part == Part.GPU, self.of_gpu[path.row], self.of_call[path.row])
        cell = np.where(path.part == Part.WORK, self.after[path.row], cell)
        over = self.timeline.start[path.row] + self.timeline.duration[path.row]
        cell = np.where((path.part == Part.UNKNOWN) & (path.end > over), -1, cell)
        return np.asarray(np.where(path.part == Part.START, self.before, cell), np.int64)

    def nanoseconds(self, run: RunPath, stretches: Stretches) -> NDArray[np.int64]:
        """Return the nanoseconds of some stretches in each cell."""
        owners = Owners(self.of_call, self.of_gpu, self.after, self.before, self.count)
        return time_by_owner(run.timeline, run.work, run.graph, stretches, owners)


@dataclass(frozen=True, slots=True)
class Regions:
    """All regions of a run, those with most seconds on the path first, and which rows belong to which."""

    regions: list[Region]
    split: Split
    """How the cells of CPU work share out to regions."""
    cells: _Cells
    lines: list[dict[int, int]]
    """For each region, the nanoseconds that were sampled in each of its lines."""
    number: NDArray[np.int32]
    """The region that has most of each cell; -1 behind the last, and where none has any."""

    @property
    def of_call(self) -> NDArray[np.int32]:
        """For each row, the region of its call; -1 if there is none."""
        return self.number[self.cells.of_call]

    @property
    def of_gpu(self) -> NDArray[np.int32]:
        """The same for its work on the GPU."""
        return self.number[self.cells.of_gpu]

    def less_on_path_s(self, numbers: Sequence[int], factor: float) -> float:
        """Return what becomes shorter of the path as it is if some regions become faster."""
        return sum(self.regions[number].path_s for number in numbers) * (1 - 1 / factor)

    def of_pieces(self, path: Path) -> NDArray[np.int64]:
        """Return the region of each piece of a path; of several, the one that has most of it; -1 if there is none."""
        return np.append(self.split.largest(self.cells.count), -1)[self.cells.of_pieces(path)]

    def shares_of_pieces(self, number: int, path: Path) -> NDArray[np.float64]:
        """Return which share of each piece of a path a region has, 0 to 1."""
        return np.append(self.split.of_regions([number], self.cells.count), 0.0)[self.cells.of_pieces(path)]

    def faster(self, chosen: Sequence[int], factor: float, run: RunPath) -> Faster:
        """Return what takes less time if some regions become faster by a factor; infinity removes them.

        A call disappears, with its wait, if it has no work on the GPU or if that disappears too.
        """
        timeline = run.timeline
        less = 1.0 - 1.0 / factor
        share = self.split.of_regions(list(chosen), self.cells.count)
        work = share[self.cells.after]
        among = np.zeros(len(self.regions) + 1, np.bool_)  # the last is for rows in no region (-1)
        among[list(chosen)] = True
        calls, gpu = among[self.of_call], among[self.of_gpu]
        return Faster(
            call=(np.where(calls, timeline.duration - timeline.wait, 0) * less).astype(np.int64),
            gap=((timeline.gap - lock_waited(timeline, run.work.locks)) * work * less).astype(np.int64),
            gpu=np.where(gpu, 1.0 - less, 1.0),
            gone=calls & (gpu | ~run.graph.works) if math.isinf(factor) else np.zeros(len(timeline), bool),
            first=_before_first_calls(run, less * float(share[self.cells.before])),
        )


def _before_first_calls(run: RunPath, less: float) -> NDArray[np.int64] | None:
    """Return by how much each process begins sooner, with its first thread, if what comes before the first call takes
    less time by this share; None if it is not known what processes wait for.
    """
    if run.work.encounters is None or less == 0:
        return None
    timeline, process = run.timeline, run.work.process_of_thread
    begins = np.flatnonzero(np.append(True, timeline.thread[1:] != timeline.thread[:-1]))
    begins = begins[np.argsort(timeline.start[begins], kind="stable")]
    begins = begins[np.unique(process[timeline.thread[begins]], return_index=True)[1]]
    first = np.zeros(len(process), np.int64)
    first[timeline.thread[begins]] = ((timeline.start[begins] - timeline.start.min()) * less).astype(np.int64)
    return first


def find_regions(analysis: Analysis, run: RunPath, told: list[Region] | None = None) -> Regions:
    """Return the regions of a run with their times. Where these are `told`, only the rows of each are found."""
    table = _Table(analysis, run)
    cells = table.cells
    give_back()  # numbering the cells takes many columns, and so does finding blame
    cell_path_s = cells.nanoseconds(run, run.stretches) / _NS
    shares = _Shares.of(run, cells) if told is None else _Shares.nothing(cells.count)
    cell_total_s, cell_counts = table.totals()
    cell_total_s[cells.before] += cell_path_s[cells.before]
    split = table.split(cell_total_s * _NS)
    keys, count = table.keys, len(table.keys)
    path_s, total_s = split.spread(cell_path_s, count), split.spread(cell_total_s, count)
    counts = split.count(cell_counts, count)
    blamed, threads, passed_on = (split.spread(one, count) for one in (shares.blamed, shares.threads, shares.passed_on))
    faster, even = (split.bounded(one, cell_total_s * _NS, count) for one in (shares.faster, shares.even))
    order = np.lexsort((-total_s, -path_s))
    listed = [index for index in order.tolist() if total_s[index] > 0 or path_s[index] > 0]
    regions = told or [
        Region(
            kind=keys[index][0],
            name=keys[index][1],
            place=_with_lines(keys[index][2], table.lines[index]),
            sites=sorted(table.sites[index]),
            count=int(counts[index]),
            total_s=float(total_s[index]),
            path_s=float(path_s[index]),
            blamed_s=float(blamed[index]) / _NS,
            threads_s=float(threads[index]) / _NS,
            passed_on_s=float(passed_on[index]) / _NS,
            faster_bound_s=float(faster[index]) / _NS,
            even_bound_s=float(even[index]) / _NS,
        )
        for index in listed
    ]
    place_in = np.full(count, -1, np.int64)
    place_in[listed] = np.arange(len(listed))
    split = split.renumbered(place_in)
    number = np.append(split.largest(cells.count), -1).astype(np.int32)
    return Regions(
        regions,
        split,
        cells,
        [table.sampled_lines[index] for index in listed],
        number,
    )


class _Table:
    """Numbers for the cells of a run, in the order in which they are found, and the cells of its rows.

    A cell is one region, except for CPU work between two sites that was sampled.
    """

    def __init__(self, analysis: Analysis, run: RunPath) -> None:
        self._run = run
        self._names = _Names(analysis)
        self._sampled = sampled_pairs(analysis.sampled)
        self._regions: dict[_Key, int] = {}
        self._region_of_cell: list[int] = []
        self._pair_of_cell: dict[int, SampledPair] = {}
        self._cell_of_region: dict[int, int] = {}
        self.lines: list[set[int]] = []
        self.sampled_lines: list[dict[int, int]] = []
        self.sites: list[set[int]] = []
        site, works = run.timeline.site, run.graph.works
        after = self._between_calls(site, len(analysis.sites))
        of_site = np.full((2, len(analysis.sites)), -1, np.int32)
        working = set(_distinct(site[works]))
        transfers = set(_distinct(site[run.timeline.kind == Kind.TRANSFER]))
        for one in _distinct(site):
            of_site[0, one] = self._cell("call", *self._names.call(one), one)
            if one in working:
                kind: RegionKind = "transfer" if one in transfers else "kernel"
                of_site[1, one] = self._cell(kind, *self._names.work(one), one)
        before = self._cell("CPU", BEFORE, "", int(site[0]))
        of_call, of_gpu = looked_up(of_site[0], site), looked_up(of_site[1], site)
        of_gpu[~works] = -1
        self.cells = _Cells(of_call, of_gpu, after, before, run.timeline, len(self._region_of_cell))

    @property
    def keys(self) -> list[_Key]:
        """The regions' kinds, names, and places without lines."""
        return list(self._regions)

    def split(self, nanoseconds: NDArray[np.float64]) -> Split:
        """Return how the cells, which took so long, share out to regions; new ones are numbered."""
        rows: list[tuple[int, int, float]] = []
        keys = self.keys
        for cell, region in enumerate(self._region_of_cell):
            pair = self._pair_of_cell.get(cell)
            if pair is None:
                rows.append((cell, region, 1.0))
                continue
            shares, rest = pair.shares(float(nanoseconds[cell]))
            sites = self.sites[region]
            for function, share in shares.items():
                rows.append((cell, self._function(function, pair, sites), share))
            if not shares and not rest:
                rows.append((cell, region, 1.0))
            if rest > 0:
                _, name, where = keys[region]
                other = self._region("CPU", name + REST, where, sites)
                self.lines[other] |= self.lines[region]
                rows.append((cell, other, rest))
        return Split.of(rows)

    def _function(self, function: SampledFunction, pair: SampledPair, sites: set[int]) -> int:
        region = self._region("CPU", function.name, function.file, sites)
        for line, nanoseconds in pair.lines(function).items():
            self.sampled_lines[region][line] = self.sampled_lines[region].get(line, 0) + nanoseconds
            if line:
                self.lines[region].add(line)
        return region

    def totals(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the seconds of each cell, whether or not on the path, and how often it occurs."""
        timeline, graph, cells = self._run.timeline, self._run.graph, self.cells
        count = cells.count
        total, counts = np.zeros((2, count), np.int64)
        times = timeline.gap, timeline.duration, graph.waited, graph.gpu_begin, graph.gpu_end
        owners = cells.after, cells.of_call, cells.of_gpu
        compiled.run(cell_kernels.add_up, len(timeline), *times, *owners, total, counts)
        return total / _NS, counts

    def _between_calls(self, site: NDArray[np.int32], sites: int) -> NDArray[np.int32]:
        """Number the CPU work after each row, by the pair of sites around it."""
        thread = self._run.timeline.thread
        if sites * (sites + 1) <= len(site) + SPARE:
            first_rows = np.full(sites * (sites + 1), -1, np.int64)
            compiled.run(cell_kernels.first_of_pairs, len(site), thread, site, sites, first_rows)
            pairs = np.flatnonzero(first_rows >= 0)
            cells = np.full(len(first_rows), -1, np.int32)
            cells[pairs] = self._cells_of_pairs(pairs, sites)
            compiled.run(
                cell_kernels.look_up_pairs, len(site), thread, site, sites, cells, of_row := np.empty_like(site)
            )
            return of_row
        after = np.full(len(site), sites, np.int64)
        after[:-1] = np.where(thread[1:] == thread[:-1], site[1:], sites)
        pair, example = numbered(site, after)
        return self._cells_of_pairs(site[example] * (sites + 1) + after[example], sites)[pair]

    def _cells_of_pairs(self, pairs: NDArray[np.int64], sites: int) -> NDArray[np.int32]:
        """Return a cell for the CPU work between each pair of sites, as `cell_kernels` numbers pairs."""
        of_pair = np.empty(len(pairs), np.int32)
        for index, pair in enumerate(pairs.tolist()):
            first, second = divmod(pair, sites + 1)
            following = second if second < sites else None
            name, file, lines = self._names.between(first, following)
            sampled = None if following is None else self._sampled.get((first, following))
            of_pair[index] = self._cell("CPU", name, file, first, sampled)
            if sampled is None:
                self.lines[self._region_of_cell[of_pair[index]]] |= lines
        return of_pair

    def _cell(self, kind: RegionKind, name: str, where: str, site: int, sampled: SampledPair | None = None) -> int:
        region = self._region(kind, name, where, {site})
        if sampled is None and region in self._cell_of_region:
            return self._cell_of_region[region]
        cell = len(self._region_of_cell)
        self._region_of_cell.append(region)
        if sampled is None:
            self._cell_of_region[region] = cell
        else:
            self._pair_of_cell[cell] = sampled
        return cell

    def _region(self, kind: RegionKind, name: str, where: str, sites: set[int]) -> int:
        index = self._regions.setdefault((kind, name, where), len(self._regions))
        if index == len(self.sites):
            self.sites.append(set())
            self.lines.append(set())
            self.sampled_lines.append({})
        self.sites[index] |= sites
        return index


@dataclass(frozen=True, slots=True)
class _Shares:
    """What the cells of a table are to blame for, and bounds of what they could save, in nanoseconds."""

    blamed: NDArray[np.float64]
    threads: NDArray[np.float64]
    passed_on: NDArray[np.float64]
    faster: NDArray[np.float64]
    even: NDArray[np.float64]

    @classmethod
    def nothing(cls, count: int) -> _Shares:
        """Return the shares of cells of which nothing is asked."""
        none = np.zeros(count)
        return cls(none, none, none, none, none)

    @classmethod
    def of(cls, run: RunPath, cells: _Cells) -> _Shares:
        count = cells.count
        blame = find_blame(run.timeline, run.work, run.graph, run.meetings)

        def of_work(nanoseconds: NDArray[np.int64]) -> NDArray[np.float64]:
            sums = np.zeros(count)
            for part in parts(len(nanoseconds)):
                cell = cells.of_gpu[part]
                sums += _weighted(cell[cell >= 0], nanoseconds[part][cell >= 0], count)
            return sums

        def of_threads(shared: Shared) -> NDArray[np.float64]:
            return _weighted(cells.of_pieces(shared.pieces), shared.blame, count)

        idle = cells.nanoseconds(run, blame.idle).astype(np.float64)
        work, threads = of_work(blame.work), of_threads(blame.threads)
        indirect = work if blame.work_passed_on is blame.work else of_work(blame.work_passed_on)
        passed_on = indirect - work + of_threads(blame.passed_on) - threads
        of_piece = cells.of_pieces(blame.threads.pieces)
        bounds = find_bounds(run.timeline, run.graph, cells.of_gpu, run.meetings, blame.threads, of_piece, count)
        return cls(work + idle, threads, passed_on.clip(0), bounds.faster + idle, bounds.even.astype(np.float64))


def _distinct(site: NDArray[np.int32]) -> list[int]:
    """Return the distinct sites of some rows, ascending."""
    seen = np.zeros(int(site.max(initial=-1)) + 1, np.bool_)
    for part in parts(len(site)):
        seen[site[part]] = True
    found: list[int] = np.flatnonzero(seen).tolist()
    return found


def _weighted(number: NDArray[np.integer], weights: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Return the sum of the weights of each number below `count`."""
    sums: NDArray[np.float64] = np.bincount(number, weights=weights, minlength=count).astype(np.float64)
    return sums


def _with_lines(file: str, lines: set[int]) -> str:
    if not file or not lines:
        return file
    least, most = min(lines), max(lines)
    return f"{file}:{least}" if least == most else f"{file}:{least}-{most}"


class _Names:
    """Names of calls, GPU work and CPU work, from the stacks of an analysis."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._apart = {
            index: way.removeprefix(" from ") for index, way in told_apart(analysis, range(len(analysis.sites))).items()
        }
        self._outer = [self._frames(index) for index in range(len(analysis.sites))]

    def call(self, site: int) -> tuple[str, str]:
        """Return the name and place of a site's call."""
        where = place(self._analysis, site)
        return where.call, self._apart.get(site, where.place)

    def work(self, site: int) -> tuple[str, str]:
        """Return the name and place of the GPU work of a site: the kernel's, if the driver told it or the stack shows
        it.
        """
        name, at = self._shown_work(site)
        kernels = list(dict.fromkeys(_unqualified(kernel) for kernel in self._analysis.sites[site].kernels))
        if len(kernels) > 1:
            return f"{kernels[0]} and {len(kernels) - 1} more", at
        return (kernels[0] if kernels else name), at

    def _shown_work(self, site: int) -> tuple[str, str]:
        where = place(self._analysis, site)
        call, at = self.call(site)
        if where.caller.startswith(_BESIDE) and self._analysis.sites[site].kind != "transfer":
            return where.caller.removeprefix(_BESIDE), ""
        frames = self._analysis.stacks[self._analysis.sites[site].stack].frames
        stubs = [index for index, frame in enumerate(frames) if frame.function.startswith(_STUB)]
        if not stubs or stubs[-1] + 1 >= len(frames):
            return call, at
        launcher = frames[stubs[-1] + 2 : stubs[-1] + 3]
        if launcher and launcher[0].file and launcher[0].line:
            at = frame_place(self._analysis, launcher[0])
        return base_name(frames[stubs[-1] + 1].function), at

    def between(self, first: int, second: int | None) -> tuple[str, str, set[int]]:
        """Return the function, the file and the lines of the CPU work between two sites' calls; None is the end."""
        if second is None:
            return AFTER, "", set()
        before, after = self._outer[first], self._outer[second]
        common: tuple[Frame, Frame] | None = None
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            if one.function != other.function or one.module != other.module:
                break
            common = one, other
            # The address of a function with an inlined call is that of the innermost one, so only its line counts.
            inlines = _inlines(before, index) and _inlines(after, index)
            if one.line != other.line or (one.offset != other.offset and not inlines):
                break
        if common is None or not common[0].function:
            call, at = self.call(first)
            return f"after {call}", at, set()
        own, other = common
        return base_name(own.function), file_name(own.file), {one.line for one in (own, other) if one.line}

    def _frames(self, site: int) -> list[Frame]:
        """Return the frames of the program on a site's stack, outermost first: from its start to the caller."""
        described = self._analysis.sites[site]
        frames = self._analysis.stacks[described.stack].frames
        caller = next((index for index, frame in enumerate(frames) if frame.function == described.caller), 0)
        return [
            frame
            for frame in reversed(frames[caller:])
            if not starts_a_thread(frame.function) and not frame.function.startswith(_NO_FRAMES)
        ]


def _unqualified(kernel: str) -> str:
    """Return a kernel's name without the namespaces, template arguments and parameters: there is room for little."""
    return base_name(kernel).rpartition("::")[2]


def _inlines(frames: Sequence[Frame], index: int) -> bool:
    """Return whether what a frame called was inlined; frames are ordered outermost first."""
    return index + 1 < len(frames) and frames[index + 1].inlined
