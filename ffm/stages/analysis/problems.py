"""Which operations are problems: synchronizations and transfers that the program does not need where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.model.codes import is_one_of
from ffm.model.grouping import looked_up, parts
from ffm.model.necessity.program import Comparison
from ffm.model.necessity.reasons import AT_UNKNOWN_TIMES, REQUIRED, Reason
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.transfers import REPEATED
from ffm.results.columnar.columns import Columns
from ffm.results.documents.stacks import Stack
from ffm.stages.analysis.findings import Fetching
from ffm.stages.analysis.joined import Joined
from ffm.stages.analysis.timelines import traced_timeline

WORTH_MOVING_NS = 20_000
"""A required synchronization is misplaced if both its wait and the time to the first use exceed this. Below it,
launching the work that could move in between costs as much (a launch takes 5 to 10 microseconds).
"""

WORTH_MOVING_SHARE = 0.001
"""In addition, moving all occurrences of its call site must be able to save this share of the run."""

MOSTLY = 0.5
"""A synchronization is a problem only at sites where more than this share of the occurrences is unnecessary, because an
edit at the call site changes them all. The last iteration of a loop needs less than the others; that is no reason to
edit.
"""

"""What counts as an unnecessary transfer: its bytes need not be sent again."""


def timeline_of_problems(columns: Columns, joined: Joined, wall_s: float) -> Timeline:
    """Return the model's table: times as measured, problems flagged."""
    timeline = traced_timeline(columns)
    reason, first_use, stack = joined.reason, joined.first_use, timeline.site
    problem = timeline.problem
    unnecessary = is_one_of(reason, (Reason.NOTHING_RELIES, Reason.LATER_COVERS))
    judged = (reason != 0) & (reason != Reason.OUTSIDE_PORTION)
    unnecessary &= looked_up(_share(unnecessary, judged, stack) > MOSTLY, stack)
    repeated = is_one_of(joined.repetition, REPEATED)
    problem[unnecessary | (repeated & (columns["waits"] > 0))] |= np.uint8(Problem.UNNECESSARY_SYNCHRONIZATION)
    wait = columns["wait"]
    misplaced = (first_use > WORTH_MOVING_NS) if len(first_use) else np.zeros(0, np.bool_)
    if misplaced.any():
        misplaced &= is_one_of(reason, REQUIRED - AT_UNKNOWN_TIMES) & ~repeated & (wait > WORTH_MOVING_NS)
    if misplaced.any():
        misplaced &= looked_up(_share(misplaced, judged, stack) > MOSTLY, stack)
        movable = np.bincount(stack, weights=np.where(misplaced, np.minimum(first_use, wait), 0))
        misplaced &= movable[stack] >= WORTH_MOVING_SHARE * wall_s * 1e9
        problem[misplaced] |= np.uint8(Problem.MISPLACED_SYNCHRONIZATION)
        timeline = replace(timeline, first_use=np.where(misplaced, first_use, 0))
    problem[repeated] |= np.uint8(Problem.UNNECESSARY_TRANSFER)
    return timeline


def misplaced_synchronizations(timeline: Timeline) -> NDArray[np.bool_]:
    """Return which operations are misplaced synchronizations."""
    found: NDArray[np.bool_] = (timeline.problem & Problem.MISPLACED_SYNCHRONIZATION) != 0
    return found


def waits_for_timing(reason: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a `Comparison` for each wait that only serves timing, by its reason; otherwise 0."""
    sureness = np.zeros(len(reason), np.uint8)
    sureness[(reason == Reason.HOST_TIMER) | (reason == Reason.COUNTER_TIMER)] = Comparison.COMPARED
    sureness[reason == Reason.MAYBE_TIMER] = Comparison.MAYBE_COMPARED
    return sureness


def only_order_streams(reason: NDArray[np.uint8], timeline: Timeline) -> NDArray[np.bool_]:
    """Return which rows are synchronizations that only order streams, by their reasons."""
    found: NDArray[np.bool_] = (timeline.kind == Kind.SYNCHRONIZATION) & (reason == Reason.ORDERS_STREAMS)
    return found


def only_read_host_memory(columns: Columns) -> NDArray[np.bool_]:
    """Return which traced operations read host memory and write none, as uploads do."""
    source, destination = constant("FFM_OPERATION_HOST_SOURCE"), constant("FFM_OPERATION_HOST_DESTINATION")
    found = np.empty(len(columns["flags"]), np.bool_)
    for part in parts(len(found)):
        found[part] = (columns["flags"][part] & (source | destination)) == source
    return found


def fetches_of(
    reason: NDArray[np.uint8],
    keep: NDArray[np.int32],
    uploads: NDArray[np.bool_],
    timeline: Timeline,
    stacks: Sequence[Stack],
) -> Fetching | None:
    """Find, by the reasons of waits, where Python code fetches values more than once; None if it does nowhere.

    `uploads` are the transfers that only read host memory. A wait for what could not be watched that follows one of
    them may be there for its source, and is no fetch.

    The wait for them may have another before it, in the same line of the program, that it covers (`keep`): a copy to
    pageable memory waits, and so does what follows it.
    """
    watched = is_one_of(reason, (Reason.RESULT_USED, Reason.RESULT_USED_UNSEEN))
    unwatched = reason == Reason.NOT_WATCHED
    if unwatched.any():
        unwatched &= ~_follows(uploads, timeline)
    used = (watched | unwatched) & (timeline.problem == 0)
    often = np.flatnonzero(np.bincount(timeline.site[used], minlength=1) > 1).tolist()
    lines = {site: _python_line(stacks[site]) for site in often}
    fetching = [site for site, line in lines.items() if line is not None]
    if not fetching:
        return None
    found = np.where(used & np.isin(timeline.site, fetching), timeline.site, np.int32(-1))
    covered = (reason == Reason.LATER_COVERS) & np.isin(keep, fetching)
    for first, last in set(zip(timeline.site[covered].tolist(), keep[covered].tolist(), strict=True)):
        if _python_line(stacks[first]) == lines[last]:
            found[covered & (timeline.site == first) & (keep == last)] = last
    return Fetching(found, watched)


def _follows(transfers: NDArray[np.bool_], timeline: Timeline) -> NDArray[np.bool_]:
    """Return for each row whether its thread's last transfer, itself included, is one of these."""
    rows = np.arange(len(timeline))
    last = np.maximum.accumulate(np.where(timeline.kind == Kind.TRANSFER, rows, 0), dtype=np.int64)
    found: NDArray[np.bool_] = transfers[last] & (timeline.thread[last] == timeline.thread)
    return found


def _python_line(stack: Stack) -> tuple[str, int] | None:
    """Return the innermost line of Python code on a stack; None if there is none."""
    return next(((frame.file, frame.line) for frame in stack.frames if frame.python), None)


def _share(some: NDArray[np.bool_], of: NDArray[np.bool_], site: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return, for each site, how many of its rows in `of` are in `some`, from 0 to 1."""
    count = int(site.max(initial=-1)) + 1
    chosen, all_of = np.zeros((2, count))
    for part in parts(len(site), count):  # NumPy turns both columns into wider ones
        all_of += np.bincount(site[part], weights=of[part], minlength=count)
        chosen += np.bincount(site[part], weights=some[part] & of[part], minlength=count)
    return chosen / np.maximum(all_of, 1)
