"""How often each iteration of a run's threads waits, and for how long."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from ffm.errors import FfmError
from ffm.model.groups.iterations import Iterations, iterations_from, recurring_starts
from ffm.model.groups.names import base_name
from ffm.results.call_sites import source_file
from ffm.results.documents.analysis import Analysis, MarkedIterations
from ffm.results.documents.stacks import Frame
from ffm.results.presumed import waiting_calls
from ffm.results.stored import Results

AUTO = "auto"
"""Iterations begin where the sequence of a thread's calls recurs."""

_PLACE = re.compile(r"(?P<place>.+?)(?:@(?P<every>[1-9]\d{0,8}))?")
_LINE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class Spread:
    """A number for each iteration: the least, the median and the most."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class ThreadIterations:
    """The iterations of one thread."""

    thread: int
    """From 0, as in the timeline."""
    begins_at: int
    """Index of the site that begins the first one."""
    iterations: int
    left_out: int
    """How many more are warm-up, or the different end."""
    waits: Spread
    """Calls that wait for the GPU, whether or not that is needed."""
    wait_s: Spread
    seconds: Spread


class IteratedRun:
    """The iterations of a run's threads. `threads` are those that have some, in their order."""

    def __init__(self, results: Results, how: str) -> None:
        """Find the iterations: `auto`, a name or pattern of those with which the program marks them, or
        where each begins, as `Solver::step`, `train.py:57` or `train.py:57@10`.

        Raises:
            FfmError: There are none.
            DocumentError: The timeline next to the document cannot be read.
        """
        timeline = results.timeline
        waits = waiting_calls(timeline, results.work, results.document.staged)
        self._thread, self._site = timeline.thread, timeline.site
        self._problem = timeline.problem != 0 if results.document.proves else waits
        self._iteration = np.full(len(timeline), -1, np.int64)
        self.threads: list[ThreadIterations] = []
        begins = _Beginnings(results.document, how)
        edges = np.flatnonzero(np.diff(timeline.thread)) + 1
        found = 0
        for rows in np.split(np.arange(len(timeline)), edges):
            site = timeline.site[rows]
            iterations = begins.of_thread(int(timeline.thread[rows[0]]), int(rows[0]), site, waits[rows])
            if not len(iterations):
                continue
            inside = _numbers(iterations, len(rows))
            self._iteration[rows] = np.where(inside >= 0, inside + found, -1)
            found += len(iterations)
            times = timeline.start[rows]
            times = np.append(times, times[-1] + timeline.duration[rows][-1])
            chosen = inside >= 0
            number = len(iterations)
            self.threads.append(
                ThreadIterations(
                    thread=int(timeline.thread[rows[0]]),
                    begins_at=int(site[min(iterations.begin[0], len(site) - 1)]),
                    iterations=number,
                    left_out=iterations.left_out,
                    waits=_spread(np.bincount(inside[chosen], waits[rows][chosen], number)),
                    wait_s=_spread(np.bincount(inside[chosen], timeline.wait[rows][chosen] / 1e9, number)),
                    seconds=_spread((times[iterations.end] - times[iterations.begin]) / 1e9),
                )
            )
        if not self.threads:
            raise FfmError(begins.why_none())
        self._iterations = found

    def most(self, sites: Collection[int]) -> dict[int, int]:
        """Return, for each thread with iterations, the most calls with a problem that one makes at some sites; the
        most that wait, if nothing is proved.
        """
        rows = np.flatnonzero(self._problem & (self._iteration >= 0) & np.isin(self._site, list(sites)))
        counts = np.bincount(self._iteration[rows], minlength=self._iterations)
        most: dict[int, int] = {}
        first = 0
        for one in self.threads:
            most[one.thread] = int(counts[first : first + one.iterations].max())
            first += one.iterations
        return most


class _Beginnings:
    """Where iterations begin."""

    def __init__(self, analysis: Analysis, how: str) -> None:
        self._how = how
        self._begins: NDArray[np.bool_] | None = None
        self._every = 1
        self._marked = _marked_as(analysis.marked, how)
        if how == AUTO or self._marked:
            return
        match = _PLACE.fullmatch(how)
        if match is None:
            raise FfmError("name where iterations begin: a function, FILE:LINE, or `auto`; this is empty.")
        self._every = int(match["every"] or 1)
        frames = [analysis.stacks[site.stack].frames for site in analysis.sites]
        self._begins = np.array([any(_is_at(frame, match["place"]) for frame in stack) for stack in frames], bool)

    def of_thread(self, thread: int, first: int, site: NDArray[np.int32], waits: NDArray[np.bool_]) -> Iterations:
        """Return the iterations of a thread, given its first row, the site of each, and whether it waits."""
        if self._marked:
            begin, end = self._marked.get(thread, (np.empty(0, np.int64), np.empty(0, np.int64)))
            return Iterations(begin[1:] - first, end[1:] - first, len(begin[:1]))
        if self._begins is None:
            return iterations_from(recurring_starts(site, waits), site)
        inside = self._begins[site]
        entered = inside & ~np.append(False, inside[:-1])
        # A function or line may be passed again at once: its first call is the one that counts.
        latest = np.maximum.accumulate(np.where(entered, np.arange(len(site)), 0))
        passed = np.flatnonzero(inside & (site == site[latest]))
        return iterations_from(passed[:: self._every], site, whole=len(passed) % self._every == 0)

    def why_none(self) -> str:
        """Return why there is no iteration."""
        if self._how == AUTO:
            return (
                "no thread's sequence of calls recurs, so there are no iterations. Say where one begins: a function, "
                "or a file and its line (`--iterations train.py:57`)."
            )
        if self._begins is not None and not self._begins.any():
            return f"the program marks no iterations as {self._how}, and no call of the driver is made from there."
        return f"{self._how} is passed too seldom: the first iteration is warm-up, and nothing is left after it."


def _marked_as(marked: list[MarkedIterations], how: str) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the first and the last row of the iterations whose name matches, by thread, in order.

    Names can count: `step 1`, `step 2`. Iterations inside of others do not count, which they do if they match as well.
    """
    threads: dict[int, list[tuple[int, int]]] = {}
    for one in marked:
        if fnmatchcase(one.name, how):
            threads.setdefault(one.thread, []).extend(zip(one.begin, one.end, strict=True))
    found = {}
    for thread, pieces in threads.items():
        apart: list[tuple[int, int]] = []
        for begin, end in sorted(pieces, key=lambda piece: (piece[0], -piece[1])):
            if not apart or begin >= apart[-1][1]:
                apart.append((begin, end))
        rows = np.array(apart, np.int64).reshape(-1, 2)
        found[thread] = (rows[:, 0], rows[:, 1])
    return found


def _is_at(frame: Frame, place: str) -> bool:
    """Return whether a frame is in a function, or at a line of a file."""
    line = _LINE.fullmatch(place)
    if line is not None and "::" not in place[-len(line["line"]) - 2 :]:
        return frame.line == int(line["line"]) and PurePath(source_file(frame.file)).match(line["file"])
    names = (frame.function, frame.function if frame.python else base_name(frame.function))
    return any(name and fnmatchcase(name, place) for name in names)


def _numbers(iterations: Iterations, rows: int) -> NDArray[np.int64]:
    """Return the number of each row's iteration, or -1."""
    number = np.searchsorted(iterations.begin, np.arange(rows), side="right") - 1
    inside = (number >= 0) & (np.arange(rows) < iterations.end[number.clip(0)])
    return np.where(inside, number, -1)


def _spread(values: NDArray[np.number]) -> Spread:
    return Spread(float(values.min()), float(np.median(values)), float(values.max()))
