"""Earlier rows with the same identity, and the last event of a group: by definition, one row at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.grouping import numbered
from ffm.model.transfers import allocations_of, first_of, latest_of, previous_of

IDENTITIES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.booleans()))
TIMED = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 5)), max_size=12)


def columns_of(rows: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of identities."""
    small, large, flag = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(small, np.int64), np.array(large, np.uint64), np.array(flag, bool)


@given(IDENTITIES)
def test_first_and_previous_rows_have_the_same_identity(rows: list[tuple[int, int, bool]]) -> None:
    identity = columns_of(rows)
    assert first_of(*identity).tolist() == [rows.index(row) for row in rows]
    previous = [max([n for n in range(index) if rows[n] == row], default=index) for index, row in enumerate(rows)]
    number, firsts = numbered(*identity)
    assert previous_of(number, len(firsts)).tolist() == previous


@given(TIMED, TIMED, st.booleans())
def test_the_latest_event_is_the_last_of_its_group(
    rows: list[tuple[int, int]], events: list[tuple[int, int]], before: bool
) -> None:
    def latest(group: int, time: int) -> int:
        until = time - before
        mine = [(when, number) for number, (of, when) in enumerate(events) if of == group and when <= until]
        return max(mine, default=(0, -1))[1]

    group, time = np.array(rows, np.int64).reshape(-1, 2).T
    event_group, event_time = np.array(events, np.int64).reshape(-1, 2).T
    found = latest_of(group, time, event_group, event_time, before=before)
    assert found.tolist() == [latest(*row) for row in rows]


def test_an_address_belongs_to_the_latest_allocation_at_its_place() -> None:
    # 100..110 is allocated at time 1, again with 4 bytes at time 5; 120..121 at time 2.
    allocated, sizes, times = np.array([100, 120, 100], np.uint64), np.array([10, 1, 4]), np.array([1, 2, 5])
    address = np.array([99, 100, 109, 109, 103, 120, 121, 120], np.uint64)
    time = np.array([9, 0, 4, 5, 5, 2, 2, 1])
    assert allocations_of(address, time, allocated, sizes, times).tolist() == [-1, -1, 0, -1, 2, 1, -1, -1]
