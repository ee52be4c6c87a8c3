"""The regions of a run: its driver calls by site, its GPU work by site, and its CPU work between calls by function.

CPU work between two calls belongs to the functions in which it was sampled (`sampled.py`). Without samples, it belongs
to the deepest function that is on the stacks of both calls: control stayed in it, or below it. It is named after the
program's lines in that function that lead to the calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.estimators.faster import Faster
from ffm.model.grouping import parts
from ffm.model.lock_order import lock_waited
from ffm.model.waiting.blame import find_blame, find_idlers
from ffm.model.waiting.bounds import find_bounds
from ffm.model.waiting.meeting_blame import Shared
from ffm.model.waiting.path import Path
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.waiting import Region
from ffm.results.waiting.cells import NANOSECONDS, Cells, CellTable
from ffm.results.waiting.run_path import RunPath
from ffm.results.waiting.sampled import Split


@dataclass(frozen=True, slots=True)
class Regions:
    """All regions of a run, those with most seconds on the path first, and which rows belong to which."""

    regions: list[Region]
    split: Split
    """How the cells of CPU work share out to regions."""
    cells: Cells
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

    def seconds_by_part(self, number: int, run: RunPath) -> NDArray[np.float64]:
        """Return a region's seconds on the run's path by `Part`, without cutting the path into pieces."""
        seconds: NDArray[np.float64] = self.cells.nanoseconds_by_part(run) @ self.share_of_cells(number) / NANOSECONDS
        return seconds

    def share_of_cells(self, number: int) -> NDArray[np.float64]:
        """Return which share of each cell a region has, 0 to 1."""
        return self.split.of_regions([number], self.cells.count)

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
    table = CellTable(analysis, run)
    cells = table.cells
    cell_path_s = cells.nanoseconds_by_part(run).sum(axis=0) / NANOSECONDS
    shares = _Shares.of(run, cells) if told is None else _Shares.nothing(cells.count)
    cell_total_s, cell_counts = table.totals()
    cell_total_s[cells.before] += cell_path_s[cells.before]
    split = table.split(cell_total_s * NANOSECONDS)
    keys, count = table.keys, len(table.keys)
    path_s, total_s = split.spread(cell_path_s, count), split.spread(cell_total_s, count)
    counts = split.count(cell_counts, count)
    blamed, threads, passed_on = (split.spread(one, count) for one in (shares.blamed, shares.threads, shares.passed_on))
    faster, even = (split.bounded(one, cell_total_s * NANOSECONDS, count) for one in (shares.faster, shares.even))
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
            blamed_s=float(blamed[index]) / NANOSECONDS,
            threads_s=float(threads[index]) / NANOSECONDS,
            passed_on_s=float(passed_on[index]) / NANOSECONDS,
            faster_bound_s=float(faster[index]) / NANOSECONDS,
            even_bound_s=float(even[index]) / NANOSECONDS,
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
    def of(cls, run: RunPath, cells: Cells) -> _Shares:
        count = cells.count
        known = run.timeline, run.work, run.graph, run.meetings
        # Before the other blame: both take much memory.
        idle = cells.nanoseconds(run, find_idlers(*known)).astype(np.float64)
        blame = find_blame(*known)

        def of_work(nanoseconds: NDArray[np.int64]) -> NDArray[np.float64]:
            sums = np.zeros(count)
            for part in parts(len(nanoseconds)):
                cell = cells.of_gpu[part]
                sums += _weighted(cell[cell >= 0], nanoseconds[part][cell >= 0], count)
            return sums

        def of_threads(shared: Shared) -> NDArray[np.float64]:
            return _weighted(cells.of_pieces(shared.pieces), shared.blame, count)

        work, threads = of_work(blame.work), of_threads(blame.threads)
        indirect = work if blame.work_passed_on is blame.work else of_work(blame.work_passed_on)
        passed_on = indirect - work + of_threads(blame.passed_on) - threads
        of_piece = cells.of_pieces(blame.threads.pieces)
        bounds = find_bounds(run.timeline, run.graph, cells.of_gpu, run.meetings, blame.threads, of_piece, count)
        return cls(work + idle, threads, passed_on.clip(0), bounds.faster + idle, bounds.even.astype(np.float64))


def _weighted(number: NDArray[np.integer], weights: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Return the sum of the weights of each number below `count`."""
    sums: NDArray[np.float64] = np.bincount(number, weights=weights, minlength=count).astype(np.float64)
    return sums


def _with_lines(file: str, lines: set[int]) -> str:
    if not file or not lines:
        return file
    least, most = min(lines), max(lines)
    return f"{file}:{least}" if least == most else f"{file}:{least}-{most}"
