"""Sequences from how often records were executed, against Diogenes's script on a trace of such executions."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from ffm.sources.diogenes_sequences import Counted, find_counted

Trace = list[int]


def followed(trace: Trace, first: int, stops: set[int]) -> dict[int, int]:
    """Follow a trace as `StackEntry.BuildRelationships` of `SequentialDump.py` does, which takes the record after each
    operation's own; return how often it counts each record.
    """
    left = Counter(trace)
    used: Counter[int] = Counter()
    inside = False
    for operation in trace:
        record = operation + 1
        inside = inside or record == first
        if not inside:
            continue
        if record in stops or left[record] == used[record]:
            inside = False
            continue
        used[record] += 1
    return dict(used)


def script_lists(trace: Trace, stops: set[int]) -> list[dict[int, int]]:
    """Return what the script lists: from every start, without those that are nested in one with more seconds."""
    starts = [followed(trace, first, stops) for first in range(1, max(trace) + 1)]
    ranked = sorted((one for one in starts if one), key=lambda one: saved(list(one), list(one.values())), reverse=True)
    nested = [
        any(set(one) <= set(other) or set(one) >= set(other) for other in ranked[:place])
        for place, one in enumerate(ranked)
    ]
    return [one for one, left_out in zip(ranked, nested, strict=True) if not left_out]


def saved(sites: list[int], times: list[int]) -> float:
    """Return seconds of executions, of which those of each record take another time."""
    return sum(number * (1 + math.sqrt(site)) for site, number in zip(sites, times, strict=True))


def sequences(trace: Trace, stops: set[int], listed: list[float] | None = None) -> list[Counted]:
    counts = Counter(trace)
    return find_counted([counts[site] for site in range(max(counts) + 1)], lambda site: site in stops, saved, listed)


def check(trace: Trace, stops: set[int], *expected: list[int], nearly: float = 0.0) -> None:
    found = sequences(trace, stops)
    assert [one.sites for one in found] == list(expected)
    for one in found:
        counted = followed(trace, one.sites[0], stops)
        assert set(counted) == set(one.sites)
        for site, times in zip(one.sites, one.times, strict=True):
            assert times == pytest.approx(counted[site], rel=nearly, abs=0)


def test_records_of_a_loop_follow_each_other() -> None:
    check([0, 1, 2, 3] * 10, {3}, [1, 2])


def test_a_record_that_is_executed_in_some_turns_stays_part_of_the_sequence() -> None:
    """Every tenth turn goes without the third record, which so is used up before the last turns."""
    trace = [site for turn in range(1000) for site in (0, 1, 2, 3, 4, 5) if site != 2 or turn % 10]
    check(trace, {5}, [1, 2, 3, 4], nearly=0.002)


def test_a_sequence_can_start_at_such_a_record() -> None:
    """As in cuIBM: 2.993 and 74.350 s."""
    trace = [site for turn in range(1000) for site in (0, 1, 2, 3, 4) if site != 1 or turn % 10]
    check(trace, {4}, [1, 2, 3], nearly=0.002)


def test_a_record_that_is_also_executed_elsewhere_ends_a_sequence_as_the_others_do() -> None:
    """As in cuIBM: 7.361 s."""
    trace = [0, 1, 2, 3, 4, 5] * 100 + [3, 4] * 7
    check(trace, {4}, [1, 2, 3])


def test_the_condition_of_a_loop_leads_into_its_body_and_behind_it() -> None:
    """As in cuIBM: 150.353 s. What is started before the loop, or at the end of its body, is part of that one."""
    body = [3, 4, 5, 6, 7]
    trace = ([0, 1, 2] + [*body, 1, 2] * 24 + [8, 9, 10, 11]) * 400
    found = sequences(trace, {5, 11})
    assert [one.sites for one in found] == [[2, 3, 4, 9, 10]]
    counted = followed(trace, 2, {5, 11})
    assert counted == dict(zip(found[0].sites, found[0].times, strict=True))


def check_with_list(trace: Trace, stops: set[int]) -> list[list[int]]:
    """Check that all is found that the script lists, given its seconds; return the records of each."""
    lists = script_lists(trace, stops)
    seconds = [saved(list(one), list(one.values())) for one in lists]
    found = {frozenset(one.sites): one for one in sequences(trace, stops, seconds)}
    assert set(found) == {frozenset(one) for one in lists}
    for one in lists:
        assert one == dict(zip(found[frozenset(one)].sites, found[frozenset(one)].times, strict=True))
    return [sorted(one) for one in lists]


@pytest.mark.parametrize("seed", range(5))
def test_the_list_shows_how_uneven_loops_are(seed: int) -> None:
    """As in cuIBM, whose loops take fewer turns as the flow becomes steady: 48,400 of 60,000 end early enough."""
    draw = random.Random(seed)
    turns = sorted((draw.randrange(30) for _ in range(300)), reverse=True)
    trace = [site for count in turns for site in (0, 1, 2, *([3, 4, 5, 6, 7, 1, 2] * count), 8, 9, 10, 11)]
    assert check_with_list(trace, {5, 11}) == [[2, 3, 4, 9, 10]]


@pytest.mark.parametrize("seed", range(5))
def test_a_loop_that_its_condition_mostly_leaves_at_once(seed: int) -> None:
    """As in cuIBM: the loop's sequence contains 4.657 and 8.268 s, has fewer seconds than the latter, and so is as
    little in the list as the former.
    """
    draw = random.Random(seed)
    ways = [draw.choice([(5, 6, 7, 8), (5, 6, 7, 8), (5, 6, 7, 8, 9, 10, 3, 4)]) for _ in range(500)]
    ways[40:42] = [(), ()]
    trace = [site for way in ways + [()] * 60 for site in (0, 1, 2, 3, 4, *way, *range(11, 42))]
    assert sorted(check_with_list(trace, {4, 8, 41})) == [[1, 2, 3], list(range(12, 41))]
