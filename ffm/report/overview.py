"""The overview: what could be saved, by folds, sequences, single points (dissertation, Figure 5.3 left)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ffm.report.commands import command, stdin_of
from ffm.report.downloads import Download, download, watch_notes
from ffm.report.kept.costly_waits import CostlyWaits, costly_waits
from ffm.report.not_measured import NotMeasured, not_measured
from ffm.report.notes import sentence, unknown_lines
from ffm.report.numbers import HIDDEN_BELOW_PERCENT, Estimator, Saving, Scale, plural
from ffm.report.portion import portion_sentence
from ffm.report.unproved import UnprovedWaits, unproved_waits, why_nothing, worth_proving
from ffm.report.waiting.shares import Share, shares_of
from ffm.results.documents.analysis import Analysis, Group, Matching
from ffm.results.places import Place, place, reached_from
from ffm.results.variation import VARIES, delayed_by_chance_s


@dataclass(frozen=True, slots=True)
class Row:
    """One fix. `number` is a sequence's number or a single point's site. `command` opens its own screen.

    `operations` is the length of a sequence, otherwise the number of sites.
    """

    name: str
    number: int | None
    saving: Saving
    operations: int
    calls: int
    conditional: bool
    command: str


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of one kind, largest saving first. `hidden` counts the rows left out because they are below the limit."""

    title: str
    meaning: str
    rows: list[Row]
    hidden: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What measuring cost: a stage's wall time, and its ratio to the bare program's."""

    stage: str
    wall_s: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Seconds of operations that could and could not be matched between the runs, with the reasons."""

    matched_s: float
    unmatched_s: float
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class PartialDownload:
    """A site that downloads more than the CPU touches."""

    where: Place
    download: Download


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on the screen of `ffm report`."""

    application: str
    command: list[str]
    stdin: str
    """The file that it read from its standard input; empty if it read none."""
    origin: str
    wall_s: float
    estimator: Estimator
    hidden_below_percent: float
    stages: list[Cost]
    folds: Section
    sequences: Section
    points: Section
    matching: Unmatched | None
    everything: Saving | None
    """What fixing all problems together saves; no row, and no sum of rows, saves more."""
    without_equal_bytes: Saving | None
    """The same without uploads of equal bytes that may be different data; None if there are none."""
    explained_percent: float | None
    """How much of the time of the threads that called the driver stage 2 explains; None without a trace."""
    path: list[Share]
    """The critical path by kind of time; empty without a trace."""
    downloads: list[PartialDownload]
    """Sites that download far more than the CPU touches."""
    costly_waits: CostlyWaits
    """Sites with waits that are not problems but cost time."""
    unproved: list[UnprovedWaits]
    """Sites of a single trace, of which nothing is proved."""
    unproved_hidden: int
    """How many more save less than the limit even at most."""
    not_measured: list[NotMeasured]
    """Sites that were left out of the measurement."""
    nothing: str
    """Why there is nothing to fix, shown or hidden; empty if there is something."""
    notes: list[str]
    unknown_lines: str
    """Why no source lines are known, and what to do; empty if some are."""
    portion: str
    """Which portion of the run was measured, and what is assumed of the rest; empty for a whole run."""
    results: str
    """The option that names these results, as the user gave it, for the commands; otherwise empty."""


def overview(
    analysis: Analysis, estimator: Estimator = "carry", *, show_all: bool = False, results: str = ""
) -> Overview:
    """Lay out an analysis; rows are sorted and filtered by the given estimator."""
    scale = Scale(analysis.wall_s)

    unproved = unproved_waits(analysis)
    shown = unproved if show_all else worth_proving(unproved, scale)
    folds, sequences, points = _sections(analysis, scale, estimator, results, show_all=show_all)
    return Overview(
        application=analysis.application,
        command=analysis.command,
        stdin=stdin_of(analysis.run),
        origin=analysis.origin,
        wall_s=analysis.wall_s,
        estimator=estimator,
        hidden_below_percent=0.0 if show_all else HIDDEN_BELOW_PERCENT,
        stages=[Cost(cost.stage, cost.wall_s, cost.ratio) for cost in analysis.costs],
        folds=folds,
        sequences=sequences,
        points=points,
        matching=_matching(analysis.matching),
        everything=scale.known_saving(analysis.everything),
        without_equal_bytes=scale.known_saving(analysis.without_equal_bytes),
        explained_percent=None if analysis.explained is None else 100 * analysis.explained.share,
        path=[] if analysis.path is None else shares_of(analysis.path),
        downloads=_partial_downloads(analysis),
        costly_waits=costly_waits(analysis, show_all=show_all),
        unproved=shown,
        unproved_hidden=len(unproved) - len(shown),
        not_measured=not_measured(analysis),
        nothing="" if analysis.folds or analysis.sequences or analysis.points else why_nothing(analysis),
        notes=[
            *map(sentence, analysis.notes),
            *watch_notes(analysis, results),
            *_chance_notes(analysis),
            *_delay_notes(analysis),
        ],
        unknown_lines=unknown_lines(analysis),
        portion=portion_sentence(analysis),
        results=results,
    )


def _sections(
    analysis: Analysis, scale: Scale, estimator: Estimator, results: str, *, show_all: bool
) -> tuple[Section, Section, Section]:
    """Return the folds, sequences and single points, sorted and filtered by the given estimator."""

    def section(title: str, meaning: str, rows: list[Row]) -> Section:
        ordered = sorted(rows, key=lambda row: -row.saving.seconds(estimator))
        shown = [row for row in ordered if show_all or scale.shows(row.saving, estimator)]
        return Section(title, meaning, shown, len(ordered) - len(shown))

    apart = reached_from(analysis, (point.sites[0] for point in analysis.points))
    return (
        section(
            "Folds",
            "every call of one function, whoever makes it",
            [_fold_row(scale, fold, results) for fold in analysis.folds],
        ),
        section(
            "Sequences",
            "operations between two needed synchronizations, fixed together",
            [_sequence_row(analysis, scale, number, results) for number in range(1, len(analysis.sequences) + 1)],
        ),
        section(
            "Single points",
            "one call at one place, reached by one call stack",
            [_point_row(analysis, scale, point, apart, results) for point in analysis.points],
        ),
    )


def _partial_downloads(analysis: Analysis) -> list[PartialDownload]:
    """Return the sites that download more than is used, largest saving first."""
    found = []
    for index, site in enumerate(analysis.sites):
        use = download(site.download)
        if use is not None and use.partial:
            found.append(PartialDownload(place(analysis, index), use))
    return sorted(found, key=lambda one: -one.download.saving_s)


def _matching(matching: Matching | None) -> Unmatched | None:
    if matching is None:
        return None
    reasons = [
        f"Site {one.site + 1}: {one.operations:,} of its operations in stage 2 have no counterpart in stage 3, and "
        "count as needed."
        for one in matching.unmatched
    ]
    return Unmatched(matching.matched_s, matching.unmatched_s, reasons)


NAMED_SITES = 8
"""So many sites are named in a note, those with most problems first."""


def _chance_notes(analysis: Analysis) -> list[str]:
    """Return a note if several threads make calls of which some are problems: which ones may be chance."""
    found = [] if analysis.matching is None else analysis.matching.by_chance
    if not found:
        return []
    named = sorted(found, key=lambda one: -one.operations)[:NAMED_SITES]
    sites = ", ".join(f"{one.operations:,} of {one.of:,} at site {one.site + 1}" for one in named)
    more = f", and some at {plural(len(found) - len(named), 'other site')}" if len(found) > len(named) else ""
    return [
        f"Problems in calls that several threads make: {sites}{more}. Which thread makes which call can differ "
        "from run to run, so it is known how many the problems are, but not which; the intervals allow for that."
    ]


def _delay_notes(analysis: Analysis) -> list[str]:
    """Return a note if all intervals begin lower because the traced run waited for a processor."""
    delayed_s = delayed_by_chance_s(analysis.costs)
    if delayed_s < VARIES * analysis.wall_s:
        return []
    return [
        f"Stage 2 waited for a processor {Scale(analysis.wall_s).seconds(delayed_s)} longer than another stage did, "
        "perhaps in the very waits that fixes remove: every interval begins lower by that. Measure again while "
        "nothing else runs."
    ]


def _fold_row(scale: Scale, fold: Group, results: str) -> Row:
    return Row(
        name=fold.name,
        number=None,
        saving=scale.saving(fold.benefit),
        operations=len(fold.sites),
        calls=fold.count,
        conditional=fold.conditional,
        command=command(f"fold {shlex.quote(fold.name)}", results),
    )


def _sequence_row(analysis: Analysis, scale: Scale, number: int, results: str) -> Row:
    sequence = analysis.sequences[number - 1]
    start = place(analysis, sequence.operations[0].site)
    return Row(
        name=f"{start.call} {start.place}",
        number=number,
        saving=scale.saving(sequence.benefit),
        operations=len(sequence.operations),
        calls=sum(operation.count for operation in sequence.operations),
        conditional=any(
            verdict.conditional
            for operation in sequence.operations
            for verdict in analysis.sites[operation.site].synchronization
        ),
        command=command(f"sequence {number}", results),
    )


def _point_row(analysis: Analysis, scale: Scale, point: Group, apart: dict[int, str], results: str) -> Row:
    where = place(analysis, point.sites[0])
    return Row(
        name=f"{where.call} {where.place}{apart.get(point.sites[0], '')}",
        number=where.site,
        saving=scale.saving(point.benefit),
        operations=len(point.sites),
        calls=point.count,
        conditional=point.conditional,
        command=command(f"site {where.site}", results),
    )
