"""Who holds up a thread that leaves the GPU idle."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.waiting.holders import on_holders
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Stretches


def met(entries: list[tuple[int, int, int]]) -> Meetings:
    """Return meetings: the number, the thread, and when it came."""
    columns = np.array(sorted(entries), np.int64).reshape(-1, 3)
    numbers = np.unique(columns[:, 0], return_inverse=True)[1].reshape(-1)
    return Meetings(numbers, columns[:, 1], np.zeros(len(columns), np.int64), columns[:, 2])


def stretches(of: list[tuple[int, int, int]]) -> Stretches:
    """Return stretches: the thread, from when, until when."""
    columns = np.array(of, np.int64).reshape(-1, 3)
    return Stretches.on_threads(columns[:, 0], columns[:, 1], columns[:, 2])


def listed(found: Stretches) -> list[tuple[int, int, int]]:
    return list(zip(found.where.tolist(), found.begin.tolist(), found.end.tolist(), strict=True))


def test_blame_follows_the_chain_to_who_holds_the_lock() -> None:
    """Thread 0 leaves the GPU idle from 10 to 100, and waits from 20 to 80 for thread 1, which waits for thread 2 from
    30 to 60.
    """
    meetings = met([(0, 0, 20), (0, 1, 80), (1, 1, 30), (1, 2, 60)])
    found = on_holders(stretches([(0, 10, 100)]), meetings)
    assert listed(found) == [(0, 10, 20), (1, 20, 30), (2, 30, 60), (1, 60, 80), (0, 80, 100)]


def test_only_the_idle_part_of_a_wait_counts() -> None:
    meetings = met([(0, 0, 20), (0, 1, 80)])
    assert listed(on_holders(stretches([(0, 0, 10), (0, 30, 40), (0, 70, 90)]), meetings)) == [
        (0, 0, 10),
        (1, 30, 40),
        (1, 70, 80),
        (0, 80, 90),
    ]


def test_who_waits_for_nobody_is_blamed_as_before() -> None:
    meetings = met([(0, 0, 20), (0, 1, 80)])
    assert listed(on_holders(stretches([(1, 0, 100)]), meetings)) == [(1, 0, 100)]
    assert listed(on_holders(stretches([]), meetings)) == []
    assert listed(on_holders(stretches([(0, 5, 9)]), Meetings.none())) == [(0, 5, 9)]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 60)), max_size=14),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(1, 20)), max_size=5),
)
def test_the_same_time_is_covered_once(entries: list[tuple[int, int, int]], idle: list[tuple[int, int, int]]) -> None:
    """Whatever records say, also of threads that wait for each other in a circle."""
    now, parts = 0, []
    for thread, pause, lasting in idle:
        parts.append((thread, now + pause, now + pause + lasting))
        now += pause + lasting
    found = listed(on_holders(stretches(parts), met(entries)))

    def moments(of: list[tuple[int, int, int]]) -> list[int]:
        return [moment for _, begin, end in of for moment in range(begin, end)]

    assert moments(found) == moments(parts)
