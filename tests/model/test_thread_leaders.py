"""Which threads follow which, against a comparison of one thread's moments with one other thread's waits at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.model import thread_leaders
from ffm.model.thread_leaders import FOLLOWED_OFTEN, MOST_OF_THEM, find_leaders
from ffm.model.timeline import Timeline
from tests.model.timelines import Row, timeline

SECOND = 1_000_000_000
TRIED = 3
RUNS = 100


def side_by_side(seed: int) -> Timeline:
    """Return threads of which some keep pace, and go on within a second after each other; they begin at any time."""
    random = np.random.default_rng(seed)
    paces = random.integers(1, 12, (2, 4 * FOLLOWED_OFTEN))
    rows: list[Row] = []
    begun = []
    for thread in range(int(random.integers(2, 12))):
        pace = paces[int(random.integers(2))]
        skipped = int(random.integers(2) * random.integers(2 * FOLLOWED_OFTEN))
        begun.append(int((pace[:skipped] + 1).sum()) * SECOND + int(random.integers(SECOND)))
        waiting, steady = int(random.integers(3) > 0), int(random.integers(3) > 0)
        for gap in pace[skipped : skipped + int(random.integers(1, 2 * FOLLOWED_OFTEN))].tolist():
            late = int(random.integers(8) == 0) * (1 - steady)
            rows.append(Row(wait=waiting, own=1 - waiting, gap=gap + late, thread=thread))
    laid = timeline(rows)
    first = laid.start[np.searchsorted(laid.thread, np.arange(len(begun)))]
    return replace(laid, start=laid.start + (np.array(begun) - first)[laid.thread])


def expected_leader(run: Timeline, thread: int) -> int:
    """Return the thread that one follows, of those that are tried."""
    goes_on = run.start[1:][(run.thread[1:] == thread) & (run.thread[:-1] == thread) & (run.gap[:-1] > 0)]
    if len(goes_on) < FOLLOWED_OFTEN:
        return -1
    waits = {other: (run.start + run.duration)[(run.thread == other) & (run.wait > 0)] for other in set(run.thread)}
    waits = {int(other): waits[other] for other in sorted(waits) if len(waits[other]) >= FOLLOWED_OFTEN}
    if len(waits) > TRIED:
        waits = {other: waits[other] for other in nearest(waits, goes_on)}
    best, leader = MOST_OF_THEM, -1
    for other, ends in waits.items():
        since = [moment - ends[ends < moment][-1] for moment in goes_on if (ends < moment).any()]
        share = np.mean(np.array(since) < np.diff(ends).mean() / 4) if since else 0.0
        if other != thread and share > best:
            best, leader = float(share), other
    return leader


def nearest(waits: dict[int, NDArray[np.int64]], goes_on: NDArray[np.int64]) -> list[int]:
    """Return the threads whose waits are most often among the last to end before some moments."""
    ends = [(end, other) for other in waits for end in waits[other].tolist()]
    ends.sort(key=lambda one: one[0])
    last = [other for moment in goes_on for _, other in [one for one in ends if one[0] < moment][-TRIED:]]
    return sorted(sorted(set(last), key=lambda other: (-last.count(other), other))[:TRIED])


@pytest.mark.parametrize("rows_of_a_block", [1, 40, 10_000])
def test_a_thread_follows_the_one_with_whose_waits_most_of_its_gaps_end(
    rows_of_a_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_leaders, "LEADERS_TRIED", TRIED)
    monkeypatch.setattr(thread_leaders, "PART_ROWS", rows_of_a_block)
    for seed in range(RUNS):
        run = side_by_side(seed)
        threads = np.arange(run.thread[-1] + 1)
        follows = np.full(len(threads), -1, np.int32)
        find_leaders(run, np.searchsorted(run.thread, np.arange(len(threads) + 1)), threads, follows)
        assert follows.tolist() == [expected_leader(run, thread) for thread in threads.tolist()], seed


def test_the_made_up_threads_follow_some_and_do_not_follow_others() -> None:
    leaders = [expected_leader(run, thread) for run in map(side_by_side, range(RUNS)) for thread in set(run.thread)]
    assert min(leaders) == -1
    assert len(set(leaders)) > TRIED
