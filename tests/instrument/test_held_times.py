"""How much of a run's time hooking takes: for a single process, and for ranks that wait for each other."""

from __future__ import annotations

import itertools

import pytest

from ffm.instrument.session import held_times
from ffm.instrument.session.held_times import Held, HeldTimes

LAUNCHER, FIRST, SECOND = 10, 11, 12
RUN = (0.0, 100.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by a second whenever it is read."""
    seconds = itertools.count()
    monkeypatch.setattr(held_times.time, "monotonic", lambda: float(next(seconds)))


@pytest.mark.usefixtures("clock")
def test_the_time_of_the_first_process_counts_where_it_uses_the_driver() -> None:
    times = HeldTimes(lambda: {FIRST, SECOND})
    with times.holding(FIRST):  # 0 to 1
        pass
    with times.holding(SECOND):
        pass
    assert times.of_run(FIRST, {FIRST, SECOND}, RUN) == Held(seconds=1.0, beside_s=1.0)


@pytest.mark.usefixtures("clock")
def test_the_clock_stands_still_while_any_rank_is_held() -> None:
    alive = {LAUNCHER}
    times = HeldTimes(lambda: alive)
    with times.holding(LAUNCHER):  # 0 to 1
        pass
    alive |= {FIRST, SECOND}
    with times.holding(FIRST), times.holding(SECOND):  # 2 to 5, and 3 to 4
        pass
    times.add(SECOND, 2.0)  # 2 to 6, in parallel with the first
    assert times.of_run(LAUNCHER, {FIRST, SECOND}, RUN) == Held(seconds=1.0 + 4.0, beside_s=4.0)


@pytest.mark.usefixtures("clock")
def test_a_launcher_that_runs_on_is_not_a_process_beside() -> None:
    times = HeldTimes(lambda: {LAUNCHER, FIRST})
    with times.holding(FIRST):
        pass
    assert times.of_run(LAUNCHER, {FIRST}, RUN) == Held(seconds=1.0, beside_s=0.0)


@pytest.mark.usefixtures("clock")
def test_only_what_is_within_the_run_counts() -> None:
    """A run of a fixed time can be over while its process is still being hooked."""
    times = HeldTimes(lambda: {FIRST})
    with times.holding(FIRST):  # 0 to 1
        pass
    times.add(FIRST, 2.0)  # to 2
    times.add(FIRST, 2.0)  # to 3
    times.add(FIRST, 1.5)  # to 4
    assert times.of_run(FIRST, {FIRST}, (0.5, 2.5)) == Held(seconds=0.5 + 1.0, beside_s=0.0)
