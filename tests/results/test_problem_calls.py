"""The calls that the gate judges: from the document alone if that says everything, as for a long run, or by replays."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ffm.gate.problems import ProblemCalls, problem_calls, saved_together, with_problems
from ffm.results.documents.benefit import Benefit
from ffm.results.stored import TIMELINE_FILE, Results, open_results
from ffm.stages.analysis.results import write_results
from tests.results.loop_findings import ITERATIONS, loop_timeline
from tests.results.replayed_findings import measured


def without_threads(results: Results) -> Results:
    """The same results, whose document does not say which threads have the problems."""
    sites = [msgspec.structs.replace(site, problem_thread=None) for site in results.document.sites]
    return Results(results.folder, msgspec.structs.replace(results.document, sites=sites, everything=None))


def told(calls: list[ProblemCalls]) -> list[tuple[int, int, int, Benefit]]:
    """What the gate uses: all but `bound_s`, which counts what is together in another way."""
    return [(one.site.index, one.thread, one.count, msgspec.structs.replace(one.benefit, bound_s=0.0)) for one in calls]


def test_the_document_says_what_the_timeline_would(tmp_path: Path) -> None:
    write_results(measured(), tmp_path)
    results = open_results(tmp_path)
    sites = with_problems(results.document)
    replayed = without_threads(results)
    expected, together_s = told(problem_calls(replayed)), saved_together(replayed, sites)
    (tmp_path / TIMELINE_FILE).unlink()  # is not read
    results = open_results(tmp_path)
    assert len(sites) > 1 and told(problem_calls(results)) == expected
    assert saved_together(results, sites) == pytest.approx(together_s)


def test_problems_of_a_site_on_two_threads_count_apart(tmp_path: Path) -> None:
    timeline = loop_timeline()
    half = len(timeline) // 2
    thread = np.repeat(np.arange(2, dtype=np.int32), half)
    findings = measured(dataclasses.replace(timeline, thread=thread))
    write_results(findings, tmp_path)
    results = open_results(tmp_path)
    assert {results.document.sites[site].problem_thread for site in with_problems(results.document)} == {None}
    counts = {(one.site.index, one.thread): one.count for one in problem_calls(results)}
    assert counts == {(site, thread): ITERATIONS // 2 for site in with_problems(results.document) for thread in (0, 1)}
