"""Between which calls the samples of a run were taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.results.columnar.columns import Columns


def calls_around(recording: Recording, process: int, columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each sample of a process, the rows of its thread's operations before and after it; -1 for none.

    `columns` are the operations of the run, by process, thread and start.
    """
    samples = recording.samples
    before, after = (np.full(len(samples), -1, np.int64) for _ in range(2))
    begin, end = np.searchsorted(columns["process"], (process, process + 1))
    threads = columns["thread"][begin:end]
    for thread in np.unique(samples.thread).tolist():
        first, last = begin + np.searchsorted(threads, (thread, thread + 1))
        mine = np.flatnonzero(samples.thread == thread)
        row = first + np.searchsorted(columns["number"][first:last], samples.operation[mine])
        before[mine] = np.where(row > first, row - 1, -1)
        after[mine] = np.where(row < last, row, -1)
    return before, after
