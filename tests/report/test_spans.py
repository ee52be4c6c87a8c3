"""Spans of a picture in time that are joined where they are short, from blocks of any size."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ffm.report.formats.spans import Spans, bounded

MOST = 20
LENGTH = 10_000

few = st.integers(0, 2)
span = st.tuples(few, st.integers(0, LENGTH - 1), st.integers(1, 700), few, st.integers(-1, 2))


def spans_of(rows: list[tuple[int, int, int, int, int]]) -> Spans:
    lane, begin, taken, kind, name = np.array(rows, np.int64).reshape(-1, 5).T
    return Spans.single(lane, begin, begin + taken, kind, name)


@given(st.lists(span, max_size=120), st.lists(st.integers(0, 120), max_size=4), st.booleans())
def test_blocks_of_any_size_give_the_same_picture(
    rows: list[tuple[int, int, int, int, int]], cuts: list[int], in_lanes: bool
) -> None:
    ends = [0, *sorted(cuts), len(rows)]
    blocks = [spans_of(rows[begin:end]) for begin, end in pairwise(ends)]
    first = min((row[1] for row in rows), default=0)
    whole, pieces = (bounded(some, first, LENGTH, MOST, in_lanes=in_lanes) for some in ([spans_of(rows)], blocks))
    for column in fields(Spans):
        np.testing.assert_array_equal(getattr(whole, column.name), getattr(pieces, column.name))
    assert whole.count.sum() == len(rows)
    assert whole.taken.sum() == sum(row[2] for row in rows)
    assert (np.diff(whole.begin) >= 0).all()


@given(st.lists(span, max_size=120))
def test_no_more_spans_than_wanted_are_left_unless_none_can_be_joined_further(
    rows: list[tuple[int, int, int, int, int]],
) -> None:
    shown = bounded([spans_of(rows)], min((row[1] for row in rows), default=0), LENGTH, MOST)
    assert len(shown) <= max(MOST, 2 * len(np.unique(shown.lane)))


def test_a_joined_span_has_the_kind_and_the_lane_that_take_most_and_a_name_if_all_have_it() -> None:
    one, other = (0, 0, 3, 1, 7), (1, 4, 2, 2, 7)
    rows = [one, other, (1, 7, 2, 2, 7), *((2, 100 * number, 50, 0, number % 2) for number in range(1, 60))]
    shown = bounded([spans_of(rows)], 0, LENGTH, MOST, in_lanes=False)
    first = [getattr(shown, name)[0] for name in ("lane", "begin", "kind")]
    assert first == [2, 0, 0]
    assert shown.name[0] < shown.last[0]
    alike = bounded([spans_of([(0, number, 1, 1, 7) for number in range(100)])], 0, LENGTH, MOST)
    assert (alike.name == 7).all()
    assert (alike.last == 7).all()
