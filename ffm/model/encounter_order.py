"""Where threads meet (`ffm.model.device.Encounters`), as a replay needs it to determine who then waits for whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Encounters, Role
from ffm.model.thread_relations_kernels import OrderedEncounters
from ffm.model.timeline import Timeline
from ffm.model.visits import at


def order_of_encounters(timeline: Timeline, encounters: Encounters) -> NDArray[np.int64]:
    """Return all rows by start, so that rows that are waited for precede the waiting thread's next row. O(n log n).

    Of rows that begin at the same time, those that others wait for come first, as far as each thread's order stays.
    """
    later = np.ones(len(timeline), np.int64)
    later[encounters.row[_has(encounters, Role.COMES)]] = 0
    same = (timeline.thread[1:] == timeline.thread[:-1]) & (timeline.start[1:] == timeline.start[:-1])
    run = np.cumsum(np.append(True, ~same)[: len(timeline)])
    later = np.maximum.accumulate(2 * run + later) - 2 * run
    return np.lexsort((later, timeline.start))


def ordered_encounters(
    timeline: Timeline, encounters: Encounters | None, place: NDArray[np.integer]
) -> OrderedEncounters:
    """Return the encounters as the replay simulates them; `place` is each row's position in its order, as in
    `ffm.model.visits`.

    A row that was over before another one came did not wait for all: the root of a broadcast, or a clock that is ahead.
    It then waits as long as before.
    """
    if encounters is None or not len(encounters.row):
        nothing, no = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return OrderedEncounters(nothing, nothing, no, no, nothing, 0)
    number, row = encounters.number, encounters.row
    comes, waits, follows = (_has(encounters, role) for role in Role)
    count = int(number.max()) + 1
    last, leader = np.full((2, count), -1, np.int64)
    np.maximum.at(last, number[comes], at(place, row[comes]))
    leader[number[comes]] = row[comes]
    following = (row + 1).clip(max=len(timeline) - 1)
    ends = (following == row) | (timeline.thread[following] != timeline.thread[row])
    goes_on = np.where(ends, len(timeline), at(place, following))
    over = timeline.start + timeline.duration
    late = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(late, number[comes], timeline.start[row[comes]])
    alone = waits & ((last[number] < 0) | (last[number] >= goes_on) | (late[number] > over[row]))
    overtaken = np.zeros(len(timeline), np.bool_)
    overtaken[row[alone]] = True
    waits &= ~overtaken[row]
    led = follows & (leader[number] >= 0)
    led[led] = at(place, leader[number[led]]) < at(place, row[led])
    after = np.where(led, timeline.start[row] - timeline.start[leader[number].clip(0)], -1)
    kept = np.flatnonzero(comes | waits | led)
    kept = kept[np.argsort(at(place, row[kept]), kind="stable")]
    return OrderedEncounters(
        at(place, row[kept]).astype(np.int64), number[kept], comes[kept], waits[kept], after[kept], count
    )


def _has(encounters: Encounters, role: Role) -> NDArray[np.bool_]:
    return np.asarray((encounters.role & role) != 0)
