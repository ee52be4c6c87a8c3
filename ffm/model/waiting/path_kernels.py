"""The passes that walk a graph backwards and cut the path by rows (`ffm.model.waiting.path`), in the part of Python
that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Columns are those of `Timeline`, `DeviceWork` and `Graph`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.numbers import ENQUEUE_AND_WAIT, SET_AND_WAIT, WAIT_AND_ENQUEUE, WAIT_EVENT, WAIT_THREAD

Columns = NDArray[Any]

ON_HOST = 0
ON_GPU = 1
BETWEEN = 2
"""What a stretch is: of a thread, of GPU work, or the time from a cause until the GPU began the work."""

START = 0
CALL = 1
WORK = 2
REST = 3
UNKNOWN = 4
GPU = 5
"""Values of `ffm.model.waiting.path.Part`."""


def walk(
    start: Columns,
    duration: Columns,
    wait: Columns,
    thread: Columns,
    action: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    gpu_after: Columns,
    cause: Columns,
    begins: Columns,
    jumps: Columns,
    parent: Columns,
    joined: Columns,
    leads: Columns,
    led: Columns,
    first: int,
    last: int,
    last_thread: int,
    last_row: int,
) -> tuple[Columns, Columns, Columns, Columns]:
    """Walk from the end of the run, `last`, to its begin, `first`.

    It starts on the thread `last_thread` or, if that is -1, with the GPU work of `last_row`. `begins`, shape (threads +
    1,), is where each thread's rows begin. `jumps` contains, ascending, 2 * row for each row before which its thread
    waited, until `led[row]`, for the row `leads[row]` of another thread or the work after it, and 2 * row + 1 for each
    row whose wait has a cause: only there the path leaves a thread.

    Returns the stretches, latest first: what each is, its thread (`ON_HOST`) or row, its begin and its end. They join,
    and every step leads to a row that was visited earlier, or to an earlier time.
    """
    size = 1024
    kind = np.zeros(size, np.uint8)
    where = np.zeros(size, np.int64)
    begin = np.zeros(size, np.int64)
    end = np.zeros(size, np.int64)
    found = 0
    now = last
    on = last_thread
    limit = 2 * begins[on + 1] if on >= 0 else 0
    row = last_row
    while True:
        if found + 2 >= size:
            kind = np.concatenate((kind, np.zeros(size, np.uint8)))
            where = np.concatenate((where, np.zeros(size, np.int64)))
            begin = np.concatenate((begin, np.zeros(size, np.int64)))
            end = np.concatenate((end, np.zeros(size, np.int64)))
            size *= 2
        if on >= 0:
            index = np.searchsorted(jumps, limit) - 1
            over = False
            following = -1  # the thread on which the path continues; -1: on the GPU
            if index < 0 or jumps[index] < 2 * begins[on]:
                following = parent[on]
                over = following < 0
                then = first if over else min(start[begins[on]], now)
                if not over:
                    limit = 2 * joined[on]
            elif jumps[index] % 2 == 1:
                waiting = jumps[index] // 2
                row = cause[waiting]
                then = min(gpu_end[row], start[waiting] + duration[waiting], now)
            else:
                ended = leads[jumps[index] // 2]
                following = thread[ended]
                then = min(led[jumps[index] // 2], now)
                limit = 2 * ended + 2
            if then < now:
                kind[found], where[found], begin[found], end[found] = ON_HOST, on, then, now
                found += 1
            if over:
                break
            now = then
            on = following
            continue
        then = min(gpu_begin[row], now)
        if then < now:
            kind[found], where[found], begin[found], end[found] = ON_GPU, row, then, now
            found += 1
            now = then
        after = gpu_after[row]
        waits_first = action[row] == WAIT_AND_ENQUEUE
        if after >= 0:
            then = min(gpu_end[after], now)
        else:
            called = start[row] + (duration[row] if waits_first else duration[row] - wait[row])
            then = min(called, now)
        if then < now:
            kind[found], where[found], begin[found], end[found] = BETWEEN, row, then, now
            found += 1
            now = then
        if after >= 0:
            row = after
        else:
            on = thread[row]
            limit = 2 * row + (2 if waits_first else 1)
    return kind[:found], where[:found], begin[:found], end[:found]


def cut(
    kind: Columns,
    where: Columns,
    begin: Columns,
    end: Columns,
    start: Columns,
    duration: Columns,
    wait: Columns,
    action: Columns,
    cause: Columns,
    begins: Columns,
    threshold: int,
    latest_launch: int,
) -> tuple[Columns, Columns, Columns, Columns]:
    """Cut stretches, earliest first, into the parts of the rows that they cover.

    Returns the row of each piece, what part of the row it is, its begin and its end. A wait without a cause that lasts
    more than `threshold` nanoseconds is `UNKNOWN`, and so are more than `latest_launch` nanoseconds before GPU work for
    which nothing accounts. Before a thread's first row, the row is that one.
    """
    size = 1024
    row_of = np.zeros(size, np.int64)
    part = np.zeros(size, np.uint8)
    since = np.zeros(size, np.int64)
    until = np.zeros(size, np.int64)
    found = 0
    for number in range(len(kind)):
        on = where[number]
        now = begin[number]
        row = on
        if kind[number] == ON_HOST:
            row = begins[on] + np.searchsorted(start[begins[on] : begins[on + 1]], now + 1) - 1
            row = max(row, begins[on])
        while now < end[number]:
            if found + 5 >= size:
                row_of = np.concatenate((row_of, np.zeros(size, np.int64)))
                part = np.concatenate((part, np.zeros(size, np.uint8)))
                since = np.concatenate((since, np.zeros(size, np.int64)))
                until = np.concatenate((until, np.zeros(size, np.int64)))
                size *= 2
            if kind[number] != ON_HOST:
                late = UNKNOWN if end[number] - now > latest_launch else REST
                row_of[found], part[found] = row, GPU if kind[number] == ON_GPU else late
                since[found], until[found] = now, end[number]
                found += 1
                break
            does = action[row] if action[row] != SET_AND_WAIT else ENQUEUE_AND_WAIT
            waits_first = does == WAIT_THREAD or WAIT_AND_ENQUEUE <= does <= WAIT_EVENT
            own = duration[row] - wait[row]
            following = end[number] if row + 1 == begins[on + 1] else start[row + 1]
            stalled = REST if cause[row] >= 0 or wait[row] <= threshold else UNKNOWN
            for step in range(4):
                if step == 0:
                    what, last = START, start[row]
                elif step == 1:
                    what, last = (stalled, start[row] + wait[row]) if waits_first else (CALL, start[row] + own)
                elif step == 2:
                    what, last = CALL if waits_first else stalled, start[row] + duration[row]
                else:
                    what, last = WORK, following
                last = min(last, end[number])
                if last > now:
                    row_of[found], part[found], since[found], until[found] = row, what, now, last
                    found += 1
                    now = last
            row += 1
    return row_of[:found], part[:found], since[:found], until[:found]


def shared(begin: Columns, lane: Columns, offsets: Columns, last: int) -> int:
    """Return for how many nanoseconds before `last` several paths are in the same lane.

    The paths' pieces lie one path after the other; `offsets`, shape (paths + 1,), is where each path begins.
    """
    paths = len(offsets) - 1
    at = offsets[:-1].copy()
    now = begin[at[0]]
    same = 0
    while now < last:
        until = last
        alike = True
        for number in range(paths):
            if lane[at[number]] != lane[at[0]]:
                alike = False
            if at[number] + 1 < offsets[number + 1]:
                until = min(until, begin[at[number] + 1])
        if alike:
            same += until - now
        now = until
        for number in range(paths):
            if at[number] + 1 < offsets[number + 1] and begin[at[number] + 1] <= now:
                at[number] += 1
    return same
