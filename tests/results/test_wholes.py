"""A fold, a sequence, a line and all problems save no less than any of their parts alone, by every estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Timeline
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.stacks import Module
from ffm.results.wholes import at_least
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import analyse
from tests.examples import examples
from tests.model.estimators.test_laws import rounding, together
from tests.model.simulator import Member, families
from tests.results.loop_findings import loop_findings, loop_timeline, stack

MICROSECOND = 1_000


def findings_of(timeline: Timeline, work: DeviceWork | None) -> Findings:
    """The rows as those of a program with two functions, each of which makes two kinds of calls."""
    sites = range(int(timeline.site.max()) + 1)
    calls = ("cudaFree", "cudaDeviceSynchronize")
    return Findings(
        application="solve",
        command=["./solve"],
        wall_s=float((timeline.start + timeline.duration + timeline.gap).max()) / 1e9,
        timeline=timeline,
        work=work,
        sites=[SiteDescription(site, "cuCtxSynchronize") for site in sites],
        stacks=[stack(calls[site % 2], f"void step{site // 2 % 2}()", 10 + site) for site in sites],
        modules=[Module(path="/home/user/solve", build_id="ab"), Module(path="libcudart.so", build_id="")],
    )


def numbers_of(benefit: Benefit) -> list[float]:
    """Every number that a screen may show."""
    given = [benefit.carry_s, benefit.bound_s, benefit.replay_s, benefit.low_s, benefit.high_s]
    return [number for number in given if number is not None]


def lacks(whole: Benefit, parts: Iterable[Benefit]) -> float:
    """By how much the best part exceeds the whole, in the number where that is most."""
    each = [max(numbers, default=0.0) for numbers in zip(*map(numbers_of, parts), strict=True)]
    return max((part - own for part, own in zip(each, numbers_of(whole), strict=False)), default=0.0)


def most_lacking(analysis: Analysis) -> float:
    """The same of all that a report shows."""
    assert analysis.everything is not None
    parts = [(fold.benefit, [part.benefit for part in fold.parts]) for fold in analysis.folds]
    callers = [part for fold in analysis.folds for part in fold.parts]
    parts += [(part.benefit, [analysis.sites[site].benefit for site in part.sites]) for part in callers]
    groups = [group.benefit for group in (*analysis.points, *analysis.folds, *callers)]
    parts.append((analysis.everything, [*groups, *(sequence.benefit for sequence in analysis.sequences)]))
    return max(lacks(whole, alone) for whole, alone in parts)


@given(families(), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_no_number_of_a_part_exceeds_that_of_the_whole(members: list[Member], data: st.DataObject) -> None:
    timeline, work = together(data, members)
    analysis = analyse(findings_of(timeline, work))[0]
    assert most_lacking(analysis) <= rounding(Replay(timeline, work, infer_gpu_times(timeline, work, 5 * MICROSECOND)))


def test_without_a_trace_all_problems_save_at_least_what_a_fold_does() -> None:
    """Transfers to leave out, without CPU time after them: their own time counts for a fold, and for all problems."""
    timeline = loop_timeline()
    timeline = dataclasses.replace(timeline, gap=timeline.gap // 1000)
    analysis = analyse(loop_findings(timeline))[0]
    assert max(fold.benefit.bound_s for fold in analysis.folds) > 0
    assert most_lacking(analysis) <= 1e-12


def test_a_whole_is_raised_by_each_estimator_alone() -> None:
    whole = Benefit(carry_s=2.0, bound_s=1.0, replay_s=1.0, low_s=0.5, high_s=3.0)
    part = Benefit(carry_s=1.0, bound_s=4.0, replay_s=2.0, low_s=0.0, high_s=3.5)
    assert at_least(whole, [part]) == Benefit(carry_s=2.0, bound_s=4.0, replay_s=2.0, low_s=0.5, high_s=3.5)
    assert at_least(whole, []) == whole


def test_a_whole_without_a_replay_stays_without() -> None:
    whole = Benefit(carry_s=2.0, bound_s=1.0)
    part = Benefit(carry_s=1.0, bound_s=4.0, replay_s=5.0, low_s=0.0, high_s=6.0)
    assert at_least(whole, [part]) == msgspec.structs.replace(whole, bound_s=4.0)
