"""The CPU work after each row is that between its site and the one of its thread's next row; cells add up all times."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.model.waiting.cell_kernels import add_up, first_of_pairs, look_up_pairs

SITES = 4
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, SITES - 1)), max_size=20)


@given(ROWS)
def test_pairs_of_sites_are_those_of_consecutive_rows_of_a_thread(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    thread, site = (np.array([row[side] for row in rows], np.int32) for side in range(2))
    pairs = [
        one * (SITES + 1) + (after[1] if after is not None and after[0] == of else SITES)
        for (of, one), after in zip(rows, [*rows[1:], None], strict=False)
    ]
    first = np.full(SITES * (SITES + 1), -1, np.int64)
    first_of_pairs(thread, site, SITES, first)
    assert first.tolist() == [pairs.index(pair) if pair in pairs else -1 for pair in range(len(first))]
    found = np.empty(len(rows), np.int32)
    look_up_pairs(thread, site, SITES, np.arange(len(first), dtype=np.int32), found)
    assert found.tolist() == pairs


@given(st.lists(st.lists(st.integers(-1, 3), min_size=8, max_size=8), max_size=20))
def test_cells_add_up_the_work_the_calls_and_the_gpu(rows: list[list[int]]) -> None:
    columns = [np.array([row[side] for row in rows], np.int64) for side in range(8)]
    total, counts = np.zeros((2, 4), np.int64)
    add_up(*columns, total, counts)
    expected = [[0, 0] for _ in range(4)]
    for gap, duration, waited, begin, end, *owners in rows:
        for owner, lasting in zip(owners, (gap, duration - waited, end - begin), strict=True):
            if owner >= 0 and lasting > 0:
                expected[owner][0] += lasting
                expected[owner][1] += 1
    assert [list(row) for row in zip(total.tolist(), counts.tolist(), strict=True)] == expected
