"""Benefits with a replay: their interval, what all problems save together, runs of several processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_results import ITERATIONS, loop_findings, loop_timeline
from timelines import simple_device_work

from ffm.errors import DocumentError, FfmError
from ffm.model.compiled import PLAIN_ROWS
from ffm.model.device import Action, DeviceWork, Encounters, LockWaits, Role
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.necessity.reasons import Reason
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.report.site import site
from ffm.results.best_parts import best_subsequences
from ffm.results.columnar.timeline_file import load_results_timeline, save_timeline
from ffm.results.documents.analysis import Group, PinnedMemory, StageCost
from ffm.results.documents.benefit import Basis, Benefit
from ffm.results.documents.notes import SeveralProcesses
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Stack
from ffm.results.estimates import Estimates
from ffm.results.stored import Results, benefit_of_correcting, doing_without, open_results, subsequence
from ffm.results.variation import COSTLY_TRACING, DIFFERS, VARIES, Variation
from ffm.results.vocabulary import Because
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.problems import fetches_of, only_order_streams
from ffm.stages.analysis.results import analyse, write_results
from ffm.stages.analysis.timelines import longer_by
from tests.examples import examples
from tests.model.given_times import given_gpu_times


def measured(timeline: Timeline | None = None) -> Findings:
    """The loop of `test_results`, with what its calls do on the GPU."""
    table = loop_timeline() if timeline is None else timeline
    return dataclasses.replace(loop_findings(table), work=simple_device_work(table), probes_s=0.001)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    write_results(measured(), tmp_path)
    return open_results(tmp_path)


def replayed(benefit: Benefit | None) -> tuple[float, float, float]:
    assert benefit is not None
    assert benefit.replay_s is not None and benefit.low_s is not None and benefit.high_s is not None
    return benefit.low_s, benefit.replay_s, benefit.high_s


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
    write_results(loop_findings(), tmp_path)
    with pytest.raises(FfmError, match="--estimator carry or bound"):
        subsequence(open_results(tmp_path), 1, 1, 1, "replay")


def test_the_time_of_the_run_is_explained(results: Results) -> None:
    """20 calls: 14 ms in them per iteration, 10 ms of it waiting, and 10 ms between them."""
    explained = results.document.explained
    assert explained is not None
    assert explained.calls_s == pytest.approx(ITERATIONS * 4 / 1000)
    assert explained.work_s == pytest.approx(ITERATIONS * 10 / 1000)
    assert explained.wait_s + explained.unexplained_wait_s == pytest.approx(ITERATIONS * 10 / 1000)
    assert 0 < explained.share <= 1


def several_ranks(ranks: int) -> Findings:
    """The same loop in each of several processes at once."""
    one = loop_timeline()
    columns = {field.name: np.tile(getattr(one, field.name), ranks) for field in dataclasses.fields(Timeline)}
    columns["thread"] = np.repeat(np.arange(ranks, dtype=np.int32), len(one))
    table = Timeline(**columns)
    simple = simple_device_work(one)
    work = DeviceWork(
        action=np.tile(simple.action, ranks),
        stream=np.concatenate([np.where(simple.stream >= 0, rank, -1) for rank in range(ranks)]).astype(np.int32),
        event=np.tile(simple.event, ranks),
        partner=np.tile(simple.partner, ranks),
        copied=np.tile(simple.copied, ranks),
        measured=np.tile(simple.measured, ranks),
        process_of_thread=np.arange(ranks, dtype=np.int32),
        legacy=np.arange(ranks, dtype=np.int32),
        stream_process=np.arange(ranks, dtype=np.int32),
        events=0,
    )
    wall_s = float((one.duration + one.gap).sum()) / 1e9
    return dataclasses.replace(loop_findings(table), work=work, wall_s=wall_s)


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


def test_what_happens_on_the_gpu_survives_its_file(tmp_path: Path) -> None:
    findings = several_ranks(2)
    assert findings.work is not None
    told = dataclasses.replace(
        findings.work,
        stream_device=np.array([0, 3], np.int32),
        independent=np.array([False, True]),
        delayed=np.array([5, -1], np.int64),
        direction=np.arange(len(findings.timeline), dtype=np.uint8) % 4,
        asked=np.arange(len(findings.timeline), dtype=np.int32) % 3 - 1,
        locks=LockWaits(*(np.array([one], np.int64) for one in (0, 20, 1, 40))),
        encounters=Encounters(np.array([0, 0]), np.array([1, 2]), np.array([Role.COMES, Role.WAITS], np.uint8)),
    )
    findings = dataclasses.replace(findings, work=told)
    assert findings.work is not None
    save_timeline(findings.timeline, tmp_path / "t.arrow", None, findings.work)
    timeline, _, work = load_results_timeline(tmp_path / "t.arrow")
    assert work is not None
    assert (timeline.start == findings.timeline.start).all()
    for field in dataclasses.fields(DeviceWork):
        before, after = getattr(findings.work, field.name), getattr(work, field.name)
        if isinstance(before, LockWaits | Encounters):
            before, after = (dataclasses.astuple(one) for one in (before, after))
        assert np.array_equal(before, after), field.name


@pytest.mark.parametrize(("column", "value"), [("number", 2), ("number", -1), ("row", 10**6), ("row", -1), ("role", 8)])
def test_encounters_that_no_run_can_have_are_refused(tmp_path: Path, column: str, value: int) -> None:
    findings = several_ranks(2)
    assert findings.work is not None
    encounters = Encounters(np.array([0, 0]), np.array([1, 2]), np.array([Role.COMES, Role.WAITS], np.int64))
    getattr(encounters, column)[1] = value
    work = dataclasses.replace(findings.work, encounters=encounters)
    save_timeline(findings.timeline, tmp_path / "t.arrow", None, work)
    with pytest.raises(DocumentError):
        load_results_timeline(tmp_path / "t.arrow")


def test_the_best_parts_end_with_the_whole_sequence(results: Results) -> None:
    parts = best_subsequences(results, 1, 5, "replay")
    assert (parts[-1].start, parts[-1].end) == (1, 3)
    assert parts[-1].benefit == results.document.sequences[0].benefit
    savings = [part.benefit.replay_s or 0.0 for part in parts]
    assert savings == sorted(savings)
    assert [part.places for part in parts] == sorted({part.places for part in parts})
    assert best_subsequences(results, 1, 1, "replay") == parts[-1:]


def test_best_parts_of_imported_results_go_by_carry(tmp_path: Path) -> None:
    write_results(loop_findings(), tmp_path)
    parts = best_subsequences(open_results(tmp_path), 1, 5, "carry")
    assert parts[-1].benefit.replay_s is None
    with pytest.raises(FfmError, match="from 1"):
        best_subsequences(open_results(tmp_path), 1, 0, "carry")


def test_frees_alone_are_worth_their_waits(results: Results) -> None:
    """No allocation takes over the memory: the calls stay, the waits disappear as far as the GPU allows."""
    frees = results.timeline.kind == Kind.FREE
    assert replayed(results.estimates.of_rows(frees))[1] <= results.timeline.wait[frees].sum() / 1e9


def test_doing_without_is_answered_by_replay_whatever_the_estimator(results: Results) -> None:
    number = len(results.document.sites) - 1
    required = Verdict(kind="required", because=Because.RESULT_USED, occurrences=ITERATIONS)
    sites = [*results.document.sites]
    sites[number] = msgspec.structs.replace(sites[number], synchronization=[required])
    needed = Results(results.folder, msgspec.structs.replace(results.document, sites=sites))
    assert [doing_without(needed, other) for other in range(number)] == [None] * number
    answers = [
        site(needed.document, number + 1, estimator, doing_without(needed, number)).without
        for estimator in ("replay", "carry", "bound")
    ]
    assert answers[0] is not None and answers[0].seconds > 0
    assert answers[0].low_s <= answers[0].seconds <= answers[0].high_s <= results.document.wall_s
    assert answers == [answers[0]] * 3


def test_without_a_trace_nobody_can_tell_what_doing_without_saves(tmp_path: Path) -> None:
    write_results(loop_findings(), tmp_path)
    imported = open_results(tmp_path)
    assert imported.estimates.without(np.ones(len(imported.timeline), bool)) is None


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


@pytest.mark.parametrize(("cost_s", "pays"), [(0.001, True), (10.0, False)])
def test_pinning_is_subtracted_and_what_does_not_pay_is_not_advertised(
    tmp_path: Path, cost_s: float, pays: bool
) -> None:
    free = analyse(measured())[0]
    memory = PinnedMemory(sites=[0], bytes=1 << 20, cost_s=cost_s)
    write_results(dataclasses.replace(measured(), pinning=[memory]), tmp_path)
    results = open_results(tmp_path)
    before, site = free.sites[0].benefit.expected_s, results.document.sites[0]
    assert site.benefit.expected_s == pytest.approx(before - cost_s if pays else 0.0)
    assert site.benefit.basis is not None
    assert (site.benefit.basis.pinned_bytes == 1 << 20) == pays
    assert site.staged_s == benefit_of_correcting(results, [0]).expected_s == pytest.approx(before)
    assert replayed(results.document.everything)[1] >= max(other.benefit.expected_s for other in results.document.sites)
    assert subsequence(results, 1, 1, 1).benefit.expected_s == pytest.approx(site.benefit.expected_s)


@pytest.mark.parametrize("cost_s", [0.001, 10.0])
def test_labels_are_as_before_after_pinning_was_subtracted(cost_s: float) -> None:
    findings = measured()
    timeline, work = findings.timeline, findings.work
    assert work is not None
    times = infer_gpu_times(timeline, work)
    site = int(timeline.site[np.flatnonzero(timeline.problem)[0]])
    memory = [PinnedMemory(sites=[site], bytes=1 << 20, cost_s=cost_s)]
    copies = np.zeros(int(timeline.site.max()) + 1, np.int64)
    own, kept, sites = (np.where(timeline.problem != 0, 0, -1).astype(np.int32) for _ in range(3))
    kept.flags.writeable = False  # so that it is copied
    before = timeline.site.copy()
    found = [
        Estimates(timeline, work, copies, 10.0, lambda: times, pinning=memory).of_groups(
            label, np.zeros(1, np.int32), 1
        )
        for label in (own, kept)
    ]
    of_site = Estimates(timeline, work, copies, 10.0, lambda: times, pinning=memory).of_sites([[site]])
    assert found[0] == found[1]
    assert of_site
    assert np.array_equal(own, sites)
    assert np.array_equal(timeline.site, before)


def test_correcting_keeps_freed_memory_to_the_end_and_its_interval_ends_with_that(tmp_path: Path) -> None:
    findings = measured()
    assert findings.work is not None
    frees = np.flatnonzero((findings.timeline.kind == Kind.FREE) & (findings.timeline.problem != 0))
    findings.work.partner[frees] = frees
    write_results(findings, tmp_path)
    results = open_results(tmp_path)
    sites = np.unique(results.timeline.site[frees]).tolist()
    by_hand_low, by_hand_s, by_hand_high = replayed(results.estimates.of_sites([sites])[0])
    low, corrected_s, high = replayed(benefit_of_correcting(results, sites))
    assert (low, corrected_s) == (by_hand_low, by_hand_s)
    assert high > by_hand_high


def two_streams() -> Findings:
    """On each of two streams a kernel of 10 ms, each awaited; then 10 ms of CPU work, and a wait that stays. The other
    waits are unnecessary.
    """
    ms = 1_000_000
    launch, synchronization = int(Kind.LAUNCH), int(Kind.SYNCHRONIZATION)
    kind = np.array([launch, synchronization] * 2 + [synchronization], np.uint8)
    wait = np.array([0, 10, 0, 10, 0]) * ms
    table = Timeline(
        thread=np.zeros(5, np.int32),
        start=np.array([0, 0, 10, 10, 30]) * ms,
        duration=wait,
        wait=wait,
        gap=np.array([0, 0, 0, 10, 0]) * ms,
        site=np.array([0, 1, 0, 1, 2], np.int32),
        kind=kind,
        problem=np.where(wait > 0, Problem.UNNECESSARY_SYNCHRONIZATION, 0).astype(np.uint8),
        first_use=np.zeros(5, np.int64),
        occurrences=np.ones(5, np.int64),
    )
    work = dataclasses.replace(
        simple_device_work(table),
        action=np.array([Action.ENQUEUE, Action.WAIT_STREAM] * 2 + [Action.WAIT_CONTEXT], np.uint8),
        stream=np.array([0, 0, 1, 1, -1], np.int32),
        measured=np.array([10 * ms, -1, 10 * ms, -1, -1]),
        legacy=np.full(1, -1, np.int32),
        stream_process=np.zeros(2, np.int32),
        independent=np.ones(2, np.bool_),
    )
    return dataclasses.replace(loop_findings(table), wall_s=0.03, work=work, probes_s=0.0)


def test_corrections_keep_the_order_of_streams_and_the_expected_saving_allows_for_that(tmp_path: Path) -> None:
    """Without the waits, the kernels run side by side; corrected, one after the other."""
    write_results(two_streams(), tmp_path)
    results = open_results(tmp_path)
    _, without_s, _ = replayed(results.estimates.of_sites([[1]])[0])
    _, corrected_s, _ = replayed(benefit_of_correcting(results, [1]))
    assert without_s == pytest.approx(0.02, abs=0.001)
    assert corrected_s == pytest.approx(0.01, abs=0.001)


def test_waits_that_only_order_streams_are_listed_with_what_events_save(tmp_path: Path) -> None:
    findings = two_streams()
    waits = findings.timeline.wait > 0
    findings.timeline.problem[:] = 0
    reasons = np.where(waits, Reason.ORDERS_STREAMS, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    ordering = only_order_streams(reasons, findings.timeline)
    assert ordering.tolist() == waits.tolist()
    write_results(dataclasses.replace(findings, ordering=ordering), tmp_path)
    [wait] = open_results(tmp_path).document.ordering
    assert (wait.site, wait.occurrences) == (1, 2)
    assert wait.saving_s == pytest.approx(0.01, abs=0.001)


NO_UPLOADS = np.zeros(5, np.bool_)


@pytest.mark.parametrize(
    ("reason", "python"), [(Reason.RESULT_USED, True), (Reason.NOT_WATCHED, True), (Reason.RESULT_USED, False)]
)
def test_needed_waits_of_python_code_are_listed_with_what_not_to_wait_saves(
    tmp_path: Path, reason: Reason, python: bool
) -> None:
    """Site 1 waits twice for what the CPU uses, and site 2 once. Who wrote C++ knows what a download is."""
    findings = two_streams()
    findings.timeline.problem[:] = 0
    waits = findings.timeline.kind == Kind.SYNCHRONIZATION
    reasons = np.where(waits, reason, Reason.NOT_A_SYNCHRONIZATION).astype(np.uint8)
    fetching = fetches_of(
        reasons, np.full(5, -1, np.int32), NO_UPLOADS, findings.timeline, lines_of(7, 7, 7, python=python)
    )
    assert (fetching is not None) == python  # a column takes memory throughout the analysis
    write_results(dataclasses.replace(findings, fetching=fetching), tmp_path)
    found = [(wait.site, wait.occurrences, wait.watched) for wait in open_results(tmp_path).document.fetching]
    assert found == ([(1, 2, reason == Reason.RESULT_USED)] if python else [])


@pytest.mark.parametrize(("uploaded", "reason", "fetches"), [
    (True, Reason.NOT_WATCHED, False),
    (False, Reason.NOT_WATCHED, True),
    (True, Reason.RESULT_USED, True),
])  # fmt: skip
def test_a_wait_for_what_an_upload_reads_is_no_fetch(uploaded: bool, reason: Reason, fetches: bool) -> None:
    """What could not be watched may be its source. What the CPU was seen to use was fetched by something before it."""
    timeline = two_streams().timeline
    timeline.problem[:] = 0
    timeline.kind[:] = [Kind.LAUNCH, Kind.TRANSFER, Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.SYNCHRONIZATION]
    timeline.site[:] = [0, 1, 2, 1, 2]
    reasons = np.array([0, 0, reason, 0, reason], np.uint8)
    uploads = np.array([False, uploaded, False, uploaded, False])
    fetching = fetches_of(reasons, np.full(5, -1, np.int32), uploads, timeline, lines_of(7, 7, 7))
    assert (fetching is not None) == fetches


@pytest.mark.parametrize(("line", "saved_s"), [(7, 0.02), (8, 0.0)])
def test_a_fetch_is_done_without_its_whole_line_of_the_program(tmp_path: Path, line: int, saved_s: float) -> None:
    """In `float(array[0])`, the copy of CuPy waits (site 1), and so does what follows it (2), for nothing any more."""
    findings = two_streams()
    findings.timeline.problem[:] = 0
    findings.timeline.site[:] = [0, 1, 2, 1, 2]
    covers, used = Reason.LATER_COVERS, Reason.RESULT_USED
    reasons = np.array([0, covers, used, covers, used], np.uint8)
    fetching = fetches_of(
        reasons, np.array([-1, 2, -1, 2, -1], np.int32), NO_UPLOADS, findings.timeline, lines_of(6, line, 7)
    )
    write_results(dataclasses.replace(findings, fetching=fetching), tmp_path)
    [wait] = open_results(tmp_path).document.fetching
    assert (wait.site, wait.occurrences) == (2, 2)
    assert wait.saving_s == pytest.approx(saved_s, abs=0.001)


def lines_of(*lines: int, python: bool = True) -> list[Stack]:
    """Return the stacks of sites that are called from these lines."""
    native = Frame(module=0, offset=1)
    return [
        Stack(
            key=f"{line:032x}",
            frames=[native, Frame(module=0, offset=0, function="step", file="a.py", line=line, python=python)],
        )
        for line in lines
    ]


def test_many_questions_about_corrections_are_answered_by_compiled_passes(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a small table, too, since each asks for passes over it."""
    visits: list[int] = []

    def plainly(kernel: Callable[..., Any], rows: int, *arguments: Any) -> Any:
        visits.append(rows)
        return kernel(*arguments)

    monkeypatch.setattr("ffm.model.estimators.replay.run", plainly)
    one = benefit_of_correcting(results, [0])
    assert 0 < max(visits) <= PLAIN_ROWS
    assert benefit_of_correcting(open_results(results.folder), [0], questions=PLAIN_ROWS) == one
    assert max(visits) > PLAIN_ROWS


def test_a_fix_saves_at_most_what_its_calls_and_their_work_took_however_much_runs_differ(tmp_path: Path) -> None:
    walls = {"baseline": 1.0, "tracing": 3.0}
    costs = [StageCost(stage=stage, wall_s=wall_s, ratio=wall_s) for stage, wall_s in walls.items()]
    write_results(dataclasses.replace(measured(), costs=costs, probes_s=2.0), tmp_path)
    results = open_results(tmp_path)
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
