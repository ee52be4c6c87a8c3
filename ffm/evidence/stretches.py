"""The measured stretches of a run, if only a portion of it was measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.model.edges import Stretches


def is_limited(recording: Recording) -> bool:
    """Return whether only a portion of a process's run was measured."""
    return len(recording.stretches) > 0 or len(recording.resumptions) > 0


def stretches_of(recording: Recording) -> Stretches:
    """Return the stretches of a process, in order of time. One that was not closed ends with the recording.

    If ffm ended the recording, the stretch does not last to the end of the run.
    """
    if recording.finished and not is_limited(recording):
        return _all_until(recording.opened, recording.finished)
    rows = recording.stretches[np.argsort(recording.stretches["opened"], kind="stable")]
    operations = recording.operations
    last = int((operations["start"] + operations["duration"]).max()) if len(operations) else 0
    begin = rows["opened"].astype(np.int64)
    last = recording.finished or last
    end = np.where(rows["closed"] > 0, rows["closed"], np.maximum(rows["opened"], last)).astype(np.int64)
    judged = rows["judged"] > 0
    unjudged = np.where(rows["unjudged"] > 0, rows["unjudged"].astype(np.int64), end)
    # A sampled iteration that did not end is not judged at all.
    unjudged = np.where((rows["judged"] == rows["opened"]) | (rows["unjudged"] > 0), unjudged, begin)
    return Stretches(
        begin=begin,
        settled=np.maximum(begin, rows["settled"].astype(np.int64)),
        end=end,
        judged_begin=np.where(judged, rows["judged"].astype(np.int64), begin),
        judged_end=np.where(judged, unjudged, begin),
        from_the_start=rows["calls"] == 0,
        to_the_end=(rows["closed"] == 0) & (recording.finished == 0),
    )


def _all_until(opened: int, finished: int) -> Stretches:
    begin, end = np.array([opened], np.int64), np.array([finished], np.int64)
    return Stretches(
        begin=begin,
        settled=begin,
        end=end,
        judged_begin=begin,
        judged_end=end,
        from_the_start=np.ones(1, np.bool_),
        to_the_end=np.zeros(1, np.bool_),
    )


def calls_before(
    recording: Recording, thread: NDArray[np.int64], function: NDArray[np.int64], number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many calls of the same function each operation's thread made before it, whether recorded or not.

    It is the same in each run, wherever the portion begins. Arguments are columns of the operations: thread, function,
    and index within the thread.
    """
    count = len(thread)
    group = np.unique(thread << 32 | function, return_inverse=True)[1].reshape(-1) if count else thread
    order = np.lexsort((number, group))
    sorted_group = group[order]
    starts = np.flatnonzero(np.append(True, sorted_group[1:] != sorted_group[:-1])) if count else order
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    resumed = recording.resumptions
    if not len(resumed) or not count:
        return rank
    # The last resumption of the same thread and function up to each operation says what was left out before it.
    keys = np.concatenate(
        [resumed["thread"].astype(np.int64) << 32 | resumed["function"].astype(np.int64), thread << 32 | function]
    )
    numbers = np.concatenate([resumed["operation"].astype(np.int64), number])
    left_out = np.concatenate([resumed["left_out"].astype(np.int64), np.full(count, -1)])
    order = np.lexsort((left_out < 0, numbers, keys))
    known = np.where(left_out[order] >= 0, np.arange(len(order)), -1)
    latest = np.maximum.accumulate(known)
    same = (latest >= 0) & (keys[order][np.maximum(latest, 0)] == keys[order])
    found = np.where(same, left_out[order][np.maximum(latest, 0)], 0)
    result = np.empty(len(order), np.int64)
    result[order] = found
    return rank + result[len(resumed) :]
