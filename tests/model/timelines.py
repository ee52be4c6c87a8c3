"""Small timelines for tests, and a hypothesis strategy that generates them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ffm.model.device import Action, DeviceWork
from ffm.model.timeline import Kind, Problem, Timeline


@dataclass(frozen=True)
class Row:
    """An operation: `own` is the part of the call that does not wait."""

    kind: Kind = Kind.SYNCHRONIZATION
    own: int = 0
    wait: int = 0
    gap: int = 0
    problem: Problem = Problem.NONE
    first_use: int = 0
    site: int = 0
    thread: int = 0
    occurrences: int = 1


def timeline(rows: list[Row]) -> Timeline:
    """Lay out rows one after the other, in seconds, so that benefits are the same numbers."""
    second = 1_000_000_000
    duration = np.array([(row.own + row.wait) * second for row in rows], np.int64)
    gap = np.array([row.gap * second for row in rows], np.int64)
    return Timeline(
        thread=np.array([row.thread for row in rows], np.int32),
        start=np.cumsum(duration + gap) - duration - gap,
        duration=duration,
        wait=np.array([row.wait * second for row in rows], np.int64),
        gap=gap,
        site=np.array([row.site for row in rows], np.int32),
        kind=np.array([row.kind for row in rows], np.uint8),
        problem=np.array([row.problem for row in rows], np.uint8),
        first_use=np.array([row.first_use * second for row in rows], np.int64),
        occurrences=np.array([row.occurrences for row in rows], np.int64),
    )


def simple_device_work(timeline: Timeline) -> DeviceWork:
    """Describe a program with one process and one stream, using only the kinds of its rows.

    Uploads and downloads are not distinguished: a transfer that waits is assumed to wait for its own copy.
    """
    action = np.full(len(timeline), Action.NONE, np.uint8)
    kind, waits = timeline.kind, timeline.wait > 0
    action[kind == Kind.LAUNCH] = Action.ENQUEUE
    action[kind == Kind.TRANSFER] = Action.ENQUEUE
    action[(kind == Kind.TRANSFER) & waits] = Action.ENQUEUE_AND_WAIT
    action[kind == Kind.PRIVATE] = Action.ENQUEUE_AND_WAIT
    action[(kind == Kind.FREE) & (waits | (timeline.problem != 0))] = Action.WAIT_CONTEXT
    action[kind == Kind.SYNCHRONIZATION] = Action.WAIT_CONTEXT
    return DeviceWork(
        action=action,
        stream=np.where(action != Action.NONE, 0, -1).astype(np.int32),
        event=np.full(len(timeline), -1, np.int32),
        partner=np.full(len(timeline), -1, np.int32),
        copied=np.zeros(len(timeline), np.int64),
        measured=np.full(len(timeline), -1, np.int64),
        process_of_thread=np.zeros(int(timeline.thread.max(initial=-1)) + 1, np.int32),
        legacy=np.zeros(1, np.int32),
        stream_process=np.zeros(1, np.int32),
        events=0,
    )


UNNECESSARY = Problem.UNNECESSARY_SYNCHRONIZATION
MISPLACED = Problem.MISPLACED_SYNCHRONIZATION
DUPLICATE = Problem.UNNECESSARY_TRANSFER

_PROBLEMS = {
    Kind.SYNCHRONIZATION: [Problem.NONE, UNNECESSARY, MISPLACED],
    Kind.TRANSFER: [Problem.NONE, UNNECESSARY, MISPLACED, DUPLICATE, DUPLICATE | UNNECESSARY, DUPLICATE | MISPLACED],
    Kind.FREE: [Problem.NONE, UNNECESSARY],
    Kind.PRIVATE: [Problem.NONE, UNNECESSARY, MISPLACED],
}


@st.composite
def row_lists(
    draw: st.DrawFn, *, max_size: int = 12, sites: int = 4, threads: int = 2, misplaced: bool = True
) -> list[Row]:
    """Rows of up to two threads, with short whole-second times so that every tie and zero occurs."""
    seconds = st.integers(0, 4)
    rows = []
    for thread in range(draw(st.integers(1, threads))):
        for _ in range(draw(st.integers(0, max_size))):
            kind = draw(st.sampled_from(list(Kind)))
            problems = [
                problem for problem in _PROBLEMS.get(kind, [Problem.NONE]) if misplaced or not problem & MISPLACED
            ]
            problem = draw(st.sampled_from(problems))
            rows.append(
                Row(
                    kind=kind,
                    own=draw(seconds),
                    wait=0 if kind in (Kind.LAUNCH, Kind.ALLOCATION) else draw(seconds),
                    gap=draw(seconds),
                    problem=problem,
                    first_use=draw(st.integers(1, 8)) if problem & MISPLACED else 0,
                    site=draw(st.integers(0, sites - 1)),
                    thread=thread,
                )
            )
    return rows
