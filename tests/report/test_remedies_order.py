"""`ffm remedies` and its SARIF show the same seconds in the same order as `ffm report`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ffm.report.formats.sarif import sarif
from ffm.report.numbers import Estimator
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.results.documents.analysis import Analysis, Group
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
