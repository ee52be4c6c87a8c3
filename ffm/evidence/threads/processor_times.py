"""How long threads waited for a processor, as the kernel counted it and the collector recorded it.

Which threads had the processors meanwhile is not known. The process's own threads are assumed to account for the same
share of that waiting as they have of all processor time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.grouping import begins_of
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import ProcessorTimes


def recorded_processor_times(recordings: list[Recording]) -> ProcessorTimes:
    """Return the times of the threads that ended before their process, or with it by exit(3)."""
    found: dict[str, list[int]] = {name: [] for name in ("process", "thread", "delayed")}
    own: list[float] = []
    for process, recording in enumerate(recordings):
        table = recording.processor_times
        of_threads = table[table["number"] != constant("FFM_NO_THREAD")]
        _, last = np.unique(of_threads["number"][::-1], return_index=True)
        of_threads = of_threads[::-1][last]
        found["process"] += [process] * len(of_threads)
        found["thread"] += of_threads["number"].tolist()
        found["delayed"] += of_threads["delayed"].tolist()
        own += [_share(table)] * len(of_threads)
    return ProcessorTimes(**found, own=own)


def _share(table: NDArray[np.void]) -> float:
    """Return a process's share of all processor time."""
    if not len(table):
        return 0.0
    first, last = table[0], table[-1]
    available = int(first["processors"]) * (int(last["time"]) - int(first["time"]))
    ran = int(last["process_ran"]) - int(first["process_ran"])
    return min(max(ran / available, 0.0), 1.0) if available > 0 else 0.0


def delayed_by_own(recorded: ProcessorTimes, columns: Columns, thread: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for how many nanoseconds each thread waited for a processor that threads of its process had, shape
    (threads,); -1 if it is not known.

    Args:
        recorded: from `recorded_processor_times`.
        columns: the operations of the run, by process, thread and start.
        thread: the model's number of each row's thread, counted over all processes.
    """
    first = begins_of(thread, int(thread.max(initial=-1)) + 1)[:-1]
    owners = zip(columns["process"][first].tolist(), columns["thread"][first].tolist(), strict=True)
    numbers = {owner: number for number, owner in enumerate(owners)}
    delayed = np.full(len(first), -1, np.int64)
    entries = zip(recorded.process, recorded.thread, recorded.delayed, recorded.own, strict=True)
    for process, number, nanoseconds, own in entries:
        if (found := numbers.get((process, number))) is not None:
            delayed[found] = int(nanoseconds * own)
    return delayed
