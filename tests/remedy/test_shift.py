"""How surely two kinds of runs differ, compared with examples worked by hand and with all permutations."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.remedy.shift import CONFIDENCE, Shift, shift_between

TIMES = st.lists(st.floats(0, 100), min_size=1, max_size=6)


def test_one_run_each_tells_nothing() -> None:
    assert shift_between([2.0], [1.0]) is None


def test_three_runs_each_leave_one_chance_in_ten() -> None:
    """Only one of twenty orders has all of one kind first, and one all of the other."""
    found = shift_between([5.0, 6.0, 9.0], [1.0, 2.0, 3.0])
    assert found == Shift(low=2.0, high=8.0, confidence=pytest.approx(0.9))
    assert found.excludes_zero


def test_runs_that_overlap_cannot_be_told_apart() -> None:
    found = shift_between([5.0, 6.0, 9.0], [1.0, 2.0, 5.5])
    assert found is not None and not found.excludes_zero


def test_from_four_runs_on_an_interval_is_as_sure_as_it_is_asked_to_be() -> None:
    for runs in range(4, 12):
        found = shift_between([10.0 + run for run in range(runs)], [float(run) for run in range(runs)])
        assert found is not None and CONFIDENCE <= found.confidence < 1


@given(TIMES, TIMES)
def test_exchanging_the_kinds_turns_the_interval_around(first: list[float], second: list[float]) -> None:
    one, other = shift_between(first, second), shift_between(second, first)
    if one is None or other is None:
        assert one is other
    else:
        assert (one.low, one.high) == (-other.high, -other.low)
        assert one.confidence == pytest.approx(other.confidence)


@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 3), (4, 4), (5, 3)])
def test_the_confidence_is_how_many_orders_of_equal_runs_hold_zero(first: int, second: int) -> None:
    """Without a difference, every order of the runs is as likely as any other."""
    places = range(first + second)
    held = total = 0
    for chosen in combinations(places, first):
        found = shift_between([float(place) for place in chosen], [float(p) for p in places if p not in chosen])
        assert found is not None
        held += not found.excludes_zero
        total += 1
    assert held / total == pytest.approx(found.confidence)
