"""Benefits with a replay: their interval, what all problems save together, runs of several processes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.errors import FfmError
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind, Timeline
from ffm.results.best_parts import best_subsequences
from ffm.results.documents.analysis import Group, StageCost
from ffm.results.documents.benefit import Basis
from ffm.results.documents.notes import SeveralProcesses
from ffm.results.stored import Results, open_results, subsequence
from ffm.results.variation import COSTLY_TRACING, DIFFERS, VARIES, Variation
from ffm.stages.analysis.results import analyse
from ffm.stages.analysis.timelines import longer_by
from tests.examples import examples
from tests.model.given_times import given_gpu_times
from tests.model.timelines import simple_device_work
from tests.results.loop_findings import ITERATIONS, loop_findings
from tests.results.replayed_findings import measured, replayed, several_ranks, stored


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return stored(measured(), tmp_path)


def all_groups(results: Results) -> list[Group]:
    document = results.document
    return [*document.points, *document.folds, *(part for fold in document.folds for part in fold.parts)]


def test_every_benefit_has_an_interval_and_says_what_it_rests_on(results: Results) -> None:
    benefits = [group.benefit for group in all_groups(results)]
    benefits += [sequence.benefit for sequence in results.document.sequences]
    benefits += [site.benefit for site in results.document.sites]
    for benefit in benefits:
        low, seconds, high = replayed(benefit)
        assert 0 <= low <= seconds <= high <= results.document.wall_s
        assert benefit.basis is not None and benefit.basis.measured is not None


def test_overlapping_groups_never_save_more_than_everything(results: Results) -> None:
    _, everything, _ = replayed(results.document.everything)
    assert 0 < everything <= results.document.wall_s
    for group in all_groups(results):
        assert replayed(group.benefit)[1] <= everything + 1e-12
    assert sum(replayed(found.benefit)[1] for found in results.document.sequences) <= everything + 1e-12


def test_the_replay_is_what_views_show_first(results: Results) -> None:
    assert results.document.estimator == "replay"
    answer = subsequence(results, 1, 1, 3)
    assert answer.estimator == "replay"
    assert answer.seconds == answer.benefit.replay_s == pytest.approx(results.document.sequences[0].benefit.replay_s)


def test_without_a_trace_carry_counts_and_says_so() -> None:
    analysis, _ = analyse(loop_findings())
    assert (analysis.estimator, analysis.explained) == ("carry", None)
    free = analysis.sites[2].benefit
    assert free.replay_s is None
    assert (free.low_s, free.high_s) == tuple(sorted((free.carry_s, free.bound_s)))
    assert free.basis == Basis(measured=None)


def test_a_replay_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FfmError, match="--estimator carry or bound"):
        subsequence(stored(loop_findings(), tmp_path), 1, 1, 1, "replay")


def test_the_time_of_the_run_is_explained(results: Results) -> None:
    """20 calls: 14 ms in them per iteration, 10 ms of it waiting, and 10 ms between them."""
    explained = results.document.explained
    assert explained is not None
    assert explained.calls_s == pytest.approx(ITERATIONS * 4 / 1000)
    assert explained.work_s == pytest.approx(ITERATIONS * 10 / 1000)
    assert explained.wait_s + explained.unexplained_wait_s == pytest.approx(ITERATIONS * 10 / 1000)
    assert 0 < explained.share <= 1


def test_ranks_save_together_what_one_saves() -> None:
    alone, _ = analyse(measured())
    together, _ = analyse(several_ranks(3))
    for one, all_three in zip(alone.sites, together.sites, strict=True):
        assert all_three.count == 3 * one.count
        assert all_three.benefit.carry_s == pytest.approx(one.benefit.carry_s)
        assert all_three.benefit.bound_s == pytest.approx(one.benefit.bound_s)
        assert replayed(all_three.benefit) == pytest.approx(replayed(one.benefit))
    assert together.sequences[0].recurrences == 3 * ITERATIONS
    assert (together.notes, alone.notes) == ([SeveralProcesses(processes=3)], [])


def test_the_best_parts_end_with_the_whole_sequence(results: Results) -> None:
    parts = best_subsequences(results, 1, 5, "replay")
    assert (parts[-1].start, parts[-1].end) == (1, 3)
    assert parts[-1].benefit == results.document.sequences[0].benefit
    savings = [part.benefit.replay_s or 0.0 for part in parts]
    assert savings == sorted(savings)
    assert [part.places for part in parts] == sorted({part.places for part in parts})
    assert best_subsequences(results, 1, 1, "replay") == parts[-1:]


def test_best_parts_of_imported_results_go_by_carry(tmp_path: Path) -> None:
    parts = best_subsequences(stored(loop_findings(), tmp_path), 1, 5, "carry")
    assert parts[-1].benefit.replay_s is None
    with pytest.raises(FfmError, match="from 1"):
        best_subsequences(open_results(tmp_path), 1, 0, "carry")


def test_frees_alone_are_worth_their_waits(results: Results) -> None:
    """No allocation takes over the memory: the calls stay, the waits disappear as far as the GPU allows."""
    frees = results.timeline.kind == Kind.FREE
    assert replayed(results.estimates.of_rows(frees))[1] <= results.timeline.wait[frees].sum() / 1e9


def test_what_the_probes_made_the_run_longer_by_counts_once() -> None:
    """After a kernel of 1 s, a probe of 0.1 s before the wait: without it the wait is longer by that much. Another
    probe after the wait made the run longer.
    """
    second = 1_000_000_000
    probe = np.array([0, second // 10, second // 5])
    traced = Timeline(
        thread=np.zeros(3, np.int32),
        start=np.array([0, second // 10, second + second // 5]),
        duration=np.array([0, second - second // 10, 0]),
        wait=np.array([0, second - second // 10, 0]),
        gap=np.array([second // 10, second // 5, 0]),
        site=np.arange(3, dtype=np.int32),
        kind=np.array([Kind.LAUNCH, Kind.SYNCHRONIZATION, Kind.LAUNCH], np.uint8),
        problem=np.zeros(3, np.uint8),
        first_use=np.zeros(3, np.int64),
        occurrences=np.ones(3, np.int64),
    )
    work = simple_device_work(traced)
    replay = Replay(traced, work, given_gpu_times(traced, work, np.array([second, 0, 0])))
    without = replay.without_probes(probe)
    assert without.wait.tolist() == [0, second, 0]
    assert longer_by(traced, without) == pytest.approx(0.2)


def test_a_fix_saves_at_most_what_its_calls_and_their_work_took_however_much_runs_differ(tmp_path: Path) -> None:
    walls = {"baseline": 1.0, "tracing": 3.0}
    costs = [StageCost(stage=stage, wall_s=wall_s, ratio=wall_s) for stage, wall_s in walls.items()]
    results = stored(dataclasses.replace(measured(), costs=costs, probes_s=2.0), tmp_path)
    timeline, replay = results.timeline, results.estimates.replay
    assert replay is not None
    times = (replay.inference.likely, replay.inference.slow, replay.inference.fast)
    took_ns = timeline.duration + np.maximum.reduce([one.gpu for one in times])
    widest = 1 + Variation.of(costs, 2.0, None).of_saving
    assert widest > 1 + DIFFERS + 1 - walls["baseline"] / walls["tracing"]
    for number in np.unique(timeline.site[timeline.problem != 0]).tolist():
        took_s = took_ns[timeline.site == number].sum() / 1e9
        _, likely, high = replayed(results.estimates.of_sites([[number]])[0])
        assert likely <= high <= took_s * widest + VARIES * results.document.wall_s + 1e-9


@given(st.floats(VARIES, COSTLY_TRACING - 1.01), st.floats(VARIES, COSTLY_TRACING - 1.01))
@settings(max_examples=examples(20), deadline=None)
def test_runs_that_differ_by_a_share_change_the_ends_of_an_interval_by_that_share(one: float, other: float) -> None:
    """The fixed run varies with the unfixed one: what they differ by is not taken from a saving."""
    findings = measured()

    def everything(differs: float) -> tuple[float, float, float]:
        runs_s = {"baseline": findings.wall_s, "tracing": findings.wall_s * (1 + differs)}
        costs = [StageCost(stage=stage, wall_s=run_s, ratio=run_s / findings.wall_s) for stage, run_s in runs_s.items()]
        return replayed(analyse(dataclasses.replace(findings, costs=costs, probes_s=0.0))[0].everything)

    less, more = sorted((one, other))
    low, likely, high = everything(less)
    lower, same, higher = everything(more)
    assert same == likely > VARIES * findings.wall_s
    assert lower <= low + 1e-9 and high <= higher + 1e-9
    assert low - lower <= (more - less) * likely + 1e-9
