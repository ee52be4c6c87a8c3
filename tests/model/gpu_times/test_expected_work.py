"""Tests of which work is equal, and of medians that are found for some groups alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ffm.model.compiled import compiled
from ffm.model.gpu_times import expected_kernels, expected_work
from ffm.model.gpu_times.segment_lengths import SEEN_SHARE


def test_medians_of_some_groups_are_those_of_all_and_the_others_are_unknown() -> None:
    random = np.random.default_rng(5)
    for groups in (1, 7, 70_000):  # so many are sorted in another way
        group = random.integers(0, groups, 30_000)
        value = random.integers(0, 1000, len(group)).astype(np.float64)
        source = random.integers(0, 3, len(group)).astype(np.uint8)
        asked = random.random(groups) < 0.5
        total = np.bincount(group, minlength=groups)

        found = expected_work._medians_of(asked, group, value, source, 1, total)

        of_group: dict[int, list[float]] = {}
        for number, one, told in zip(group.tolist(), value.tolist(), source.tolist(), strict=True):
            if told >= 1:
                of_group.setdefault(number, []).append(one)
        expected = np.full(groups, -1.0)
        for number, values in of_group.items():
            if asked[number] and len(values) >= SEEN_SHARE * total[number]:
                expected[number] = sorted(values)[len(values) // 2]
        assert np.array_equal(found, expected)


def test_nothing_asked_is_nothing_found() -> None:
    nothing = expected_work._medians_of(
        np.zeros(2, bool), np.array([0, 1]), np.array([3.0, 4.0]), np.ones(2, np.uint8), 1, np.array([1, 1])
    )

    assert nothing.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("number_works", [expected_kernels.number_works, compiled(expected_kernels.number_works)])
def test_work_is_equal_that_one_site_does_with_as_many_bytes(number_works: Callable[..., Any]) -> None:
    random = np.random.default_rng(7)
    puts_work = np.array([False, True, False, True])
    action = random.integers(0, 4, 5000).astype(np.uint8)
    site, copied = random.integers(0, 40, 5000).astype(np.int32), random.integers(0, 30, 5000) << 20
    rows, equal = np.empty((2, 5000), np.int32)

    count, first = number_works(action, puts_work, site, copied, rows, equal)

    of_works = np.flatnonzero(puts_work[action])
    assert rows[:count].tolist() == of_works.tolist()
    pairs = list(zip(site[of_works].tolist(), copied[of_works].tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    assert equal[:count].tolist() == [numbers[pair] for pair in pairs]
    assert first.tolist() == [int(of_works[pairs.index(pair)]) for pair in numbers]
