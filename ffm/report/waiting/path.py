"""What a run waits for: the views of `ffm path`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ffm.errors import FfmError
from ffm.report.numbers import HIDDEN_BELOW_PERCENT, Scale, plural
from ffm.report.waiting.rows import (
    GpuRow,
    PatternRow,
    RegionRow,
    gpu_row,
    most_blamed,
    pattern_rows,
    percent_of,
    region_row,
    rows_with_most,
)
from ffm.report.waiting.shares import Share, shares_of
from ffm.results.documents.analysis import PathShares
from ffm.results.documents.waiting import GuessedWork, Region, Waiting
from ffm.results.stored import Results
from ffm.results.waiting.run_path import fixed_path, stored_waiting
from ffm.results.waiting.summary import summarize

LISTED_REGIONS = 20
"""Regions that are listed unless all are asked for."""

WORTH_SAYING = 0.01
"""If what is a guess may be wrong by less than this share of the path, it does not matter."""

NOT_SUBTRACTED = (
    "The path leaves out what pinning memory costs, which is subtracted from the saving. A synchronization that comes "
    "later waits within the CPU work before the first use, and counts as that."
)


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
    rows = [region_row(waiting, number) for number in range(listed)]
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
    everything = document.everything
    saved_s = waiting.length_s - fixed.length_s if everything is None else everything.expected_s
    wall_s = max(document.wall_s - saved_s, 0.0)
    numbers = {_key(region): number for number, region in enumerate(waiting.regions, 1)}

    def numbered(rows: list[RegionRow]) -> list[RegionRow]:
        return [replace(row, number=numbers.get((row.kind, row.name, row.place), 0)) for row in rows]

    rows = [region_row(fixed, index) for index in range(_shown(fixed, show_all))]
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
    worth = [percent_of(region.path_s, length_s) >= HIDDEN_BELOW_PERCENT for region in waiting.regions]
    return min(sum(worth), LISTED_REGIONS)


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
        waited_for=most_blamed(waiting, ("kernel", "transfer")),
        idle_for=most_blamed(waiting, ("CPU", "call")),
        threads_for=rows_with_most(waiting, [region.threads_s for region in waiting.regions]),
        patterns=pattern_rows(waiting, Scale(wall_s)),
        gpu=[gpu_row(use) for use in waiting.gpu],
        notes=_notes(waiting, Scale(wall_s)),
        results=words,
    )


def _notes(waiting: Waiting, scale: Scale) -> list[str]:
    notes: list[str] = []
    if waiting.guessed is not None and (note := _guess_note(waiting.guessed, waiting.length_s, scale)):
        notes.append(note)
    if waiting.waits_recorded:
        return notes
    if waiting.processes > 1:
        notes.append(
            "The path is that of the process that ended last: what processes wait for from each other is not recorded."
        )
    if waiting.threads > waiting.processes:
        inferred = "Which thread goes on when another has waited is inferred"
        if not waiting.starts_recorded:
            inferred = "Which thread started, joined and followed which is inferred"
        recorded = " Waits for locks and the like of the C library are recorded." if waiting.locks_recorded else ""
        notes.append(f"{inferred} from their times.{recorded} Other waits between threads count as CPU work.")
    return notes


def _guess_note(guessed: GuessedWork, length_s: float, scale: Scale) -> str:
    """Return what to say about work whose time nothing shows; empty if it hardly matters."""
    if not guessed.count or (guessed.most_s is not None and guessed.most_s - guessed.least_s < WORTH_SAYING * length_s):
        return ""
    between = f"at least {scale.seconds(guessed.least_s)}"
    if guessed.most_s is not None:
        between = f"{scale.seconds(guessed.least_s)} to {scale.seconds(guessed.most_s)}"
    return (
        f"Neither waits nor measurements show how long {plural(guessed.count, 'piece')} of GPU work took: together "
        f"{between}. The path takes {scale.seconds(guessed.likely_s)} for it, which is a guess."
    )
