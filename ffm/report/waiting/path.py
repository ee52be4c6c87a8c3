"""What a run waits for: the views of `ffm path`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ffm.errors import FfmError
from ffm.model.estimators.faster import Faster
from ffm.model.waiting.path import Part
from ffm.report.commands import command
from ffm.report.numbers import HIDDEN_BELOW_PERCENT
from ffm.report.waiting.shares import Share, shares_of
from ffm.results.documents.analysis import PathShares
from ffm.results.documents.waiting import Region, UsedGpu, Waiting
from ffm.results.stored import Results
from ffm.results.waiting.regions import Regions, find_regions
from ffm.results.waiting.run_path import RunPath, fixed_path, run_path, stored_waiting
from ffm.results.waiting.summary import TENTH, no_more_than_the_path, summarize

WHOLE_GPU = "GPU"
"""The name for all of the GPU's work."""

LISTED_REGIONS = 20
"""Regions that are listed unless all are asked for."""

NOT_SUBTRACTED = (
    "What pinning memory costs is not subtracted. A synchronization that comes later waits within the CPU work before "
    "the first use, and counts as that."
)

LISTED_LINES = 10
"""Lines of a sampled region that are listed."""

LISTED_BLAMED = 3
"""Regions that are listed as those most to blame."""

TOLD = "threads and processes that came early to a barrier, a collective operation or a message"
_NS = 1e9
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
class RegionRow:
    """A region. `number` names it on the command line. `path_s` is the part of `total_s` on the path.

    `kind` is `CPU`, `call`, `kernel` or `transfer`. `tenth_s` is what the run would save if it were 10 % faster, and
    `gone_s` if it were gone; None if that was not tried. `blamed_s` is, for GPU work, how long the CPU waited for it,
    otherwise how long the GPU was idle meanwhile. `threads_s` is how long other threads waited for it.
    """

    number: int
    kind: str
    name: str
    place: str
    count: int
    total_s: float
    path_s: float
    path_percent: float
    blamed_s: float
    threads_s: float
    tenth_s: float | None
    gone_s: float | None


@dataclass(frozen=True, slots=True)
class PatternRow:
    """How often a pattern of waiting occurred, and for how long."""

    name: str
    meaning: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GpuRow:
    """How a process used a GPU from its first work there to its last. Seconds.

    `device` is the GPU's number in the process, from 0; None if it is not known, so that all of them count as one.
    `idle_s` is without any work, `compute_idle_s` without a kernel, `unhidden_s` with transfers alone, and
    `copy_overlap_s` with transfers beside kernels.
    """

    process: int
    device: int | None
    lasting_s: float
    idle_s: float
    compute_idle_s: float
    unhidden_s: float
    copy_overlap_s: float


@dataclass(frozen=True, slots=True)
class PathView:
    """What a run waits for. `length_s` is the time from the first traced call to the end of the run's last work.

    `agreed_percent` is the share of the path that is the same whatever is inferred about the GPU; None if a profiler
    recorded the GPU's times. With `--fixed` everything is as after all fixes: `saved_s` is what they save together, and
    `wall_s` what the run would then take.
    """

    application: str
    origin: str
    wall_s: float
    length_s: float
    saved_s: float | None
    agreed_percent: float | None
    shares: list[Share]
    regions: list[RegionRow]
    hidden: int
    waited_for: list[RegionRow]
    """The GPU work that the CPU waited for longest."""
    idle_for: list[RegionRow]
    """What the CPU did longest while the GPU was idle."""
    threads_for: list[RegionRow]
    """What threads did that others of their team waited for longest."""
    patterns: list[PatternRow]
    gpu: list[GpuRow]
    notes: list[str]
    results: str


@dataclass(frozen=True, slots=True)
class Where:
    """One call site of a region, by its number, and the command that shows it."""

    site: int
    command: str


@dataclass(frozen=True, slots=True)
class RegionBounds:
    """What a region can save while everything else stays as it is, by the waits that it causes. Seconds.

    `faster_s` is until whoever waits least for it waits no more, `even_s` what sharing it evenly among the threads of
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


def path_view(results: Results, *, show_all: bool = False, words: str = "") -> PathView:
    """Lay out the critical path of a run; `words` is the option that names its results, as the user gave it.

    Raises:
        FfmError: The results contain totals instead of single operations.
        DocumentError: The timeline next to the document cannot be read.
    """
    waiting, path = stored_waiting(results), results.document.path
    assert path is not None, "there is a path"
    agreed = None if path.agreed is None else 100 * path.agreed
    listed = _shown(waiting, show_all)
    rows = [_row(waiting, number) for number in range(listed)]
    return _laid_out(results, waiting, path, rows, results.document.wall_s, words, agreed)


def fixed_view(results: Results, *, show_all: bool = False, words: str = "") -> PathView:
    """Lay out the critical path of a run as it would be if all of its problems were fixed. Regions have the numbers
    that they have in `path_view`.

    Raises:
        FfmError: The run has no problems; or as for `path_view`.
    """
    document = results.document
    waiting, replay = stored_waiting(results), results.estimates.replay
    if document.unproved:
        raise FfmError(
            f"nothing is proved about the waits of {document.application}, so no fixes are known. "
            "Measure the program with `ffm run`, or ask with `ffm path --if`."
        )
    assert replay is not None, "there is a path"
    if not results.timeline.problem.any():
        raise FfmError(f"{document.application} has no problem that could be fixed: `ffm path` shows its path.")
    run = fixed_path(replay.fixed(), replay)
    fixed = summarize(document, run)
    saved_s = waiting.length_s - fixed.length_s
    wall_s = max(document.wall_s - saved_s, 0.0)
    numbers = {_key(region): number for number, region in enumerate(waiting.regions, 1)}

    def numbered(rows: list[RegionRow]) -> list[RegionRow]:
        return [replace(row, number=numbers.get((row.kind, row.name, row.place), 0)) for row in rows]

    rows = [_row(fixed, index) for index in range(_shown(fixed, show_all))]
    view = _laid_out(results, fixed, run.shares(), numbered(rows), wall_s, words)
    return replace(
        view,
        saved_s=saved_s,
        waited_for=numbered(view.waited_for),
        idle_for=numbered(view.idle_for),
        threads_for=numbered(view.threads_for),
        notes=[NOT_SUBTRACTED, *view.notes],
    )


def _key(region: Region) -> tuple[str, str, str]:
    return region.kind, region.name, region.place


def _shown(waiting: Waiting, show_all: bool) -> int:
    """Return how many regions are listed."""
    if show_all:
        return len(waiting.regions)
    length_s = waiting.length_s
    worth = [_percent(region.path_s, length_s) >= HIDDEN_BELOW_PERCENT for region in waiting.regions]
    return min(sum(worth), LISTED_REGIONS)


def _percent(seconds: float, length_s: float) -> float:
    return 100 * seconds / length_s if length_s > 0 else 0.0


def _laid_out(
    results: Results,
    waiting: Waiting,
    path: PathShares,
    rows: list[RegionRow],
    wall_s: float,
    words: str,
    agreed_percent: float | None = None,
) -> PathView:
    return PathView(
        application=results.document.application,
        origin=results.document.origin,
        wall_s=wall_s,
        length_s=waiting.length_s,
        saved_s=None,
        agreed_percent=agreed_percent,
        shares=shares_of(path),
        regions=rows,
        hidden=len(waiting.regions) - len(rows),
        waited_for=_blamed(waiting, ("kernel", "transfer")),
        idle_for=_blamed(waiting, ("CPU", "call")),
        threads_for=_most(waiting, [region.threads_s for region in waiting.regions]),
        patterns=_pattern_rows(waiting),
        gpu=[_gpu_row(use) for use in waiting.gpu],
        notes=_notes(waiting),
        results=words,
    )


def region_view(results: Results, wanted: str, words: str = "") -> RegionView:
    """Lay out one region, named by its number or its words.

    Raises:
        FfmError: No region, or more than one, has this name; or as for `path_view`.
    """
    document = results.document
    waiting = stored_waiting(results)
    numbers = _matching(waiting, wanted)
    if len(numbers) > 1:
        raise FfmError(f"{wanted!r} is part of several regions' names: {_listed(waiting, numbers)}. Give a number.")
    number = numbers[0]
    region = waiting.regions[number]
    run = run_path(results)
    found = find_regions(document, run)
    lasting = (run.path.end - run.path.begin) / _NS * found.shares_of_pieces(number, run.path)
    seconds = np.bincount(run.path.part, weights=lasting, minlength=max(Part) + 1)
    return RegionView(
        application=document.application,
        wall_s=document.wall_s,
        region=_row(waiting, number),
        parts=[
            Share(name, float(seconds[part]), _percent(float(seconds[part]), waiting.length_s))
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
    return [LineRow(file, line, each / _NS, 100 * each / whole) for line, each in most]


def change_view(results: Results, changes: Sequence[str]) -> ChangeView:
    """Replay a run with changes, each written as `REGION=FACTORx` or `REGION=gone`.

    Raises:
        FfmError: A change is not written like that, or names no region; or as for `path_view`.
    """
    wanted = [_change(text) for text in changes]
    waiting, document = stored_waiting(results), results.document
    named = [(_matching(waiting, name), factor) for name, factor in wanted]
    taken = set[int]()
    for numbers, _ in named:
        if again := taken.intersection(numbers):
            raise FfmError(f"{_listed(waiting, sorted(again))} is changed twice: name each region once.")
        taken.update(numbers)
    run = run_path(results)
    found = find_regions(document, run)
    faster, listed, path_s = Faster.nothing(len(run.timeline)), [], 0.0
    for numbers, factor in named:
        faster = faster.also(found.faster(numbers, factor, run))
        listed += [Change(_row(waiting, number), _told(factor)) for number in numbers]
        path_s += found.less_on_path_s(numbers, factor)
    only = wanted[0][1] if len({factor for _, factor in wanted}) == 1 else math.inf
    gain = _replayed(results, run, faster, only, path_s)
    return ChangeView(document.application, document.wall_s, listed, path_s, gain)


_PARTS = {
    Part.START: "CPU work",
    Part.WORK: "CPU work",
    Part.CALL: "the call itself",
    Part.GPU: "GPU work",
    Part.REST: "overhead of waiting and launching",
    Part.UNKNOWN: "waiting for something unknown",
}


def _row(waiting: Waiting, number: int) -> RegionRow:
    region = waiting.regions[number]
    return RegionRow(
        number=number + 1,
        kind=region.kind,
        name=region.name,
        place=region.place,
        count=region.count,
        total_s=region.total_s,
        path_s=region.path_s,
        path_percent=_percent(region.path_s, waiting.length_s),
        blamed_s=region.blamed_s,
        threads_s=region.threads_s,
        tenth_s=region.tenth_s,
        gone_s=region.gone_s,
    )


def _blamed(waiting: Waiting, kinds: tuple[str, ...]) -> list[RegionRow]:
    """Return the regions of some kinds that are most to blame."""
    return _most(waiting, [one.blamed_s if one.kind in kinds else 0.0 for one in waiting.regions])


def _most(waiting: Waiting, seconds: list[float]) -> list[RegionRow]:
    """Return the regions with the most seconds."""
    ordered = sorted((number for number, each in enumerate(seconds) if each > 0), key=lambda number: -seconds[number])
    return [_row(waiting, number) for number in ordered[:LISTED_BLAMED]]


def _told(factor: float) -> float | None:
    return None if math.isinf(factor) else factor


def _gain(results: Results, run: RunPath, found: Regions, numbers: list[int], factor: float) -> Gain:
    less_s = found.less_on_path_s(numbers, factor)
    return _replayed(results, run, found.faster(numbers, factor, run), factor, less_s)


def _replayed(results: Results, run: RunPath, faster: Faster, factor: float, on_path_s: float) -> Gain:
    """Replay the run."""
    replayed = results.estimates.changed(faster)
    assert replayed is not None, "there is a path"
    likely_s = no_more_than_the_path(run, replayed.likely_s, faster, on_path_s)
    return Gain(_told(factor), likely_s, min(replayed.low_s, likely_s), replayed.high_s)


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


def _matching(waiting: Waiting, wanted: str) -> list[int]:
    """Return the regions with a number, else those with a name or place, else those whose names contain the words."""
    regions = waiting.regions
    if wanted == WHOLE_GPU:
        numbers = [number for number, region in enumerate(regions) if region.kind in ("kernel", "transfer")]
    elif wanted.isdecimal():
        numbers = [int(wanted) - 1] if 1 <= int(wanted) <= len(regions) else []
    else:
        names = [region.full_name for region in regions]
        exact = [number for number, region in enumerate(regions) if wanted in (region.name, region.place)]
        exact = [number for number, name in enumerate(names) if name == wanted] or exact
        numbers = exact or [number for number, name in enumerate(names) if wanted in name]
    if not numbers:
        raise FfmError(
            f"no region has the number or name {wanted!r}: this run has {len(regions)} regions; `ffm path --all` lists "
            "them."
        )
    return numbers


def _listed(waiting: Waiting, numbers: Sequence[int]) -> str:
    first = "; ".join(f"{number + 1} ({waiting.regions[number].full_name})" for number in numbers[:5])
    return first + (f"; and {len(numbers) - 5} more" if len(numbers) > 5 else "")


def _pattern_rows(waiting: Waiting) -> list[PatternRow]:
    uneven = TOLD if waiting.told else "threads that ended before the last of those joined together"
    on_kernels = f"waited for GPU work that was not over; {waiting.early_on_kernels_s:.3f} s of it while kernels ran"
    rows = [
        ("early synchronization", on_kernels, waiting.early),
        ("late synchronization", "a synchronization for work that was over", waiting.late),
        ("polling", "queries that found work unfinished, up to the one that did not", waiting.polling),
        ("synchronous offload", "work that the CPU waited for as soon as it had started it", waiting.offload),
        ("late transfer", "a kernel could only begin after a transfer that no kernel hid", waiting.late_transfer),
        ("consecutive transfers", "copies the same way as the one just before, with their calls", waiting.consecutive),
        ("launch delay", "from a launch to its kernel on an idle GPU", waiting.launch_delay),
        ("uneven threads", uneven, waiting.uneven),
    ]
    return [PatternRow(name, meaning, found.count, found.seconds) for name, meaning, found in rows if found.count]


def _gpu_row(use: UsedGpu) -> GpuRow:
    return GpuRow(
        process=use.process + 1,
        device=use.device,
        lasting_s=use.lasting_s,
        idle_s=use.idle_s,
        compute_idle_s=use.compute_idle_s,
        unhidden_s=use.unhidden_s,
        copy_overlap_s=use.copy_overlap_s,
    )


def _notes(waiting: Waiting) -> list[str]:
    notes: list[str] = []
    if waiting.told:
        return notes
    if waiting.processes > 1:
        notes.append(
            "The path is that of the process that ended last: what processes wait for from each other is not recorded."
        )
    if waiting.threads > waiting.processes:
        inferred = "Which thread goes on when another has waited is inferred"
        if not waiting.starts_recorded:
            inferred = "Which thread started, joined and followed which is inferred"
        notes.append(f"{inferred} from their times. Other waits between threads count as CPU work.")
    return notes
