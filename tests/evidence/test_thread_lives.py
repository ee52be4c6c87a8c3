"""Which threads started and joined which, from what the collector records of their names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ffm.evidence.threads.thread_lives import lives_of_rows, recorded_lives
from ffm.instrument.recording.layout import constant, record_type
from ffm.results.columnar.columns import Columns

STARTED, JOINED, FIRST = (constant(f"FFM_LIFE_{kind}") for kind in ("STARTED", "JOINED", "FIRST"))
MAIN, ONE, OTHER = 100, 200, 300
"""Names as pthread_self(3) gives them."""


def recording(*events: tuple[int, int, int, int, int]) -> Any:
    """Make a recording of (time, name, by, number, kind)."""
    return SimpleNamespace(lives=np.array(list(events), record_type("ffm_life")))


def columns(**starts: list[int]) -> Columns:
    """Make the operations of threads `t0`, `t1`, ... of one process."""
    thread = [int(name[1:]) for name, times in starts.items() for _ in times]
    start = [time for times in starts.values() for time in times]
    return {
        "process": np.zeros(len(start), np.int32),
        "thread": np.array(thread, np.int32),
        "start": np.array(start, np.int64),
        "duration": np.full(len(start), 5, np.int64),
    }


def test_a_thread_belongs_to_the_one_that_started_and_joined_it() -> None:
    table = columns(t0=[10, 100], t1=[40, 60])
    [life] = recorded_lives(
        [
            recording(
                (10, MAIN, 0, 0, FIRST), (30, ONE, MAIN, 0, STARTED), (40, ONE, 0, 1, FIRST), (90, ONE, MAIN, 0, JOINED)
            )
        ],
        table,
    )
    assert (life.thread, life.parent, life.created, life.joined, life.joiner) == (1, 0, 30, 90, 0)
    lives = lives_of_rows([life], table, table["thread"])
    assert lives.before.tolist() == [-1, 10]
    assert lives.parent.tolist() == [-1, 0]
    assert lives.started.tolist() == [-1, 1]
    assert lives.joined.tolist() == [-1, 1]


def test_one_that_never_calls_the_driver_is_passed_over() -> None:
    """The main thread starts one that starts and joins another, and itself joins only the first."""
    table = columns(t0=[10, 100], t1=[40])
    [life] = recorded_lives(
        [
            recording(
                (10, MAIN, 0, 0, FIRST),
                (20, ONE, MAIN, 0, STARTED),
                (30, OTHER, ONE, 0, STARTED),
                (40, OTHER, 0, 1, FIRST),
                (60, OTHER, ONE, 0, JOINED),
                (70, ONE, MAIN, 0, JOINED),
            )
        ],
        table,
    )
    assert (life.thread, life.parent, life.created, life.joined, life.joiner) == (1, 0, 30, 70, 0)


def test_a_name_can_be_that_of_several_threads_one_after_the_other() -> None:
    table = columns(t0=[10, 100], t1=[40], t2=[80])
    first, second = recorded_lives(
        [
            recording(
                (10, MAIN, 0, 0, FIRST),
                (30, ONE, MAIN, 0, STARTED),
                (40, ONE, 0, 1, FIRST),
                (50, ONE, MAIN, 0, JOINED),
                (70, ONE, MAIN, 0, STARTED),
                (80, ONE, 0, 2, FIRST),
            )
        ],
        table,
    )
    assert (first.thread, first.created, first.joined) == (1, 30, 50)
    assert (second.thread, second.created, second.joined, second.joiner) == (2, 70, -1, -1)


def test_one_whose_start_was_not_seen_is_unknown() -> None:
    table = columns(t0=[10], t1=[40])
    assert not recorded_lives([recording((10, MAIN, 0, 0, FIRST), (40, ONE, 0, 1, FIRST))], table)
    lives = lives_of_rows([], table, table["thread"])
    assert lives.before.tolist() == [-1, -1]


def test_one_started_after_the_last_call_of_its_parent_lies_behind_its_rows() -> None:
    table = columns(t0=[10], t1=[40])
    recorded = recorded_lives(
        [recording((10, MAIN, 0, 0, FIRST), (30, ONE, MAIN, 0, STARTED), (40, ONE, 0, 1, FIRST))], table
    )
    assert lives_of_rows(recorded, table, table["thread"]).started.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("rows_of_main", "end_of_one", "parent"),
    [
        ([10], 70, 1),
        ([10, 95], 70, 0),  # the main thread calls the driver between the join and the start
        ([10, 75], 70, 0),  # its call between both starts lasts until after the end of the thread that it joins
        ([10], 40, 0),  # the joined thread was over before the other one was started
    ],
)
def test_a_thread_is_started_by_the_one_that_its_starter_waited_for(
    rows_of_main: list[int], end_of_one: int, parent: int
) -> None:
    """The main thread starts two threads, joins the first one, and starts a third one."""
    table = columns(t0=rows_of_main, t1=[35, end_of_one], t2=[55, 120], t3=[110])
    recorded = recorded_lives(
        [
            recording(
                (10, MAIN, 0, 0, FIRST),
                (30, ONE, MAIN, 0, STARTED),
                (35, ONE, 0, 1, FIRST),
                (50, OTHER, MAIN, 0, STARTED),
                (55, OTHER, 0, 2, FIRST),
                (90, ONE, MAIN, 0, JOINED),
                (100, ONE, MAIN, 0, STARTED),
                (110, ONE, 0, 3, FIRST),
            )
        ],
        table,
    )
    lives = lives_of_rows(recorded, table, table["thread"])
    assert lives.parent.tolist() == [-1, 0, 0, parent]
    assert lives.started[3] == (len(rows_of_main) if parent == 0 else len(rows_of_main) + 2)
