"""Which thread's actions come after another's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ffm.evidence.threads import handovers
from ffm.evidence.threads.handovers import NEVER, handovers_of
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.reader import Recording

SEMAPHORE, BARRIER = 0x100, 0x200


def learned(threads: int, *rows: tuple[int, str, int, int], callers: int | None = None) -> list[tuple[int, list[int]]]:
    """Rows are (thread, what it does, address, value), one a nanosecond from 1 on. Returns (thread, what it knows)."""
    accesses = np.zeros(len(rows), record_type("ffm_access"))
    for time, (thread, kind, address, value) in enumerate(rows, 1):
        accesses[time - 1]["time"], accesses[time - 1]["operation_thread"] = time, thread
        accesses[time - 1]["kind"] = constant(f"FFM_ACCESS_{kind}")
        accesses[time - 1]["address"], accesses[time - 1]["operation"] = address, value
    recording = cast("Recording", SimpleNamespace(accesses=accesses))
    found: Any = handovers_of(recording, threads, threads if callers is None else callers)
    known = np.where(found.known == NEVER, 0, found.known)
    return list(zip(found.thread.tolist(), known.tolist(), strict=True))


def meeting(*threads: int) -> list[tuple[int, str, int, int]]:
    return [(one, what, BARRIER, 0) for what in ("ARRIVE", "LEAVE") for one in threads]


def test_who_leaves_a_barrier_knows_what_all_did_before_they_came() -> None:
    rows = [(0, "BARRIER", BARRIER, 2), *meeting(0, 1), *meeting(1, 0)]
    assert learned(2, *rows) == [(0, [2, 3]), (1, [2, 3]), (1, [7, 6]), (0, [7, 6])]


def test_a_barrier_that_more_threads_use_than_it_waits_for_orders_nothing_until_it_is_made_again() -> None:
    """Which of them meet is chance, also where those that met came first."""
    rows = [(0, "BARRIER", BARRIER, 2), *meeting(0, 1), *meeting(2, 3)]
    assert learned(4, *rows) == [(one, [0, 0, 0, 0]) for one in range(4)]
    again = [*rows, (0, "BARRIER", BARRIER, 2), *meeting(0, 1)]
    assert learned(4, *again)[4:] == [(0, [11, 12, 0, 0]), (1, [11, 12, 0, 0])]


def test_semaphores_and_barriers_order_nothing_if_later_handovers_may_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(0, "INITIAL", SEMAPHORE, 0), (0, "POST", SEMAPHORE, 0), (1, "TAKE", SEMAPHORE, 0)]
    assert learned(2, *rows) == [(1, [2, 0])]
    monkeypatch.setattr(handovers, "MOST", len(rows))
    assert learned(2, *rows) == [(1, [0, 0])]


def test_a_barrier_orders_nothing_while_somebody_came_unseen_or_its_size_is_unknown() -> None:
    assert learned(2, (0, "BARRIER", BARRIER, 3), *meeting(0, 1)) == [(0, [0, 0]), (1, [0, 0])]
    assert learned(2, *meeting(0, 1)) == [(0, [0, 0]), (1, [0, 0])]
    unseen = constant("FFM_POSTED_UNSEEN")
    assert learned(2, (0, "BARRIER", BARRIER, unseen), *meeting(0, 1)) == [(0, [0, 0]), (1, [0, 0])]


def test_a_semaphore_that_a_signal_handler_posts_orders_nothing() -> None:
    rows = [(0, "INITIAL", SEMAPHORE, 0), (0, "POST", SEMAPHORE, 0), (1, "TAKE", SEMAPHORE, 0)]
    interrupted = (0, "POST", SEMAPHORE, constant("FFM_POSTED_UNSEEN"))
    assert learned(2, *rows) == [(1, [2, 0])]
    assert learned(2, rows[0], interrupted, rows[2]) == [(1, [0, 0])]
    assert learned(2, *rows, interrupted) == [(1, [0, 0])]


def test_nothing_is_kept_of_threads_that_call_no_driver_but_they_pass_on_what_they_know() -> None:
    rows = [
        (0, "BARRIER", BARRIER, 2), *meeting(0, 2), (2, "POST", SEMAPHORE, 0), (1, "JOIN", 2, 0),
        (3, "INITIAL", SEMAPHORE, 0), (2, "POST", SEMAPHORE, 0), (3, "TAKE", SEMAPHORE, 0),
    ]  # fmt: skip
    everything = learned(4, *rows)
    assert everything[-1][1][0] > 0, "the last thread knows of the first one"
    assert learned(4, *rows, callers=2) == [(thread, known[:2]) for thread, known in everything]


def test_what_is_known_passes_on() -> None:
    rows = [
        (0, "BARRIER", BARRIER, 2),
        (0, "INITIAL", SEMAPHORE, 0),
        *meeting(0, 1),
        (1, "POST", SEMAPHORE, 0),
        (2, "TAKE", SEMAPHORE, 0),
    ]
    assert learned(3, *rows)[-1] == (2, [3, 7, 0])
