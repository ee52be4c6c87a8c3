"""The model's table of a traced run, before anything is known about what the program needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.timeline import Timeline
from ffm.results.columns import Columns


def traced_timeline(columns: Columns, order: NDArray[np.int64]) -> Timeline:
    """Return the operations of a run in `order` (by process, thread, start), with times as measured and no problem."""
    part = {name: column[order] for name, column in columns.items()}
    thread = numbered_threads(columns, order)
    end = part["start"] + part["duration"]
    gap = np.zeros(len(end), np.int64)
    gap[:-1] = np.where(thread[1:] == thread[:-1], part["start"][1:] - end[:-1], 0)
    return Timeline(
        thread=thread,
        start=part["start"],
        duration=part["duration"],
        wait=np.minimum(part["wait"], part["duration"]),
        gap=np.maximum(gap, 0),
        site=part["stack"].astype(np.int32),
        kind=part["kind"],
        problem=np.zeros(len(end), np.uint8),
        first_use=np.zeros(len(end), np.int64),
        occurrences=np.ones(len(end), np.int64),
    )


def numbered_threads(columns: Columns, order: NDArray[np.int64]) -> NDArray[np.int32]:
    """Number the threads of all processes, for each row in `order` (by process, thread, start)."""
    process, thread = columns["process"][order], columns["thread"][order]
    if not len(process):
        return np.empty(0, np.int32)
    new = (process[1:] != process[:-1]) | (thread[1:] != thread[:-1])
    return np.concatenate(([0], np.cumsum(new))).astype(np.int32)


def in_order(columns: Columns) -> NDArray[np.int64]:
    """Return the order of a run's operations by process, thread and start."""
    return np.lexsort((columns["start"], columns["thread"], columns["process"]))


def longer_by(traced: Timeline, timeline: Timeline) -> float:
    """Return the seconds, over all threads, by which the probes lengthened calls and the time between them.

    This is less than the probes' own time if the GPU was busy meanwhile, because then the CPU waits longer without
    them.
    """
    with_probes = traced.duration.sum() + traced.gap.sum()
    return float(with_probes - timeline.duration.sum() - timeline.gap.sum()) / 1e9
