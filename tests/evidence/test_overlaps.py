"""The last event that touched the same addresses: by definition, one row at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ffm.evidence.transfers.overlaps import Spans, latest_overlapping
from tests.model.compiling import all_compiled

SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 6)), max_size=14)


def spans_of(rows: list[tuple[int, int, int]]) -> Spans:
    """Return spans from their beginnings, lengths and times."""
    begin, bytes_, time = np.array(rows, np.int64).reshape(-1, 3).T
    return Spans(begin.astype(np.uint64), (begin + bytes_).astype(np.uint64), time)


@given(SPANS, SPANS)
@example([(1, 0, 1)], [(0, 2, 0)])  # no addresses, in the middle of some
def test_the_latest_overlapping_event_is_the_last_with_an_address_in_common(
    rows: list[tuple[int, int, int]], events: list[tuple[int, int, int]]
) -> None:
    def latest(begin: int, length: int, time: int) -> int:
        mine = [
            (when, number)
            for number, (of, bytes_, when) in enumerate(events)
            if when < time and max(of, begin) < min(of + bytes_, begin + length)
        ]
        return max(mine, default=(0, -1))[1]

    assert latest_overlapping(spans_of(rows), spans_of(events)).tolist() == [latest(*row) for row in rows]


def test_compiled_code_finds_the_same() -> None:
    rows = [(place, 2, 2 * place) for place in range(8)]
    events = [(place, 3, time) for time in range(0, 16, 3) for place in (0, 2, 4)]
    plain = latest_overlapping(spans_of(rows), spans_of(events))
    with all_compiled():
        assert latest_overlapping(spans_of(rows), spans_of(events)).tolist() == plain.tolist()
