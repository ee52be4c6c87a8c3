"""How long copies take, derived from a run's transfers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.copies import copy_times

MEGABYTE = 1 << 20


def times(*stacks: tuple[int, int, float, float]) -> list[int]:
    """For stacks given as bytes, count, seconds in the driver, seconds of waiting."""
    transferred, count, total_s, wait_s = (np.array(column) for column in zip(*stacks, strict=True))
    return copy_times(transferred, count, total_s, wait_s).tolist()


def test_the_fastest_transfer_that_waits_tells_the_speed() -> None:
    fast, slow, small = (10 * MEGABYTE, 10, 0.01, 0.009), (10 * MEGABYTE, 10, 0.05, 0.05), (1000, 10, 0.001, 0.001)
    assert times(fast, slow, small) == [1_000_000, 1_000_000, 95]


def test_transfers_that_do_not_wait_tell_nothing() -> None:
    assert times((10 * MEGABYTE, 10, 0.01, 0.001), (0, 5, 1.0, 1.0)) == [0, 0]


def test_small_transfers_tell_nothing() -> None:
    assert times((1000, 1, 1e-6, 1e-6)) == [0]


def test_no_stacks_no_times() -> None:
    assert copy_times(*(np.empty(0) for _ in range(4))).tolist() == []  # type: ignore[arg-type]


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 10**6), st.floats(1e-6, 1e4), st.floats(0, 1)), min_size=1
    )
)
def test_the_fastest_never_takes_longer_than_it_took(stacks: list[tuple[int, int, float, float]]) -> None:
    rows = [(size, count, total, total * share) for size, count, total, share in stacks]
    answers = times(*rows)
    assert all(answer >= 0 for answer in answers)
    for (size, count, total, wait), answer in zip(rows, answers, strict=True):
        if count and size >= 64 * 1024 * count and wait > total / 2:
            assert answer <= total / count * 1e9 * (1 + 1e-9) + 1
