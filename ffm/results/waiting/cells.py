"""The cells of a run: what its regions are made of, numbered, and the cells of each of its rows.

A cell belongs to one region, except for CPU work between two sites that was sampled, which is shared among several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ffm.model import compiled
from ffm.model.grouping import SPARE, numbered
from ffm.model.timeline import Timeline
from ffm.model.waiting import cell_kernels
from ffm.model.waiting.path import Owners, Part, Path, Stretches, time_by_owner
from ffm.results.documents.analysis import Analysis
from ffm.results.waiting.region_names import RegionNames
from ffm.results.waiting.run_path import RunPath
from ffm.results.waiting.sampled import REST, SampledFunction, SampledPair, Split, sampled_pairs

RegionKind = Literal["CPU", "call", "kernel", "transfer"]
Key = tuple[RegionKind, str, str]
"""A region's kind, its name, and its place without lines."""

BEFORE = "before the first call"
NANOSECONDS = 1e9
"""In a second."""


@dataclass(frozen=True, slots=True)
class Cells:
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
        return time_by_owner(run.timeline, run.work, run.graph, stretches, self._owners)

    def nanoseconds_by_part(self, run: RunPath) -> NDArray[np.int64]:
        """Return the nanoseconds of the run's path by `Part` and cell; shape (parts, cells)."""
        return run.by_part_of_owner(self._owners)

    @property
    def _owners(self) -> Owners:
        return Owners(self.of_call, self.of_gpu, self.after, self.before, self.count)


class CellTable:
    """Numbers for the cells of a run, in the order in which they are found.

    `lines`, `sampled_lines` and `sites` have, for each region, its lines between calls, the nanoseconds sampled in each
    of its lines, and its sites.
    """

    def __init__(self, analysis: Analysis, run: RunPath) -> None:
        self._run = run
        self._names = RegionNames(analysis)
        self._sampled = sampled_pairs(analysis.sampled)
        self._regions: dict[Key, int] = {}
        self._region_of_cell: list[int] = []
        self._pair_of_cell: dict[int, SampledPair] = {}
        self._cell_of_region: dict[int, int] = {}
        self.lines: list[set[int]] = []
        self.sampled_lines: list[dict[int, int]] = []
        self.sites: list[set[int]] = []
        site, graph, sites = run.timeline.site, run.graph, len(analysis.sites)
        after = self._between_calls(site, sites)
        calls, works, copies = np.zeros((3, sites), np.bool_)
        columns = len(site), site, graph.gpu_begin, graph.gpu_end
        compiled.run(cell_kernels.mark_sites, *columns, run.timeline.kind, calls, works, copies)
        call_at, work_at = np.full((2, sites), -1, np.int32)
        for one in np.flatnonzero(calls).tolist():
            call_at[one] = self._cell("call", *self._names.call(one), one)
            if works[one]:
                kind: RegionKind = "transfer" if copies[one] else "kernel"
                work_at[one] = self._cell(kind, *self._names.work(one), one)
        before = self._cell("CPU", BEFORE, "", int(site[0]))
        of_call, of_gpu = np.empty((2, len(site)), np.int32)
        compiled.run(cell_kernels.look_up_sites, *columns, call_at, work_at, of_call, of_gpu)
        self.cells = Cells(of_call, of_gpu, after, before, run.timeline, len(self._region_of_cell))

    @property
    def keys(self) -> list[Key]:
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
        return total / NANOSECONDS, counts

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
