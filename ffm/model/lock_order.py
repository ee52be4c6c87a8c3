"""When threads waited for what others release (`ffm.model.device.LockWaits`), and in which order, as a replay needs it.

That order stays as it was: a thread that waited for a lock gets it again after the same thread as before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import LockWaits
from ffm.model.thread_relations_kernels import Locks
from ffm.model.timeline import Timeline
from ffm.model.visits import at


def lock_moments(timeline: Timeline, locks: LockWaits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when each wait began and when the other thread ended it; nanoseconds on the timeline's clock."""
    since = timeline.over(locks.row) + np.minimum(locks.after, timeline.gap[locks.row])
    return since, timeline.over(locks.by) + np.minimum(locks.released, timeline.gap[locks.by])


def lock_order(timeline: Timeline, locks: LockWaits | None, place: NDArray[np.integer]) -> Locks:
    """Return the waits as the replay simulates them; `place` is each row's position in its order, as in
    `ffm.model.visits`.

    Only a wait counts that is followed by a row of its thread, and whose release comes after an earlier row.
    """
    nothing = np.zeros(0, np.int64)
    if locks is None or not len(locks.row):
        return Locks(nothing, nothing, nothing, nothing, np.zeros(0), np.zeros(0), nothing)
    end = timeline.start + timeline.duration
    gap = timeline.gap
    since, released = lock_moments(timeline, locks)
    waited = released - since
    following = locks.row + 1
    counts = (waited > 0) & (following < len(timeline))
    following = following.clip(max=len(timeline) - 1)
    counts &= timeline.thread[following] == timeline.thread[locks.row]
    counts &= at(place, locks.by) < at(place, following)
    kept = np.flatnonzero(counts)
    kept = kept[np.lexsort((released[kept], at(place, following[kept])))]
    row, by = locks.row[kept], locks.by[kept]
    goes_on, let_go = (at(place, rows).astype(np.int64) for rows in (following[kept], by))
    waited, released = waited[kept], released[kept]
    inside = np.bincount(row, weights=waited, minlength=len(timeline))[row]  # all waits of one gap together
    working = np.maximum(gap[row] - inside, 1)
    left = np.maximum(end[row] + gap[row] - released, 0)
    last = np.append(goes_on[1:] != goes_on[:-1], True)
    return Locks(
        goes_on=goes_on,
        by=let_go,
        let_go=np.argsort(let_go, kind="stable"),
        waited=waited,
        work_after=np.where(last, np.minimum(left / working, 1.0), 0.0),
        work_before=np.minimum((released - end[by]) / np.maximum(gap[by], 1), 1.0),
        following=_following(timeline, by),
    )


def lock_waited(timeline: Timeline, locks: LockWaits | None) -> NDArray[np.int64]:
    """Return how long each row's thread waited for others after it, of its gap; shape (n,)."""
    if locks is None or not len(locks.row):
        return np.zeros(len(timeline), np.int64)
    since, released = lock_moments(timeline, locks)
    waited = np.bincount(locks.row, weights=(released - since).clip(0), minlength=len(timeline)).astype(np.int64)
    return np.minimum(waited, timeline.gap)


def _following(timeline: Timeline, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next row of each row's thread; -1 if there is none."""
    following = (rows + 1).clip(max=len(timeline) - 1)
    own = (following > rows) & (timeline.thread[following] == timeline.thread[rows])
    return np.where(own, following, -1)
