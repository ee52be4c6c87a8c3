"""What `ffm apply-remedy` prints: how certain the saving is, and which corrections were taken back."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from ffm.remedy.measured_costs import Paid
from ffm.remedy.shift import Shift
from ffm.report.remedies.outcome import Expected, Found, Outcome, SiteCount, expected_of
from ffm.report.terminal.outcome import lines
from ffm.results.documents.benefit import Benefit

OUTCOME = Outcome(
    application="solver",
    command=["./solver"],
    stdin="",
    runs=3,
    bare_s=1.0,
    corrected_s=0.9,
    saving_s=0.1,
    saving_percent=10.0,
    saving_interval=Shift(0.08, 0.12, 0.9),
    estimator="replay",
    estimate_s=0.1,
    estimate_low_s=0.09,
    estimate_high_s=0.11,
    expected=Expected(0.09, 0.07, 0.11),
    ratio=1.0,
    twin_s=None,
    twin_saving_s=None,
    bare_runs_s=[1.0] * 3,
    corrected_runs_s=[0.9] * 3,
    twin_runs_s=[],
    remedies=[],
    synchronizations_removed=0,
    removed={},
    fallbacks={},
    memory={},
    sites=[],
    left=[],
    differences=[],
    notes=[],
)


def screen(**changes: object) -> str:
    """The screen's words, without line breaks."""
    return " ".join(" ".join(lines(dataclasses.replace(OUTCOME, **changes))).split())  # type: ignore[arg-type]


def test_the_measured_saving_has_an_interval() -> None:
    shown = screen()
    assert "saved 0.100 s 10.0 % of the run, from 0.080 to 0.120 s (90 % sure)" in shown
    assert "cannot be told from 0" not in shown


def test_what_correcting_costs_is_shown_apart_from_the_estimate() -> None:
    shown = screen()
    assert "estimated 0.100 s by replay, from 0.090 to 0.110 s" in shown
    assert "expected 0.090 s less what correcting costs, from 0.070 to 0.110 s" in shown


@given(st.floats(0, 10), st.floats(0, 1), st.floats(0, 1), st.floats(0, 10), st.floats(0, 1))
def test_corrections_are_expected_to_save_at_most_what_fixes_do(
    high_s: float, likely: float, low: float, cost_s: float, of_cost: float
) -> None:
    likely_s = high_s * likely
    fixed = Benefit(carry_s=likely_s, bound_s=high_s, low_s=likely_s * low, high_s=high_s)
    expected = expected_of(fixed, Paid(cost_s * of_cost, cost_s, 0.0))
    assert expected.low_s is not None and expected.high_s is not None
    assert expected.low_s <= expected.seconds <= expected.high_s
    assert likely_s - cost_s <= expected.seconds <= likely_s
    free = expected_of(fixed, Paid(0.0, 0.0, 0.0))
    assert (free.seconds, free.low_s, free.high_s) == (likely_s, fixed.low_s, high_s)


def test_a_saving_within_the_noise_says_so() -> None:
    assert "cannot be told from 0" in screen(saving_interval=Shift(-0.02, 0.12, 0.9))
    assert "cannot be told from 0" not in screen(saving_interval=Shift(-0.2, -0.12, 0.9))


def test_one_run_each_leaves_the_saving_uncertain() -> None:
    shown = screen(runs=1, saving_interval=None)
    assert "10.0 % of the run One run each does not tell" in shown


def test_corrections_that_were_taken_back_are_named_with_their_cost() -> None:
    back = SiteCount(7, "cuMemcpyDtoH main.cu:9", ["async-transfers"], 100, 40, 0, 60, Found.WENT_BACK, 0.31)
    helped = SiteCount(8, "cuMemFree main.cu:11", ["cudaFree-hoist"], 100, 90, 0, 10, Found.HELPED, -0.2)
    shown = screen(sites=[back, helped])
    assert "2 of 2 call sites; 1 helped, 1 went back" in shown
    assert "cuMemcpyDtoH main.cu:9 (site 7) went back: correcting it cost 31 % of the time from call to call" in shown
    assert "main.cu:11 (site 8) went back" not in shown


def test_no_line_is_longer_than_the_terminal_is_wide() -> None:
    note = "the runs differ " + "far more " * 30
    for width in (60, 80, 120):
        printed = list(lines(dataclasses.replace(OUTCOME, notes=[note]), width))
        assert max(map(len, printed)) <= width
        assert " ".join(" ".join(printed).split()) == screen(notes=[note])
