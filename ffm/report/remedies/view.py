"""The remedies of an analysis, as the screen, the JSON and SARIF show them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ffm.remedy.fitness import Fitness, fitness
from ffm.report.findings import site_saving
from ffm.report.kept.costly_waits import CostlyWaits, costly_waits
from ffm.report.notes import unknown_lines
from ffm.report.numbers import Estimator, Saving, Scale, chosen_estimator
from ffm.report.remedies.advice import identify_remedies
from ffm.report.remedies.problem_sites import problem_sites
from ffm.report.remedies.remedy import Remedy, RemedyKind
from ffm.report.remedies.uncorrected import why_not
from ffm.report.source_lines import SourceLines
from ffm.report.unproved import NOT_FOUND, why_nothing
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.places import Place, StackFrame, own_line, place, reached_from, stack_frames

OWN_LINE = "line of the program"
"""The role of the line that leads to a call in a library's header, which no program changes."""


@dataclass(frozen=True, slots=True)
class RemedyPlace:
    """A place that must change. `buffer` is the program's name for the memory there, and `source` is the line of source
    code if the file is available; otherwise they are empty.
    """

    role: str
    where: Place
    buffer: str
    source: str


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What to change for one call site. `number` is the same whether or not smaller savings are shown. `keep` lists
    synchronizations that must stay.

    `automatic` lists the options with which `ffm apply-remedy` does it. If there are none, `not_automatic` says why; it
    is empty for imported results.
    """

    number: int
    kind: str
    where: Place
    reached: str
    """` from solver.cu:57` if another remedy has the same place, or the place is in a library's header; otherwise
    empty.
    """
    occurrences: int
    of: int
    saving: Saving
    steps: list[str]
    places: list[RemedyPlace]
    keep: list[Place]
    stack: list[StackFrame]
    automatic: list[str]
    not_automatic: str


@dataclass(frozen=True, slots=True)
class RemediesView:
    """Everything on the screen of `ffm remedies`, sorted by one estimator. `hidden` counts the remedies that save less
    than 0.1 % of the run. `results` is the option that names these results, as the user gave it, or empty.
    """

    application: str
    wall_s: float
    estimator: Estimator
    remedies: list[RemedyView]
    hidden: int
    results: str
    costly_waits: CostlyWaits
    """Waits that are not problems but cost time."""
    everything: Saving | None = None
    """What fixing all problems together saves; None if the document does not say."""
    without_equal_bytes: Saving | None = None
    """The same without uploads of equal bytes that may be different data; None if there are none."""
    unknown_lines: str = ""
    """Why no source lines are known, and what to do; empty if some are."""
    nothing: str = NOT_FOUND
    """Why there are no remedies, if there are none."""


def remedies_view(
    analysis: Analysis,
    estimator: Estimator | None = None,
    *,
    show_all: bool = False,
    results: str = "",
    own: bool = False,
) -> RemediesView:
    """Lay out the remedies of an analysis, sorted and filtered by an estimator; the default is the document's own.

    `own` is whether this user measured it, so that its source files may be read wherever they are.

    Raises:
        FfmError: A replay is requested from a document that has none.
    """
    chosen = chosen_estimator(analysis, estimator)
    fitting = fitness(analysis)
    scale = Scale(analysis.wall_s)
    with_savings = [(one, _saving(analysis, one)) for one in identify_remedies(problem_sites(analysis, chosen))]
    shown = [
        (number, remedy, saving)
        for number, (remedy, saving) in enumerate(with_savings, 1)
        if show_all or scale.shows(saving, chosen)
    ]
    apart = reached_from(analysis, (remedy.site for _, remedy, _ in shown))
    sources = SourceLines(own=own)
    views = [
        _remedy_view(analysis, number, remedy, saving, fitting.get(remedy.site), apart.get(remedy.site, ""), sources)
        for number, remedy, saving in shown
    ]
    return RemediesView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=chosen,
        remedies=views,
        hidden=len(with_savings) - len(shown),
        results=results,
        costly_waits=costly_waits(analysis, show_all=show_all),
        everything=scale.known_saving(analysis.everything),
        without_equal_bytes=scale.known_saving(analysis.without_equal_bytes),
        unknown_lines=unknown_lines(analysis),
        nothing=why_nothing(analysis),
    )


def _remedy_view(
    analysis: Analysis,
    number: int,
    remedy: Remedy,
    saving: Saving,
    fit: Fitness | None,
    reached: str,
    sources: SourceLines,
) -> RemedyView:
    """Lay out one remedy; `fit` is what can be done automatically, and `reached` tells apart equal places."""
    return RemedyView(
        number=number,
        kind=remedy.kind,
        where=place(analysis, remedy.site),
        reached=reached,
        occurrences=remedy.occurrences,
        of=remedy.of,
        saving=saving,
        steps=list(remedy.steps),
        places=_places(analysis, remedy, sources),
        keep=[place(analysis, kept) for kept in remedy.keep],
        stack=stack_frames(analysis, remedy.site),
        automatic=[f"--{option}" for option in fit.corrections] if fit is not None else [],
        not_automatic=why_not(fit.why_not) if fit is not None and fit.why_not is not None else "",
    )


def _places(analysis: Analysis, remedy: Remedy, sources: SourceLines) -> list[RemedyPlace]:
    """Return the places in the source that a remedy changes, with their lines."""
    own = own_line(analysis, remedy.site)
    places = [] if own is None else [RemedyPlace(OWN_LINE, own, "", sources.line(own.file, own.line))]
    for changed in remedy.places:
        where, buffer = place(analysis, changed.site), analysis.sites[changed.site].buffer
        if changed.site != remedy.site and (own := own_line(analysis, changed.site)) is not None:
            where, buffer = own, ""  # the library's own name for the memory says nothing
        places.append(RemedyPlace(changed.role, where, buffer, sources.line(where.file, where.line)))
    return places


def _saving(analysis: Analysis, remedy: Remedy) -> Saving:
    """Return what the remedy saves. By any estimator, a smaller download saves at most its copying time."""
    if remedy.kind is not RemedyKind.PARTIAL_DOWNLOAD:
        return site_saving(analysis, remedy.site)
    most = remedy.benefit_s
    saving = Scale(analysis.wall_s).saving(Benefit(carry_s=most, bound_s=most, low_s=0.0, high_s=most), at_most=True)
    return replace(saving, rests_on="the minimum time to copy the rest")
