"""`ffm remedies` and its SARIF show the same seconds in the same order as `ffm report`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from ffm.report.formats.html import html
from ffm.report.formats.sarif import sarif
from ffm.report.numbers import Estimator
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.report.terminal.overview import render_first_screen, render_overview
from ffm.report.terminal.remedies import render_remedies
from ffm.results.documents.analysis import Analysis, Group
from ffm.results.documents.benefit import Basis, Benefit
from tests.report.printed import text_of
from tests.report.sample_analysis import sample_analysis


def replayed() -> Analysis:
    """The sample with replays that sort its sites in the opposite order of carry."""
    analysis = sample_analysis()
    most = max(site.benefit.carry_s for site in analysis.sites)
    sites = [
        msgspec.structs.replace(
            site, benefit=msgspec.structs.replace(site.benefit, replay_s=2 * most - site.benefit.carry_s)
        )
        if site.problem_count
        else site
        for site in analysis.sites
    ]
    points = [
        Group(name=site.call, sites=[index], count=site.count, benefit=site.benefit, conditional=False)
        for index, site in enumerate(sites)
        if site.problem_count
    ]
    return msgspec.structs.replace(analysis, sites=sites, points=points, estimator="replay")


@pytest.mark.parametrize("estimator", ["replay", "carry", "bound"])
def test_remedies_stand_in_the_order_of_the_report(estimator: Estimator) -> None:
    analysis = replayed()
    remedies = remedies_view(analysis, estimator, show_all=True)
    points = overview(analysis, estimator, show_all=True).points.rows
    assert [remedy.saving.seconds(estimator) for remedy in remedies.remedies] == [
        row.saving.seconds(estimator) for row in points
    ]
    results = sarif(remedies, Path("/"))["runs"][0]["results"]
    assert [result["properties"]["benefitSeconds"] for result in results] == [
        remedy.saving.seconds(estimator) for remedy in remedies.remedies if remedy.where.line
    ]
    for result, remedy in zip(results, (one for one in remedies.remedies if one.where.line), strict=True):
        assert f"saves {remedy.saving.seconds(estimator):.3f} s" in result["message"]["text"]


def test_without_a_choice_it_is_the_estimator_of_the_report() -> None:
    assert remedies_view(replayed()).estimator == "replay"
    assert remedies_view(sample_analysis()).estimator == "carry"


def test_a_remedy_keeps_its_number_when_hidden_ones_are_shown() -> None:
    some, every = (remedies_view(replayed(), "bound", show_all=show_all) for show_all in (False, True))
    assert 0 < len(some.remedies) < len(every.remedies)
    numbers = {remedy.where.site: remedy.number for remedy in every.remedies}
    assert all(numbers[remedy.where.site] == remedy.number for remedy in some.remedies)
    assert sorted(numbers.values()) == list(range(1, len(every.remedies) + 1))


def test_steps_that_were_told_are_referred_to() -> None:
    view = remedies_view(sample_analysis(), show_all=True)
    first = view.remedies[0]
    again = dataclasses.replace(first, number=2)
    elsewhere = dataclasses.replace(
        first.places[0], where=dataclasses.replace(first.places[0].where, place="other.cu:7")
    )
    shown = text_of(
        render_remedies(
            dataclasses.replace(view, remedies=[first, again, dataclasses.replace(first, number=3, places=[elsewhere])])
        )
    )
    assert shown.count(first.steps[0][:40]) == 1
    second, third = shown[shown.index("\n2. ") :].split("\n3. ")
    assert "- The steps and places are those of 1." in second
    assert first.places[0].role not in second.split("automatically")[0].replace("calls are affected", "")
    assert "- The steps are those of 1." in third
    assert "other.cu:7" in third


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        ("replay", "Fixing everything would save 9.000 s (0.90 %), from 7.500 to 11.000 s."),
        ("carry", "Fixing everything would save 10.000 s (1.00 %), by carry."),
    ],
)
def test_the_saving_of_all_fixes_comes_first_everywhere(estimator: Estimator, sentence: str) -> None:
    told = Benefit(carry_s=10.0, bound_s=12.0, replay_s=9.0, low_s=7.5, high_s=11.0, basis=Basis(measured=0.5))
    analysis = msgspec.structs.replace(replayed(), everything=told)
    view, remedies = overview(analysis, estimator), remedies_view(analysis, estimator)
    for screen in (render_overview(view), render_first_screen(view), render_remedies(remedies)):
        assert text_of(screen).splitlines()[1].strip() == sentence
    page = html(analysis, estimator, remedies).replace("\N{NO-BREAK SPACE}", " ")
    assert sentence in page[: page.index("Where the time goes")]
    doubted = msgspec.structs.replace(analysis, without_equal_bytes=Benefit(carry_s=1.0, bound_s=1.0, replay_s=1.0))
    view, remedies = overview(doubted, estimator), remedies_view(doubted, estimator)
    for screen in (render_overview(view), render_first_screen(view), render_remedies(remedies)):
        assert "which may be different data: 1.000 s (0.10 %)." in " ".join(text_of(screen).split())
    assert "which may be different data: 1.000" in html(doubted, estimator, remedies).replace("\N{NO-BREAK SPACE}", " ")
    nothing = msgspec.structs.replace(analysis, everything=Benefit(carry_s=0.0, bound_s=0.0))
    assert "Fixing everything" not in text_of(render_overview(overview(nothing, "carry")))
