"""What a run would save if some of its regions were faster: the view of `ffm path --if`."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ffm.errors import FfmError
from ffm.model.estimators.faster import Faster
from ffm.report.waiting.rows import RegionRow, region_row
from ffm.report.waiting.selection import listed_regions, matching_regions
from ffm.results.documents.waiting import Waiting
from ffm.results.stored import Results
from ffm.results.waiting.regions import find_regions
from ffm.results.waiting.run_path import run_path, stored_waiting
from ffm.results.waiting.summary import within_bounds

_CHANGE = re.compile(r"(?P<region>.+)=(?P<factor>\d+(\.\d+)?)x?", re.DOTALL)

_GONE = "gone"


@dataclass(frozen=True, slots=True)
class Gain:
    """What the run would save if something became faster by a factor; None stands for its removal. Seconds."""

    factor: float | None
    seconds: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Change:
    """A region that becomes faster; `factor` None stands for its removal."""

    region: RegionRow
    factor: float | None


@dataclass(frozen=True, slots=True)
class ChangeView:
    """What the run would save if some regions were faster: replayed with all of these changes together. Seconds.

    `path_s` is what the changes take away from the critical path as it is: at most that much, and usually less, because
    another path becomes critical.
    """

    application: str
    wall_s: float
    changes: list[Change]
    path_s: float
    gain: Gain


def change_view(results: Results, changes: Sequence[str]) -> ChangeView:
    """Replay a run with changes, each written as `REGION=FACTORx` or `REGION=gone`.

    Raises:
        FfmError: A change is not written like that, or names no region; or as for `path_view`.
    """
    wanted = [_change(text) for text in changes]
    waiting, document = stored_waiting(results), results.document
    named = [(matching_regions(waiting, name), factor) for name, factor in wanted]
    taken = set[int]()
    for numbers, _ in named:
        if again := taken.intersection(numbers):
            raise FfmError(f"{listed_regions(waiting, sorted(again))} is changed twice: name each region once.")
        taken.update(numbers)
    faster, path_s = _faster_parts(results, waiting, named)
    listed = [
        Change(region_row(waiting, number), factor_shown(factor)) for numbers, factor in named for number in numbers
    ]
    only = wanted[0][1] if len({factor for _, factor in wanted}) == 1 else math.inf
    gain = replayed_gain(results, faster, only, path_s)
    return ChangeView(document.application, document.wall_s, listed, path_s, gain)


def _faster_parts(results: Results, waiting: Waiting, named: Sequence[tuple[list[int], float]]) -> tuple[Faster, float]:
    """Return what takes less time if regions, given by their numbers, become faster by factors, and the seconds of the
    path as it is that this takes away. The path itself, which is as large as the run, is released.
    """
    run = run_path(results)
    found = find_regions(results.document, run, waiting.regions)
    changes = (found.faster(numbers, factor, run) for numbers, factor in named)
    path_s = sum(found.less_on_path_s(numbers, factor) for numbers, factor in named)
    return functools.reduce(Faster.also, changes), path_s


def factor_shown(factor: float) -> float | None:
    """Return a factor as views tell it: None for a removal."""
    return None if math.isinf(factor) else factor


def replayed_gain(results: Results, faster: Faster, factor: float, on_path_s: float) -> Gain:
    """Return what the run saves with faster parts; `on_path_s` is what they take away from the path as it is."""
    replayed = results.estimates.changed(faster)
    assert replayed is not None and results.work is not None, "there is a path"
    likely_s = within_bounds(results.work, replayed.likely_s, faster, on_path_s)
    return Gain(factor_shown(factor), likely_s, min(replayed.low_s, likely_s), max(replayed.high_s, likely_s))


def _change(text: str) -> tuple[str, float]:
    """Read `REGION=2x`."""
    name, _, word = text.rpartition("=")
    if name and word == _GONE:
        return name, math.inf
    match = _CHANGE.fullmatch(text)
    if match is None or float(match["factor"]) <= 1:
        raise FfmError(
            f"{text!r} is no change: write REGION=2x for a region that is twice as fast, with a factor above 1, or "
            "REGION=gone."
        )
    return match["region"], float(match["factor"])
