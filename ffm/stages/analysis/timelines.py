"""The model's table of a traced run, before anything is known about what the program needs."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.grouping import parts
from ffm.model.timeline import Timeline
from ffm.results.columnar.columns import Columns
from ffm.results.documents.run import Portion
from ffm.stages.analysis.timeline_kernels import fill_in_gaps, number_threads


def traced_timeline(columns: Columns) -> Timeline:
    """Return the operations of a run, by process, thread and start, with times as measured and no problem.

    Most of its columns are those given, which are mapped and take no memory of their own.
    """
    thread = numbered_threads(columns)
    start, duration, wait = (columns[name] for name in ("start", "duration", "wait"))
    gap = np.empty(len(start), np.int64)
    run(fill_in_gaps, len(start), thread, start, duration, gap)
    within = all((wait[part] <= duration[part]).all() for part in parts(len(wait)))
    return Timeline(
        thread=thread,
        start=start,
        duration=duration,
        wait=wait if within else np.minimum(wait, duration),
        gap=gap,
        site=columns["stack"].astype(np.int32, copy=False),
        kind=columns["kind"],
        problem=np.zeros(len(start), np.uint8),
        first_use=np.zeros(0, np.int64),
        occurrences=np.zeros(0, np.int64),
    )


def numbered_threads(columns: Columns) -> NDArray[np.int32]:
    """Number the threads of all processes, for each row of a run's operations by process, thread and start."""
    number = np.zeros(len(columns["process"]), np.int32)
    if not (columns["process"].any() or columns["thread"].any()):  # of one thread, zeros take no memory
        return number
    run(number_threads, len(number), columns["process"], columns["thread"], number)
    return number


def longer_by(traced: Timeline, timeline: Timeline) -> float:
    """Return the seconds, over all threads, by which the probes lengthened calls and the time between them.

    This is less than the probes' own time if the GPU was busy meanwhile, because then the CPU waits longer without
    them.
    """
    with_probes = traced.duration.sum() + traced.gap.sum()
    return float(with_probes - timeline.duration.sum() - timeline.gap.sum()) / 1e9


def portion_without_probes(portion: Portion, traced: Timeline, timeline: Timeline) -> Portion:
    """Return a portion that took as much less as the probes took of the thread that was measured longest.

    The rest of the run is what the bare program took beyond that. A run that was ended, or of which only the end was
    kept, is compared with nothing, and keeps its time.
    """
    if portion.cut or portion.last_s is not None or not len(traced):
        return portion
    lasting, shorter = (
        np.bincount(one.thread, weights=one.duration + one.gap, minlength=int(traced.thread.max()) + 1)
        for one in (traced, timeline)
    )
    longest = int(lasting.argmax())
    probes_s = max(float(lasting[longest] - shorter[longest]) / 1e9, 0.0)
    return msgspec.structs.replace(portion, measured_s=max(portion.measured_s - probes_s, 0.0))
