"""A small simulator of ranks that wait for each other, to compare replays with: times are found by relaxation, with no
order in which rows are visited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ffm.model.device import Action, DeviceWork, Encounters, Role
from ffm.model.timeline import Kind, Timeline
from tests.model.timelines import simple_device_work

COMES, WAITS, FOLLOWS = Role.COMES, Role.WAITS, Role.FOLLOWS
BOTH = COMES | WAITS


@dataclass(frozen=True)
class At:
    """An encounter's number, and what a row does there."""

    number: int
    role: Role


@dataclass(frozen=True)
class Did:
    """What a rank does: works for `work` nanoseconds, then makes a call that takes `own` beside its waiting."""

    work: int
    own: int = 1
    at: Sequence[At] = field(default_factory=tuple)
    after: int = 0
    """How long after the row that it follows it begins."""


@dataclass(frozen=True)
class Lived:
    """When each call of each rank began, and was over."""

    begun: list[list[int]]
    over: list[list[int]]

    @property
    def end(self) -> int:
        """When the last rank was over."""
        return max(over[-1] for over in self.over if over)


def live(ranks: Sequence[Sequence[Did]]) -> Lived:
    """Let ranks wait for each other until nothing changes any more."""
    lived = Lived([[0] * len(rank) for rank in ranks], [[0] * len(rank) for rank in ranks])
    while True:
        came: dict[int, int] = {}
        for number, rank in enumerate(ranks):
            for place, did in enumerate(rank):
                for at in did.at:
                    if at.role & COMES:
                        came[at.number] = max(came.get(at.number, 0), lived.begun[number][place])
        changed = False
        for number, rank in enumerate(ranks):
            free = 0
            for place, did in enumerate(rank):
                led = [came[at.number] + did.after for at in did.at if at.role & FOLLOWS]
                begun = max([free, *led]) if led else free + did.work
                over = max([begun, *(came[at.number] for at in did.at if at.role & WAITS)]) + did.own
                changed |= (begun, over) != (lived.begun[number][place], lived.over[number][place])
                lived.begun[number][place], lived.over[number][place] = begun, over
                free = over
        if not changed:
            return lived


def measured(ranks: Sequence[Sequence[Did]]) -> tuple[Timeline, DeviceWork]:
    """Return the run of ranks, each of one thread, as a profiler that records encounters would."""
    lived = live(ranks)
    rows = [(number, place) for number, rank in enumerate(ranks) for place in range(len(rank))]
    row_of = {one: row for row, one in enumerate(rows)}
    start = np.array([lived.begun[number][place] for number, place in rows], np.int64)
    over = np.array([lived.over[number][place] for number, place in rows], np.int64)
    own = np.array([ranks[number][place].own for number, place in rows], np.int64)
    thread = np.array([number for number, _ in rows], np.int32)
    following = np.append(start[1:], 0)
    lasts = np.append(thread[1:] != thread[:-1], True)
    nothing = np.zeros(len(rows), np.int64)
    timeline = Timeline(
        thread=thread,
        start=start,
        duration=over - start,
        wait=over - start - own,
        gap=np.where(lasts, 0, following - over),
        site=np.zeros(len(rows), np.int32),
        kind=np.full(len(rows), Kind.OTHER, np.uint8),
        problem=np.zeros(len(rows), np.uint8),
        first_use=nothing,
        occurrences=np.ones(len(rows), np.int64),
    )
    entries = [
        (at.number, row_of[number, place], int(at.role))
        for number, rank in enumerate(ranks)
        for place, did in enumerate(rank)
        for at in did.at
    ]
    columns = np.array(entries, np.int64).reshape(-1, 3)
    work = simple_device_work(timeline)
    action = np.where(timeline.wait > 0, np.uint8(Action.WAIT_THREAD), np.uint8(Action.NONE))
    ranks_numbers = np.arange(len(ranks), dtype=np.int32)
    encounters = Encounters(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.uint8))
    work = DeviceWork(
        **{name: getattr(work, name) for name in ("event", "partner", "copied", "measured", "events")},
        action=action,
        stream=np.full(len(rows), -1, np.int32),
        process_of_thread=ranks_numbers,
        legacy=np.full(len(ranks), -1, np.int32),
        stream_process=ranks_numbers,
        encounters=encounters,
    )
    return timeline, work
