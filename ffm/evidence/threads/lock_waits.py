"""Which threads of a run waited for what others release, as the collector recorded it: locks, condition variables,
semaphores and barriers of the C library.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.model.device import LockWaits
from ffm.model.grouping import begins_of
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import RecordedLockWaits


def recorded_lock_waits(recordings: list[Recording]) -> RecordedLockWaits:
    """Return the waits of a run, those of each process in the order of their ends."""
    found: dict[str, list[int]] = {name: [] for name in RecordedLockWaits.__struct_fields__}
    for process, recording in enumerate(recordings):
        table = recording.lock_waits[np.argsort(recording.lock_waits["released"], kind="stable")]
        found["process"] += [process] * len(table)
        for name in ("waiter", "since", "releaser", "released"):
            found[name] += table[name].tolist()
    return RecordedLockWaits(**found)


def lock_waits_of_rows(recorded: RecordedLockWaits, columns: Columns, thread: NDArray[np.int32]) -> LockWaits:
    """Return the waits as the model needs them: those for which both threads have a row before.

    Args:
        recorded: from `recorded_lock_waits`.
        columns: the operations of the run, by process, thread and start.
        thread: the model's number of each row's thread, counted over all processes.
    """
    count = int(thread.max(initial=-1)) + 1
    begins = begins_of(thread, count)
    owners = zip(columns["process"][begins[:-1]].tolist(), columns["thread"][begins[:-1]].tolist(), strict=True)
    numbers = {owner: number for number, owner in enumerate(owners)}
    start = columns["start"]

    def row_before(process: int, number: int, time: int) -> int:
        """Return the last row of a thread that began before a time; -1 if there is none."""
        own = numbers.get((process, number))
        if own is None:
            return -1
        row = begins[own] + int(np.searchsorted(start[begins[own] : begins[own + 1]], time)) - 1
        return row if row >= begins[own] else -1

    ends = zip(recorded.waiter, recorded.since, strict=True), zip(recorded.releaser, recorded.released, strict=True)
    rows = [
        np.array([row_before(process, *end) for process, end in zip(recorded.process, side, strict=True)], np.int64)
        for side in ends
    ]
    known = (rows[0] >= 0) & (rows[1] >= 0)
    row, by = (side[known] for side in rows)
    over, let_go = (start[rows] + columns["duration"][rows] for rows in (row, by))
    since, released = (np.array(times, np.int64)[known] for times in (recorded.since, recorded.released))
    return LockWaits(row, (since - over).clip(0), by, (released - let_go).clip(0))
