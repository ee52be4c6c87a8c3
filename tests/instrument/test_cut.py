"""When a run that does not end by itself has been measured long enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from ffm.instrument.recording.progress import Progress
from ffm.instrument.session.cut import SLOWEST, Lasting

STARTED = 100.0
"""Seconds on the clock of the recordings."""


def recording(operations: int) -> Progress:
    return Progress((-1, 0), operations, round(STARTED * 1e9) if operations else 0)


def over(lasting: Lasting, after: float, *operations: int) -> bool:
    first_ns = round(STARTED * 1e9) if any(operations) else 0
    return lasting.is_over([recording(count) for count in operations], first_ns, after, STARTED + after)


def test_the_time_counts_from_the_first_call() -> None:
    assert not over(Lasting(2.0), 1.9, 7)
    assert over(Lasting(2.0), 2.1, 7)
    assert not Lasting(2.0).is_over([recording(7)], round((STARTED + 1) * 1e9), 2.5, STARTED + 2.5)


def test_a_program_that_calls_nothing_is_given_up_late() -> None:
    assert not over(Lasting(2.0), 2.0 * SLOWEST, 0)
    assert over(Lasting(2.0), 2.1 * SLOWEST, 0)
    assert over(Lasting(2.0), 2.1 * SLOWEST)


def test_a_later_run_is_over_when_each_process_has_made_as_many_operations() -> None:
    lasting = Lasting(20.0, (5, 3))
    assert not over(lasting, 1.0, 5, 2)
    assert not over(lasting, 1.0, 9)
    assert over(lasting, 1.0, 5, 3)
    assert over(lasting, 21.0, 1, 1)


@given(some.lists(some.integers(1, 9), min_size=1), some.floats(0, 50), some.floats(0, 50))
def test_a_run_that_is_over_stays_over(operations: list[int], early: float, later: float) -> None:
    lasting = Lasting(20.0, tuple(operations))
    if over(lasting, early, *operations):
        assert over(lasting, early + later, *(count + 1 for count in operations))
