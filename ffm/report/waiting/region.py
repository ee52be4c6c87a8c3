"""One region of a run: its part of the path, and what the run would save if it were faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ffm.errors import FfmError
from ffm.model.waiting.path import Part
from ffm.report.commands import command
from ffm.report.waiting.changes import Gain, replayed_gain
from ffm.report.waiting.rows import RegionRow, percent_of, region_row
from ffm.report.waiting.selection import listed_regions, matching_regions
from ffm.report.waiting.shares import Share
from ffm.results.stored import Results
from ffm.results.waiting.cells import NANOSECONDS
from ffm.results.waiting.regions import Regions, find_regions
from ffm.results.waiting.run_path import RunPath, run_path, stored_waiting
from ffm.results.waiting.summary import TENTH

LISTED_LINES = 10
"""Lines of a sampled region that are listed."""


@dataclass(frozen=True, slots=True)
class Where:
    """One call site of a region, by its number, and the command that shows it."""

    site: int
    command: str


@dataclass(frozen=True, slots=True)
class RegionBounds:
    """What a region can save while everything else stays as it is, by the waits that it causes. Seconds.

    `faster_s` is until the shortest wait for it is gone, `even_s` what sharing it evenly among the threads of
    its team saves; 0 without a team. `passed_on_s` is how much more waiting it is to blame for if blame for waiting
    goes on to what was waited for.
    """

    faster_s: float
    even_s: float
    passed_on_s: float


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line of the program in which the CPU worked, by samples; `line` is 0 if it is unknown."""

    file: str
    line: int
    seconds: float
    percent: float
    """Of the samples in the region."""


@dataclass(frozen=True, slots=True)
class RegionView:
    """One region: how much of it is on the path, and what the run would save if it were faster or gone."""

    application: str
    wall_s: float
    region: RegionRow
    parts: list[Share]
    """What its time on the path is; percent of the path."""
    bounds: RegionBounds
    lines: list[LineRow]
    """Of CPU work that was sampled, the lines with most of it."""
    gains: list[Gain]
    sites: list[Where]
    command: str


def region_view(results: Results, wanted: str, words: str = "") -> RegionView:
    """Lay out one region, named by its number or its words.

    Raises:
        FfmError: No region, or more than one, has this name; or as for `path_view`.
    """
    document = results.document
    waiting = stored_waiting(results)
    numbers = matching_regions(waiting, wanted)
    if len(numbers) > 1:
        raise FfmError(
            f"{wanted!r} is part of several regions' names: {listed_regions(waiting, numbers)}. Give a number."
        )
    number = numbers[0]
    region = waiting.regions[number]
    run = run_path(results)
    found = find_regions(document, run, waiting.regions)
    seconds = found.seconds_by_part(number, run)
    return RegionView(
        application=document.application,
        wall_s=document.wall_s,
        region=region_row(waiting, number),
        parts=[
            Share(name, float(seconds[part]), percent_of(float(seconds[part]), waiting.length_s))
            for part, name in _PARTS.items()
            if seconds[part] > 0
        ],
        bounds=RegionBounds(region.faster_bound_s, region.even_bound_s, region.passed_on_s),
        lines=_lines(found, number),
        gains=[_gain(results, run, found, [number], factor) for factor in (TENTH, 2.0, math.inf)],
        sites=[Where(site + 1, command(f"site {site + 1}", words)) for site in region.sites],
        command=command(f"path --if {number + 1}=2x", words),
    )


def _lines(found: Regions, number: int) -> list[LineRow]:
    """Return the lines of a region with most samples."""
    lines, file = found.lines[number], found.regions[number].place.rpartition(":")[0]
    whole = sum(lines.values())
    most = sorted(lines.items(), key=lambda item: (-item[1], item[0]))[:LISTED_LINES]
    return [LineRow(file, line, each / NANOSECONDS, 100 * each / whole) for line, each in most]


_PARTS = {
    Part.START: "CPU work",
    Part.WORK: "CPU work",
    Part.CALL: "the call itself",
    Part.GPU: "GPU work",
    Part.REST: "overhead of waiting and launching",
    Part.UNKNOWN: "waiting for something unknown",
}


def _gain(results: Results, run: RunPath, found: Regions, numbers: list[int], factor: float) -> Gain:
    on_path_s = found.less_on_path_s(numbers, factor)
    return replayed_gain(results, found.faster(numbers, factor, run), factor, on_path_s)
