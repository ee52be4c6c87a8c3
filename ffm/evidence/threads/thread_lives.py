"""Which threads started and joined which, as the collector recorded it.

Threads are recorded by the value of pthread_self(3), which can name several threads one after the other. A thread that
never calls the driver has no rows in the model's table: the threads that it starts count as started by its own parent.
If a thread joins others and then starts a new one, without a row in between, it had to wait for the last of the joined
threads, which then counts as the one that started the new thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.device import ThreadLives
from ffm.model.grouping import begins_of
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import ThreadLife


@dataclass(slots=True, eq=False)
class _Life:
    """A thread; times in nanoseconds, -1 if it was not started or joined as far as is known."""

    starter: _Life | None = None
    created: int = -1
    number: int = -1
    joiner: _Life | None = None
    joined: int = -1


def recorded_lives(recordings: list[Recording], columns: Columns) -> list[ThreadLife]:
    """Return the threads of a run that have rows in `columns` and whose start was recorded."""
    found = []
    for process, recording in enumerate(recordings):
        mine = columns["process"] == process
        with_rows = set(np.unique(columns["thread"][mine]).tolist())
        for life in _lives(recording):
            if life.created >= 0 and life.number in with_rows:
                found.append(_described(life, process, with_rows))
    return found


def _lives(recording: Recording) -> list[_Life]:
    """Return a process's threads, in the order in which they are first mentioned."""
    lives: list[_Life] = []
    named: dict[int, _Life] = {}
    table = recording.lives[np.argsort(recording.lives["time"], kind="stable")]

    def add(name: int, life: _Life) -> _Life:
        lives.append(life)
        named[name] = life
        return life

    def at(name: int) -> _Life:
        return named[name] if name in named else add(name, _Life())

    for row in table:
        name, time = int(row["name"]), int(row["time"])
        if row["kind"] == constant("FFM_LIFE_STARTED"):
            add(name, _Life(starter=at(int(row["by"])), created=time))
        elif row["kind"] == constant("FFM_LIFE_JOINED"):
            ended = at(name)
            ended.joiner, ended.joined = at(int(row["by"])), time
            del named[name]
        else:
            life = at(name)
            if life.number >= 0:  # an earlier thread of this name, whose end and whose follower's start were not seen
                life = add(name, _Life())
            life.number = int(row["number"])
    return lives


def _described(life: _Life, process: int, with_rows: set[int]) -> ThreadLife:
    starter = next((one for one in _starters(life) if one.number in with_rows), None)
    joined, joiner = life.joined, life.joiner
    while joiner is not None and joiner.number not in with_rows:
        joined, joiner = joiner.joined, joiner.joiner
    return ThreadLife(
        process=process,
        thread=life.number,
        parent=-1 if starter is None else starter.number,
        created=life.created,
        joined=-1 if joiner is None else joined,
        joiner=-1 if joiner is None else joiner.number,
    )


def _starters(life: _Life) -> Iterator[_Life]:
    while life.starter is not None:
        life = life.starter
        yield life


def lives_of_rows(recorded: list[ThreadLife], columns: Columns, thread: NDArray[np.int32]) -> ThreadLives:
    """Return the lives as the model needs them.

    Args:
        recorded: from `recorded_lives`.
        columns: the operations of the run, by process, thread and start.
        thread: the model's number of each row's thread, counted over all processes.
    """
    count = int(thread.max(initial=-1)) + 1
    begins = begins_of(thread, count)
    first = begins[:-1]
    owners = zip(columns["process"][first].tolist(), columns["thread"][first].tolist(), strict=True)
    numbers = {owner: number for number, owner in enumerate(owners)}
    start = columns["start"]
    lives = ThreadLives.unknown(count)

    def row_from(number: int, time: int) -> int:
        """Return the first row of a thread that begins at a time or later; -1 if there is none."""
        row = begins[number] + int(np.searchsorted(start[begins[number] : begins[number + 1]], time))
        return row if row < begins[number + 1] else -1

    for life in recorded:
        own = numbers.get((life.process, life.thread))
        if own is None:
            continue
        lives.before[own] = max(int(start[begins[own]]) - life.created, 0)
        parent = numbers.get((life.process, life.parent), -1)
        lives.parent[own] = parent
        if parent >= 0:
            started = row_from(parent, life.created)
            lives.started[own] = begins[parent + 1] if started < 0 else started
        if (joiner := numbers.get((life.process, life.joiner), -1)) >= 0:
            lives.joined[own] = row_from(joiner, life.joined)
    _start_after_joins(recorded, numbers, begins, columns, lives)
    return lives


def _start_after_joins(
    recorded: list[ThreadLife],
    numbers: dict[tuple[int, int], int],
    begins: NDArray[np.int64],
    columns: Columns,
    lives: ThreadLives,
) -> None:
    """Set, in `lives`, as the one that started a thread the one that its starter had waited for right before."""
    acts: list[tuple[int, int, bool, int]] = []  # (who acts, when, whether it joins another thread, that thread)
    for life in recorded:
        own = numbers.get((life.process, life.thread))
        if own is None:
            continue
        if (parent := numbers.get((life.process, life.parent))) is not None:
            acts.append((parent, life.created, False, own))
        if (joiner := numbers.get((life.process, life.joiner))) is not None:
            acts.append((joiner, life.joined, True, own))
    start, duration = columns["start"], columns["duration"]
    actor, waited_for, since, calls = -1, -1, -1, 0
    for who, time, joins, other in sorted(acts):
        made = int(np.searchsorted(start[begins[who] : begins[who + 1]], time))
        if who != actor or made != calls:
            before = begins[who] + made - 1
            waited_for, since = -1, int(start[before] + duration[before]) if made else -1
        actor, calls = who, made
        last = int(begins[other + 1]) - 1
        if not joins and waited_for >= 0:
            lives.parent[other], lives.started[other] = waited_for, begins[waited_for + 1]
        elif joins and int(start[last] + duration[last]) > since:
            waited_for = other
        since = time
