"""Intervals that are joined cover each place once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.union import Union, gaps, lengths

Spans = list[tuple[int, int]]
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12)
"""Begins and lengths."""


def union(spans: Spans) -> Union:
    begin = np.array([start for start, _ in spans], np.int64)
    return Union.of(begin, begin + np.array([length for _, length in spans], np.int64))


def places(spans: Spans) -> set[int]:
    return {place for start, length in spans for place in range(start, start + length)}


def array(value: int) -> NDArray[np.int64]:
    return np.array([value], np.int64)


@given(SPANS, st.integers(0, 50), st.integers(0, 50))
def test_a_union_covers_each_place_once(spans: Spans, one: int, other: int) -> None:
    found = union(spans)
    assert found.length == len(places(spans))
    low, high = sorted((one, other))
    assert found.within(array(low), array(high)).tolist() == [sum(low <= place < high for place in places(spans))]


@given(SPANS, SPANS)
def test_unions_overlap_where_both_cover_a_place(some: Spans, others: Spans) -> None:
    assert union(some).overlaps(union(others)) == bool(places(some) & places(others))


@given(SPANS, SPANS)
def test_the_chosen_intervals_and_the_others_are_measured_apart(some: Spans, others: Spans) -> None:
    both = [*others, *some]
    begin = np.array([start for start, _ in both], np.int64)
    end = begin + np.array([length for _, length in both], np.int64)
    chosen = np.arange(len(both)) >= len(others)
    expected = len(places(both)), len(places(some)), len(places(others))
    assert lengths(begin, end, chosen) == expected


@given(SPANS)
def test_gaps_are_what_nothing_covers_until_the_next_interval_begins(spans: Spans) -> None:
    begin = np.array([start for start, _ in spans], np.int64)
    end = begin + np.array([length for _, length in spans], np.int64)
    behind, since, until = (column.tolist() for column in gaps(begin, end))
    between = {place for first, last in zip(since, until, strict=True) for place in range(first, last)}
    begins = [start for start, length in spans if length]
    assert between == set(range(min(begins, default=0), max(begins, default=0))) - places(spans)
    assert since == sorted(since) and all(last > first for first, last in zip(since, until, strict=True))
    assert [begin[number] for number in behind] == until
    assert all(spans[number][1] for number in behind)
