"""The law of the screens: two screens that show a figure of the same thing show the same figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ffm.report.fold import FoldSite, FoldView, Part, fold
from ffm.report.lines import lines
from ffm.report.numbers import Estimator, Saving
from ffm.report.overview import Overview, overview
from ffm.report.remedies.remedy import RemedyKind
from ffm.report.remedies.view import RemedyView, remedies_view
from ffm.report.site import site
from ffm.results.stored import Results

Said = dict[int, tuple[Saving, int]]
"""By number of a site: what is saved there, and how many calls it had."""


def disagreements(opened: Results) -> list[str]:
    """Return a sentence for each figure on which two screens differ, by each estimator, with small rows and without."""
    estimators: list[Estimator] = ["carry", "bound"]
    if opened.document.estimator == "replay":
        estimators.append("replay")
    return [
        f"{sentence} (by {estimator}{', with all rows' if show_all else ''})"
        for estimator in estimators
        for show_all in (False, True)
        for sentence in _of_screens(opened, estimator, show_all)
    ]


def _of_screens(opened: Results, estimator: Estimator, show_all: bool) -> Iterator[str]:
    analysis = opened.document
    report = overview(analysis, estimator, show_all=show_all)
    folds = [fold(analysis, one.name, estimator, show_all=show_all) for one in analysis.folds]
    points: Said = {row.number or 0: (row.saving, row.calls) for row in report.points.rows}
    sites = {number: site(analysis, number, estimator) for number in points}
    yield from _differ("sites", points, {number: (one.saving, one.count) for number, one in sites.items()})
    inside = [one for view in folds for one in _sites_of(view.parts)]
    yield from _differ("folds", points, {one.where.site: (one.saving, one.count) for one in inside})
    yield from _hidden("folds", report.points.hidden, sum(view.hidden for view in folds))
    yield from _of_folds(report, folds)
    yield from _of_remedies(opened, estimator, points, report.points.hidden, show_all)
    yield from _of_lines(opened, estimator, report, show_all)


def _differ(screen: str, report: Said, other: Said) -> Iterator[str]:
    for number in sorted({*report, *other}):
        if report.get(number) != other.get(number):
            yield f"site {number}: the report says {report.get(number)}, the {screen} say {other.get(number)}"


def _hidden(screen: str, report: int, other: int) -> Iterator[str]:
    if report != other:
        yield f"the report hides {report} single points, the {screen} {other}"


def _sites_of(parts: Iterable[Part]) -> Iterator[FoldSite]:
    for part in parts:
        yield from part.sites
        yield from _sites_of(part.parts)


def _of_folds(report: Overview, folds: list[FoldView]) -> Iterator[str]:
    opened = {view.name: (view.saving, view.count) for view in folds}
    for row in report.folds.rows:
        if (row.saving, row.calls) != opened.get(row.name):
            yield f"fold {row.name}: the report says {row.saving, row.calls}, its own screen {opened.get(row.name)}"


def _of_remedies(opened: Results, estimator: Estimator, points: Said, hidden: int, show_all: bool) -> Iterator[str]:
    """A smaller download saves its copying time at most, whatever the single point saves."""

    def of_points(remedies: list[RemedyView]) -> list[RemedyView]:
        return [one for one in remedies if one.kind != RemedyKind.PARTIAL_DOWNLOAD]

    view = remedies_view(opened.document, estimator, show_all=show_all)
    every = remedies_view(opened.document, estimator, show_all=True).remedies
    of_every = of_points(every)
    smaller = {one.where.site for one in every} - {one.where.site for one in of_every}
    expected = {number: said for number, said in points.items() if number not in smaller}
    yield from _differ("remedies", expected, {one.where.site: (one.saving, one.of) for one in of_points(view.remedies)})
    if len(of_every) == len(every):
        yield from _hidden("remedies", hidden, view.hidden)


def _of_lines(opened: Results, estimator: Estimator, report: Overview, show_all: bool) -> Iterator[str]:
    view = lines(opened, estimator, show_all=show_all)
    if view.everything != report.everything:
        yield f"the lines save {view.everything} together, the report says {report.everything}"
    for line in view.lines:
        parts = [site(opened.document, number, estimator) for number in line.sites]
        said = (sum(one.count for one in parts), sum(one.problem_count for one in parts))
        if (line.occurrences, line.problems) != said:
            yield f"{line.place}: {line.occurrences} calls, {line.problems} of them problems; its sites say {said}"
        if len(parts) == 1 and line.saving != parts[0].saving:
            yield f"{line.place}: its line saves {line.saving}, its site {parts[0].saving}"
