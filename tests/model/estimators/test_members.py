"""Tests of the rows that fixes change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ffm.model import grouping
from ffm.model.estimators.members import Changing
from ffm.model.timeline import Kind, Problem
from tests.model.timelines import Row, simple_device_work, timeline


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("allocations", [False, True])
def test_rows_with_problems_and_those_that_take_over_memory_change(
    monkeypatch: pytest.MonkeyPatch, reverse: bool, allocations: bool
) -> None:
    monkeypatch.setattr(grouping, "PART_ROWS", 16)
    random = np.random.default_rng(11)
    kinds = [Kind.SYNCHRONIZATION, Kind.FREE, *([Kind.ALLOCATION] if allocations else [])]
    problems = [Problem.NONE, Problem.UNNECESSARY_SYNCHRONIZATION, Problem.UNNECESSARY_TRANSFER]
    run = timeline([Row(kind=kinds[random.integers(len(kinds))], problem=random.choice(problems)) for _ in range(100)])
    partner = random.integers(-1, 100, 100).astype(np.int32)
    work = dataclasses.replace(simple_device_work(run), partner=partner)
    place = np.arange(100)[::-1].copy() if reverse else np.arange(100)

    found = Changing.of(run, work, place)

    labels = {}
    for row in range(100):
        takes_over = run.kind[row] == Kind.ALLOCATION and partner[row] >= 0
        if not takes_over and run.problem[row]:
            labels[int(place[row])] = row
        elif takes_over and run.problem[partner[row]] & Problem.UNNECESSARY_SYNCHRONIZATION:
            labels[int(place[row])] = int(partner[row])
    assert found.place.tolist() == sorted(labels)
    assert found.labelled.tolist() == [labels[each] for each in sorted(labels)]


def test_rows_visited_as_they_come_take_memory_once() -> None:
    run = timeline([Row(problem=Problem.UNNECESSARY_SYNCHRONIZATION), Row(), Row(problem=Problem.UNNECESSARY_TRANSFER)])
    found = Changing.of(run, simple_device_work(run), np.empty(0, np.int64))
    assert found.place.tolist() == [0, 2]
    assert np.shares_memory(found.place, found.labelled)
