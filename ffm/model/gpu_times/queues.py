"""When the work of each stream begins, in the subset of Python that Numba compiles.

A wait for an event may show that work was done sooner than expected, so that everything after it on the stream begins
sooner. That is noted once for all of it. It is applied to each piece of work only when an event after it is waited for,
because programs enqueue a great deal and then wait for one event after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner
from ffm.model.gpu_times.call_times import enqueued_at
from ffm.model.numbers import WAIT_AND_ENQUEUE

Columns = NDArray[Any]


class Queues(NamedTuple):
    """The work of each stream, which is numbered in its order. By row, then by stream, with one entry more for none."""

    start: Columns
    """The columns of `Timeline` and `DeviceWork`, as the next four."""
    duration: Columns
    wait: Columns
    action: Columns
    after_wait: Columns
    begun: Columns
    """When work begins, in nanoseconds. If it comes after `behind`, that is still without `sooner`."""
    before: Columns
    """The work before it on its stream, if nothing had waited for that; otherwise -1."""
    last: Columns
    """The last work that nothing has waited for, or -1."""
    newest: Columns
    """The last work, or -1,"""
    number: Columns
    """and its number."""
    first: Columns
    """The number of the first work that nothing had waited for when the newest came."""
    sooner: Columns
    """By how many nanoseconds the work after `behind` begins sooner, but not before it arrives;"""
    behind: Columns
    """the number of this work,"""
    behind_row: Columns
    """and its row."""


@inlined
def queues_of(
    start: Columns, duration: Columns, wait: Columns, action: Columns, after_wait: Columns, streams: int
) -> Queues:
    """Return the queues of this many streams, without any work."""
    return Queues(
        start=start,
        duration=duration,
        wait=wait,
        action=action,
        after_wait=after_wait,
        begun=np.empty(len(start), np.int64),
        before=np.empty(len(start), np.int32),
        last=np.full(streams + 1, -1, np.int64),
        newest=np.full(streams + 1, -1, np.int64),
        number=np.zeros(streams + 1, np.int64),
        first=np.zeros(streams + 1, np.int64),
        sooner=np.zeros(streams + 1, np.int64),
        behind=np.zeros(streams + 1, np.int64),
        behind_row=np.full(streams + 1, -1, np.int64),
    )


@inner
def append(queues: Queues, stream: int, row: int, begun: int) -> None:
    """Add a row's work to its stream."""
    if queues.last[stream] < 0:
        write_all_down(queues, stream)
        queues.first[stream] = queues.number[stream] + 1
    queues.begun[row] = begun + queues.sooner[stream]
    queues.before[row] = queues.last[stream]
    queues.number[stream] += 1
    queues.last[stream] = row
    queues.newest[stream] = row


@inner
def begun_at(queues: Queues, stream: int, work: int, number: int) -> int:
    """Return when a stream's work with a number begins."""
    sooner = queues.sooner[stream]
    if sooner == 0 or number <= queues.behind[stream]:
        return int(queues.begun[work])
    return int(max(queues.begun[work] - sooner, arrival_of(queues, work)))


@inner
def is_pending(queues: Queues, stream: int, number: int) -> bool:
    """Return whether nothing has waited for all of a stream since it got the work with this number."""
    return bool(queues.last[stream] >= 0 and number >= queues.first[stream])


@inner
def advance(queues: Queues, stream: int, work: int, number: int, sooner: int) -> None:
    """Let all that comes after a stream's work with a number, which is pending, begin sooner by so much, but not before
    it arrives.

    Another thread may wait for a later event meanwhile. What is between the two is noted again as all that follows, or
    else each wait for one of the earlier events would visit it.
    """
    if queues.sooner[stream] > 0 and number < queues.behind[stream]:
        later = queues.behind_row[stream]
        while later != work:
            queues.begun[later] += queues.sooner[stream]
            later = queues.before[later]
    else:
        write_down(queues, stream, work, number)
    queues.behind[stream] = number
    queues.behind_row[stream] = work
    queues.sooner[stream] += sooner


@inner
def write_all_down(queues: Queues, stream: int) -> None:
    """Write down when all work of a stream begins."""
    write_down(queues, stream, queues.newest[stream], queues.number[stream])
    queues.sooner[stream] = 0


@inner
def write_down(queues: Queues, stream: int, work: int, number: int) -> None:
    """Write down when work with a number begins, and what comes before it."""
    sooner = queues.sooner[stream]
    if sooner == 0:
        return
    while number > queues.behind[stream]:
        queues.begun[work] = max(queues.begun[work] - sooner, arrival_of(queues, work))
        work = queues.before[work]
        number -= 1


@inner
def cut_from(queues: Queues, gpu: Columns, work: int, limit: int) -> None:
    """Let pending work, of which it is written down when it begins, and what comes before it be done by then."""
    while work >= 0:
        gpu[work] = max(min(gpu[work], limit - queues.begun[work]), 0)
        if queues.begun[work] <= limit:
            break
        queues.begun[work] = limit
        work = queues.before[work]


@inner
def arrival_of(queues: Queues, row: int) -> int:
    """Return when a row's work reaches the GPU."""
    if queues.action[row] == WAIT_AND_ENQUEUE:
        return int(queues.start[row] + queues.duration[row])
    return enqueued_at(queues, row)
