"""`ffm compare`: which sites are gone, new or changed, and what was estimated for those that are gone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.errors import FfmError
from ffm.report.compare import compare, paired
from ffm.report.formats import compare as formats
from ffm.report.terminal.compare import compare_lines
from ffm.results.documents.analysis import KeptWait
from ffm.results.documents.site import Site
from ffm.results.documents.stacks import Stack
from ffm.results.stored import Results, benefits_of_sites, open_results
from tests.cli.command_line import write_small_results
from tests.gate.gate_calls import a_site

SITES = st.lists(
    st.builds(
        a_site,
        call=st.sampled_from(["cudaFree", "cudaMemcpy"]),
        caller=st.sampled_from(["solve", "load"]),
        line=st.integers(0, 3),
    ),
    max_size=6,
).map(lambda sites: [dataclasses.replace(site, index=index) for index, site in enumerate(sites)])


@pytest.fixture
def old(tmp_path: Path) -> Results:
    """Two frees without need, at lines 10 and 11 of `solve`, and a synchronization that is needed."""
    write_small_results(tmp_path / "old")
    return open_results(tmp_path / "old")


def changed(results: Results, wall_s: float, **first: object) -> Results:
    """The same with another first site, in a run of another length."""
    document = results.document
    sites = [msgspec.structs.replace(document.sites[0], **first), *document.sites[1:]]
    return Results(results.folder, msgspec.structs.replace(document, sites=sites, wall_s=wall_s))


def no_problem(site: Site) -> dict[str, object]:
    return {"problem_count": 0, "synchronization": [], "benefit": msgspec.structs.replace(site.benefit, replay_s=0.0)}


@given(SITES, SITES)
def test_each_site_is_paired_once(old: list, new: list) -> None:  # type: ignore[type-arg]
    pairs = paired(old, new)
    assert sorted(first for first, _ in pairs if first is not None) == list(range(len(old)))
    assert sorted(second for _, second in pairs if second is not None) == list(range(len(new)))
    for first, second in pairs:
        if first is not None and second is not None:
            assert old[first].identity == new[second].identity


def test_sites_at_the_same_line_are_paired_before_others() -> None:
    old = [a_site(0, line=10), a_site(1, line=12)]
    new = [a_site(0, line=12), a_site(1, line=14)]
    assert sorted(paired(old, new), key=str) == [(0, 1), (1, 0)]


def test_nothing_has_changed_between_a_measurement_and_itself(old: Results) -> None:
    view = compare(old, old)
    assert (view.gone, view.come, view.changed, view.same, view.saved_s) == ([], [], [], 2, 0.0)
    assert view.estimated is None and view.interval is None


def test_what_is_gone_is_told_with_its_estimate(old: Results) -> None:
    wall_s = old.document.wall_s
    view = compare(old, changed(old, wall_s - 0.001, **no_problem(old.document.sites[0])))
    assert [(one.place, one.old_count, one.new_count) for one in view.gone] == [("solve.cu:10", 100, 0)]
    assert (view.come, view.changed, view.same) == ([], [], 1)
    assert view.saved_s == pytest.approx(0.001)
    assert view.estimated is not None
    assert view.estimated.seconds == benefits_of_sites(old, [[0]])[0].expected_s > 0
    lines = list(compare_lines(view))
    assert "the run takes 0.001" in lines[2] and " less (" in lines[2]
    assert lines[3].startswith("estimated before for the sites that are gone: 0.00")


def test_other_arguments_are_told(old: Results) -> None:
    more = msgspec.structs.replace(old.document, command=[old.document.command[0], "100", "a b"])
    lines = list(compare_lines(compare(old, Results(old.folder, more))))
    assert lines[2].endswith("100 'a b' after") and "different arguments" in lines[2]
    assert not any("arguments" in line for line in compare_lines(compare(old, old)))


def test_what_came_and_what_changed_are_told(old: Results) -> None:
    without = changed(old, old.document.wall_s, **no_problem(old.document.sites[0]))
    view = compare(without, old)
    assert [(one.place, one.old_count, one.new_count) for one in view.come] == [("solve.cu:10", 0, 100)]
    assert (view.gone, view.estimated) == ([], None)
    view = compare(old, changed(old, old.document.wall_s, problem_count=40))
    assert [(one.place, one.old_count, one.new_count) for one in view.changed] == [("solve.cu:10", 100, 40)]


def test_a_site_in_another_function_is_gone_and_come(old: Results) -> None:
    document = old.document
    first = document.stacks[0]
    frames = [*first.frames[:-1], msgspec.structs.replace(first.frames[-1], function="other")]
    stacks = [Stack(key="f" * 32, frames=frames), *document.stacks[1:]]
    view = compare(old, Results(old.folder, msgspec.structs.replace(document, stacks=stacks)))
    assert [(one.old_site, one.new_site) for one in view.gone + view.come] == [(1, None), (None, 1)]


def test_more_measurements_give_the_difference_an_interval(old: Results) -> None:
    wall_s = old.document.wall_s
    view = compare(old, changed(old, wall_s - 0.004), [wall_s] * 3, [wall_s - 0.004] * 3)
    assert view.interval is not None
    assert view.interval.low_s == pytest.approx(0.004) and view.interval.high_s == pytest.approx(0.004)
    assert "it saves between 0.004" in list(compare_lines(view))[2]


def test_other_programs_are_told_what_is_worse(old: Results) -> None:
    root, wall_s = Path("/nowhere"), old.document.wall_s
    without = changed(old, wall_s, **no_problem(old.document.sites[0]))
    fewer = changed(old, wall_s, problem_count=40)
    for before, after, level, rule in ((without, old, "error", "come"), (fewer, old, "warning", "more")):
        view = compare(before, after)
        (one,) = [*view.come, *view.changed]
        notice, annotation = formats.github(view, root).splitlines()
        assert notice.startswith("::notice title=ffm compare::the run takes")
        assert annotation.startswith(f"::{level} file={one.file},line=10,title=ffm compare::solve.cu:10 cudaFree: ")
        (result,) = formats.sarif(view, root)["runs"][0]["results"]
        assert (result["ruleId"], result["level"]) == (f"ffm/{rule}", level)
        (failure,) = ElementTree.fromstring(formats.junit(view)).iter("failure")
        assert (failure.get("type"), failure.get("message")) == (rule, result["message"]["text"])


def test_what_is_no_worse_passes(old: Results) -> None:
    view = compare(old, changed(old, old.document.wall_s, problem_count=40))
    assert "::error" not in formats.github(view, Path("/nowhere"))
    assert formats.sarif(view, Path("/nowhere"))["runs"][0]["results"] == []
    assert ElementTree.fromstring(formats.junit(view)).get("failures") == "0"


def test_of_two_traces_the_waits_are_compared(old: Results) -> None:
    """Nothing is proved of them, so no site has a problem."""
    waits = [KeptWait(site=index, occurrences=100, saving_s=0.002, low_s=0.0, high_s=0.003) for index in (0, 1)]
    sites = [
        msgspec.structs.replace(site, problem_count=0, wait_s=0.0, synchronization=[], transfer=[])
        for site in old.document.sites
    ]
    before, after = (
        Results(old.folder, msgspec.structs.replace(old.document, origin="nsys", sites=sites, unproved=found))
        for found in (waits, waits[1:])
    )
    view = compare(before, after)
    assert [(one.old_count, one.new_count, one.old_seconds) for one in view.gone] == [(100, 0, 0.002)]
    assert (view.come, view.changed, view.same) == ([], [], 1)
    assert view.estimated is not None
    lines = list(compare_lines(view))
    assert "gone: 1 site that waits or transfers" in lines
    assert not any("problem" in line for line in lines)


def test_results_of_two_kinds_are_not_compared(old: Results) -> None:
    quick = Results(old.folder, msgspec.structs.replace(old.document, origin="quick"))
    with pytest.raises(FfmError, match="quick mode"):
        compare(old, quick)
