"""Report, folds, sites and remedies say the same about one analysis."""

from __future__ import annotations

import re

import msgspec
import pytest

from ffm.report.fold import Part, fold
from ffm.report.numbers import Estimator
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.report.site import site
from ffm.report.terminal.fold import render_fold
from ffm.report.terminal.overview import render_overview
from ffm.report.terminal.remedies import render_remedies
from ffm.report.terminal.site import render_site
from ffm.results.documents.analysis import Analysis, Group
from ffm.results.documents.benefit import Basis, Benefit
from tests.report.printed import text_of
from tests.report.sample_analysis import sample_analysis

WIDTH = 200
SAVED = r"(?P<seconds>[\d.]+) s +(?P<share>[\d.]+) % +(?P<low>[\d.]+) (?P<high>[\d.]+) s"
Said = dict[str, tuple[str, ...]]
"""By call and place: seconds, percent of the run, interval and number of calls, as printed."""


def replayed() -> Analysis:
    """The sample with an interval at each saving. By replay one is too small for a row; by `bound`, another."""
    analysis = sample_analysis()
    told = [
        Benefit(carry_s=10.0, bound_s=12.0, replay_s=9.0, low_s=7.5, high_s=11.0, basis=Basis(measured=0.5)),
        Benefit(carry_s=2.5, bound_s=0.0, replay_s=1.2, low_s=0.25, high_s=3.0, basis=Basis(measured=0.5)),
        Benefit(carry_s=0.5, bound_s=2.5, replay_s=0.4, low_s=0.1, high_s=0.9, basis=Basis(measured=0.5)),
        analysis.sites[3].benefit,
    ]

    def group(old: Group) -> Group:
        new = told[old.sites[0]] if len(old.sites) == 1 else old.benefit
        return msgspec.structs.replace(old, benefit=new, parts=[group(part) for part in old.parts])

    return msgspec.structs.replace(
        analysis,
        estimator="replay",
        sites=[msgspec.structs.replace(one, benefit=two) for one, two in zip(analysis.sites, told, strict=True)],
        points=[group(point) for point in analysis.points],
        folds=[group(one) for one in analysis.folds],
    )


def said(matches: list[re.Match[str]]) -> Said:
    parts = ("seconds", "share", "low", "high", "calls")
    return {f"{match['call']} {match['place']}": tuple(match[part] for part in parts) for match in matches}


def hidden(text: str) -> int:
    return sum(int(number) for number in re.findall(r"(\d+) \w+ hidden \(see --all\)", text))


def by_report(analysis: Analysis, show_all: bool) -> tuple[Said, int]:
    text = text_of(render_overview(overview(analysis, "replay", show_all=show_all), WIDTH), WIDTH)
    points = text.partition("Single points")[2].partition("How to read")[0]
    row = rf"{SAVED} +\d+ +(?P<calls>[\d,]+)  (?P<call>cuda\w+) (?P<place>[^\s*]+)"
    return said(list(re.finditer(row, points))), hidden(points)


def by_folds(analysis: Analysis, show_all: bool) -> tuple[Said, int]:
    found: Said = {}
    left = 0
    for name in (one.name for one in analysis.folds):
        text = text_of(render_fold(fold(analysis, name, "replay", show_all=show_all), WIDTH), WIDTH)
        row = rf"{SAVED} +(?P<calls>[\d,]+) +(?P<place>\S+) site \d+"
        parts = re.finditer(rf"(?m)^ +{row}$", text)
        found |= {f"{name} {key}": value for match in parts for key, value in _alone(match).items()}
        left += hidden(text)
    return found, left


def _alone(match: re.Match[str]) -> Said:
    return {match["place"]: tuple(match[part] for part in ("seconds", "share", "low", "high", "calls"))}


def by_remedies(analysis: Analysis, show_all: bool) -> tuple[Said, int]:
    text = text_of(render_remedies(remedies_view(analysis, "replay", show_all=show_all)), WIDTH)
    row = (
        r"\d+\. (?P<call>\w+) at (?P<place>\S+) \(site \d+\): .*\n"
        r" +saves (?P<seconds>[\d.]+) s \((?P<share>[\d.]+) %\) by itself, "
        r"at least (?P<low>[\d.]+) s, at most (?P<high>[\d.]+) s; [\d,]+ of (?P<calls>[\d,]+) calls"
    )
    return said(list(re.finditer(row, text))), hidden(text)


def by_site(analysis: Analysis, number: int) -> Said:
    text = text_of(render_site(site(analysis, number, "replay"), WIDTH), WIDTH)
    row = (
        r"Site \d+ of als: (?P<call>\w+) at (?P<place>\S+)\nSaving: (?P<seconds>[\d.]+) s "
        r"\((?P<share>[\d.]+) % of the run\)\n.*\n +at least (?P<low>[\d.]+) s, at most (?P<high>[\d.]+) s; "
        r"(?s:.*?)(?P<calls>[\d,]+) calls,"
    )
    return said(list(re.finditer(row, text)))


@pytest.mark.parametrize(("show_all", "rows"), [(False, 2), (True, 3)])
def test_screens_print_the_same_numbers_and_hide_the_same_rows(show_all: bool, rows: int) -> None:
    analysis = replayed()
    report, left = by_report(analysis, show_all)
    assert (len(report), left) == (rows, 3 - rows)
    assert by_folds(analysis, show_all) == (report, left)
    assert by_remedies(analysis, show_all) == (report, left)
    sites = [row.number for row in overview(analysis, "replay", show_all=show_all).points.rows]
    assert {key: value for number in sites for key, value in by_site(analysis, number or 0).items()} == report


def sites_of(parts: list[Part]) -> set[int]:
    return {one.where.site for part in parts for one in part.sites} | {
        number for part in parts for number in (sites_of(part.parts) if part.parts else ())
    }


@pytest.mark.parametrize("estimator", ["replay", "carry", "bound"])
def test_views_hide_the_same_sites_by_each_estimator(estimator: Estimator) -> None:
    analysis = replayed()
    points = overview(analysis, estimator).points
    folds = [fold(analysis, one.name, estimator) for one in analysis.folds]
    remedies = remedies_view(analysis, estimator)
    shown = {row.number for row in points.rows}
    assert set().union(*(sites_of(one.parts) for one in folds)) == shown
    assert {remedy.where.site for remedy in remedies.remedies} == shown
    assert points.hidden == sum(one.hidden for one in folds) == remedies.hidden
    assert len(shown) + points.hidden == 3


def test_an_interval_is_that_of_replay_and_printed_with_no_other_estimate() -> None:
    for estimator, printed in (("replay", True), ("carry", False), ("bound", False)):
        text = text_of(render_remedies(remedies_view(replayed(), estimator)), WIDTH)  # type: ignore[arg-type]
        assert ("at least 7.500 s, at most 11.000 s" in text) == printed
