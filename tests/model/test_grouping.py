"""Rows are numbered and ordered as by sorting, whichever way is taken: small tables, tables of places, hashing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.compiled import PLAIN_ROWS
from ffm.model.grouping import (
    PART_ROWS,
    RADIX_GROUPS,
    numbered,
    numbered_by_part,
    parts,
    ranks_within,
    sorted_within,
    sums_by,
)

WIDE = [0, 1, 5, 2**40, 2**63 + 1]


def expected(*columns: NDArray[np.generic]) -> tuple[list[int], list[int]]:
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    distinct = sorted(set(rows))
    place = {row: number for number, row in enumerate(distinct)}
    return [place[row] for row in rows], [rows.index(row) for row in distinct]


@pytest.mark.parametrize("times", [1, 1 + PLAIN_ROWS // 4])
@given(rows=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(WIDE), st.booleans()), min_size=4, max_size=12))
def test_numbers_follow_the_order_of_the_rows(times: int, rows: list[tuple[int, int, bool]]) -> None:
    small, wide, flag = (np.array(column) for column in zip(*rows, strict=True))
    columns = [np.tile(small, times), np.tile(wide.astype(np.uint64), times), np.tile(flag, times)]
    number, first = numbered(*columns)
    numbers, firsts = expected(small, wide, flag)
    assert number.tolist() == numbers * times
    assert first.tolist() == firsts


@given(
    rows=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(WIDE), st.booleans()), min_size=4, max_size=12),
    others=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(WIDE), st.booleans()), max_size=12),
)
def test_rows_get_the_same_numbers_part_by_part(
    rows: list[tuple[int, int, bool]], others: list[tuple[int, int, bool]]
) -> None:
    times = PART_ROWS // len(rows) + 1
    kinds = np.int64, np.uint64, np.bool_
    columns = [
        np.array(column, kind) for column, kind in zip(zip(*(rows * times + others), strict=True), kinds, strict=True)
    ]
    found = numbered_by_part(len(columns[0]), lambda part: [column[part] for column in columns])
    for one, other in zip(found, numbered(*columns), strict=True):
        assert one.tolist() == other.tolist()


def test_nothing_is_numbered_of_no_rows() -> None:
    number, first = numbered_by_part(0, lambda part: [])
    assert (len(number), len(first)) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=20))
def test_sums_are_those_of_each_number(rows: list[tuple[int, int]]) -> None:
    number, value = (np.array([row[side] for row in rows], np.int64) for side in range(2))
    assert sums_by(number, 5, value).tolist() == [sum(v for n, v in rows if n == one) for one in range(5)]


@pytest.mark.parametrize("count", [3, PLAIN_ROWS + 1])
def test_many_wide_values_keep_apart(count: int) -> None:
    values = np.random.default_rng(1).permutation(count).astype(np.uint64) << np.uint64(44)
    number, first = numbered(values)
    assert (number == np.argsort(np.argsort(values))).all()
    assert (values[first] == np.sort(values)).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_close_values_at_the_limits_of_their_type_are_in_order(kind: type[np.integer]) -> None:
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    low, high = (least, most) if most < 256 else (most - 200, most)
    values = np.array([high, low, high - 1] * PLAIN_ROWS, kind)
    number, first = numbered(values)
    assert number[:3].tolist() == [2, 0, 1]
    assert first.tolist() == [1, 2, 0]
    assert (number[3:] == number[:-3]).all()


def test_no_rows_have_no_numbers() -> None:
    number, first = numbered(np.empty(0, np.int32), np.empty(0, np.uint64))
    assert len(number) == len(first) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), min_size=1, max_size=40))
def test_ranks_and_sorted_values(rows: list[tuple[int, int]]) -> None:
    number, value = (np.array(column) for column in zip(*rows, strict=True))
    earlier = [sum(other == one for other, _ in rows[:place]) for place, (one, _) in enumerate(rows)]
    assert ranks_within(number, 5).tolist() == earlier
    for groups in (5, RADIX_GROUPS + 1):
        assert sorted_within(number, value, groups).tolist() == [value for _, value in sorted(rows)]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("most", [1, 3, 1_000, 2**40])
def test_values_at_ranks_are_those_of_sorting_however_often_they_occur(most: int, kind: type) -> None:
    random = np.random.default_rng(most)
    number = random.integers(0, 3, 120_000)
    value = np.where(random.random(len(number)) < 0.5, 7, random.integers(0, most, len(number))).astype(kind)
    counts = np.bincount(number)
    first = np.cumsum(counts) - counts
    ranks = [np.zeros(3, np.int64), counts // 20, counts // 2, counts // 2 + 1, counts - 1]
    found = sorted_within(number, value.copy(), 3, *ranks)
    whole = sorted_within(number, value.copy(), 3)
    for rank in ranks:
        assert found[first + rank].tolist() == whole[first + rank].tolist()


@pytest.mark.parametrize("least", [0, 3 * PART_ROWS + 1])
def test_parts_are_all_rows_once(least: int) -> None:
    rows = 5 * PART_ROWS + 7
    found = list(parts(rows, least))
    assert np.concatenate([np.arange(rows)[part] for part in found]).tolist() == list(range(rows))
    assert all(part.stop - part.start >= max(least, PART_ROWS) for part in found)
