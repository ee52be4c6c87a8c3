"""What is said about incomplete measurements."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.layout import constant
from ffm.report.notes import sentence
from ffm.results.documents.analysis import StageCost
from ffm.results.documents.measured import Baseline, RecordedLockWaits, Tracing, WaitLatency
from ffm.results.documents.notes import AnyNote, FirstLockWaits, HostFunctions, UnknownLatency
from ffm.results.documents.run import Run
from ffm.results.variation import DIFFERS, EXPECTED, VARIES, Variation
from ffm.stages.analysis.notes import host_function_notes, measurement_notes, tracing_notes
from tests.measured_run import a_run


def notes_with(latency: WaitLatency) -> list[AnyNote]:
    baseline = Baseline(waits=[], functions=[])
    tracing = Tracing(events="", host_memory="", probe_cost_ns=0.0, wait_latency=latency)
    return measurement_notes(baseline, tracing)


def test_that_the_latency_of_waits_is_not_known_is_said_with_the_reason() -> None:
    assert notes_with(WaitLatency(least=5000)) == []
    [note] = notes_with(WaitLatency(least=0, unknown="the probe ended with -11"))
    assert note == UnknownLatency(problem="the probe ended with -11")


def ran(stage: str, wall_s: float, waiting_span_s: float | None) -> Run:
    return a_run(stage=stage, wall_s=wall_s, waiting_span_s=waiting_span_s)


@pytest.mark.parametrize(
    ("spans_s", "said"),
    [((0.8, 1.2), "took 1.5 times the program's time from its first waits to the last"),
     ((0.1, 1.2), "took 3.0 times the program's time."),
     ((None, None), "took 3.0 times the program's time.")],
)  # fmt: skip
def test_that_tracing_was_costly_is_said_of_the_time_that_is_compared(
    spans_s: tuple[float | None, float | None], said: str
) -> None:
    baseline = Baseline(waits=[], functions=[], run=ran("baseline", 1.0, spans_s[0]))
    tracing = Tracing(events="", host_memory="", probe_cost_ns=0.0, run=ran("tracing", 3.0, spans_s[1]))
    assert any(said in sentence(note) for note in measurement_notes(baseline, tracing))


def test_that_only_the_first_waits_for_locks_are_known_is_said() -> None:
    most = constant("FFM_MOST_LOCK_WAITS")

    def notes_on(*waits_of_processes: int) -> list[AnyNote]:
        process = [number for number, waits in enumerate(waits_of_processes) for _ in range(waits)]
        nothing = [0] * len(process)
        locks = RecordedLockWaits(process=process, waiter=nothing, since=nothing, releaser=nothing, released=nothing)
        known = WaitLatency(least=5000)
        return tracing_notes(Tracing(events="", host_memory="", probe_cost_ns=0.0, wait_latency=known, locks=locks))

    assert notes_on(most - 1, most - 1) == []
    assert notes_on(0, most) == [FirstLockWaits(waits=most)]


def test_that_waits_for_functions_of_the_host_are_not_seen_is_said() -> None:
    catalogue = load_catalogue()
    functions = [catalogue[name].index for name in ("cuLaunchHostFunc", "cuLaunchKernel", "cuLaunchHostFunc")]
    assert host_function_notes({"function": np.array(functions)}) == [HostFunctions(calls=2)]
    assert host_function_notes({"function": np.array(functions[1:2])}) == []


def differing(found: Variation) -> tuple[float, float]:
    """By how much runs differ, and the share of an estimate that is uncertain for other reasons."""
    return found.run_s, found.share


def variation(
    bare_s: float, traced_s: float, probes_s: float, delayed_s: tuple[float, float] = (0.0, 0.0)
) -> Variation:
    bare = StageCost(stage="baseline", wall_s=bare_s, ratio=1.0, delayed_s=delayed_s[0])
    traced = StageCost(stage="tracing", wall_s=traced_s, ratio=traced_s / bare_s, delayed_s=delayed_s[1])
    return Variation.of([bare, traced], probes_s, None)


def test_an_interval_covers_what_differs_between_the_runs_without_the_probes() -> None:
    assert differing(variation(1.0, 1.125, 0.125)) == (VARIES, DIFFERS)  # they are never quite the same
    assert differing(variation(1.0, 1.125, 0.0)) == (0.125, DIFFERS)
    assert differing(variation(1.0, 0.75, 0.0)) == (0.25, DIFFERS)
    assert Variation.of([], 0.0, None) == Variation(0.0, DIFFERS)


def test_a_saving_differs_by_the_share_by_which_what_is_compared_differs() -> None:
    assert variation(2.0, 2.25, 0.0).of_saving == pytest.approx(DIFFERS + 0.125)
    assert spanned(baseline=0.75, tracing=0.875).of_saving == pytest.approx(DIFFERS + 0.125 * EXPECTED / 0.75)
    assert variation(1.0, 1.125, 0.0, delayed_s=(0.0, 5.0)).of_saving == 1.0
    assert Variation.of([], 0.0, None).of_saving == DIFFERS


def test_costly_tracing_makes_an_estimate_less_certain() -> None:
    assert differing(variation(1.0, 4.0, 3.0)) == (VARIES, DIFFERS + 0.75)


def test_an_interval_covers_the_time_that_others_had_the_processor() -> None:
    assert differing(variation(1.0, 1.125, 0.0, delayed_s=(0.0, 0.5))) == (0.625, DIFFERS)


def test_what_others_took_only_in_the_traced_run_is_surely_saved_by_no_fix() -> None:
    costs = {"baseline": 0.25, "tracing": 0.5, "memory": 0.125, "sync-use": 0.25}
    stages = [StageCost(stage=stage, wall_s=1.0, ratio=1.0, delayed_s=delayed) for stage, delayed in costs.items()]
    assert Variation.of(stages, 0.0, None).delayed_s == 0.375
    assert variation(1.0, 1.0, 0.0, delayed_s=(0.5, 0.25)).delayed_s == 0.0


def spanned(**spans_s: float) -> Variation:
    """Return the variation of a run of a second; that of stage 2 took half a second more, that of stage 4 as long."""
    walls_s = {"baseline": 1.0, "tracing": 1.5, "sync-use": 1.0}
    return Variation.of(
        [
            StageCost(stage=stage, wall_s=wall_s, ratio=wall_s, waiting_span_s=spans_s.get(stage.replace("-", "_")))
            for stage, wall_s in walls_s.items()
        ],
        0.0,
        None,
    )


def test_getting_into_the_program_makes_no_estimate_less_certain() -> None:
    assert differing(spanned(baseline=0.75, tracing=0.75)) == (VARIES, DIFFERS)
    assert differing(spanned(baseline=0.75, tracing=0.875)) == (0.125 * EXPECTED, DIFFERS)
    assert differing(spanned(baseline=0.75, tracing=0.625)) == (0.125 * EXPECTED, DIFFERS)


def test_waits_that_span_little_of_the_run_do_not_stand_for_it() -> None:
    assert spanned(baseline=0.25, tracing=0.25) == spanned(tracing=0.75) == spanned()
    assert spanned().run_s == 0.5


def test_a_run_with_probes_that_is_shorter_all_the_same_shows_how_runs_differ() -> None:
    assert differing(spanned(baseline=0.75, tracing=0.875, sync_use=0.625)) == (0.25 * EXPECTED, DIFFERS)
    assert differing(spanned(baseline=0.75, tracing=0.875, sync_use=1.0)) == (0.125 * EXPECTED, DIFFERS)


def test_time_that_others_had_the_processor_counts_once() -> None:
    assert differing(variation(1.0, 1.125, 0.0, delayed_s=(0.0, 0.125))) == (0.125, DIFFERS)
    assert differing(variation(1.0, 1.1875, 0.0, delayed_s=(0.0, 0.0625))) == (0.1875, DIFFERS)


def test_what_threads_of_a_program_take_from_each_other_in_every_run_is_certain() -> None:
    assert differing(variation(1.0, 1.125, 0.0, delayed_s=(0.5, 0.5))) == (0.125, DIFFERS)


def test_a_run_is_slower_if_its_waits_span_more() -> None:
    assert spanned(baseline=0.75, tracing=0.9375).slower == 1.25
    assert spanned(baseline=0.75, tracing=0.625).slower == 1.0
    # Getting into the program takes longer, too, and slows down no call.
    assert spanned().slower == variation(1.0, 1.5, 0.0).slower == 1.0
