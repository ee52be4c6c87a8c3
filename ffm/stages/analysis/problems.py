"""Which operations are problems: synchronizations and transfers that the program does not need where they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import has_any, is_one_of
from ffm.model.grouping import looked_up, parts
from ffm.model.necessity.program import Comparison
from ffm.model.necessity.reasons import AT_UNKNOWN_TIMES, REQUIRED, UNNECESSARY, Reason
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.model.transfers import REPEATED
from ffm.results.columnar.columns import Columns
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
    unnecessary = is_one_of(reason, UNNECESSARY)
    judged = ~is_one_of(reason, (0, Reason.OUTSIDE_PORTION))
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
    return has_any(timeline.problem, Problem.MISPLACED_SYNCHRONIZATION)


def waits_for_timing(reason: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a `Comparison` for each wait that only serves timing, by its reason; otherwise 0."""
    sureness = np.zeros(len(reason), np.uint8)
    sureness[is_one_of(reason, (Reason.HOST_TIMER, Reason.COUNTER_TIMER))] = Comparison.COMPARED
    sureness[is_one_of(reason, (Reason.MAYBE_TIMER,))] = Comparison.MAYBE_COMPARED
    return sureness


def only_order_streams(reason: NDArray[np.uint8], timeline: Timeline) -> NDArray[np.bool_]:
    """Return which rows are synchronizations that only order streams, by their reasons."""
    return is_one_of(timeline.kind, (Kind.SYNCHRONIZATION,)) & is_one_of(reason, (Reason.ORDERS_STREAMS,))


def _share(some: NDArray[np.bool_], of: NDArray[np.bool_], site: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return, for each site, how many of its rows in `of` are in `some`, from 0 to 1."""
    count = int(site.max(initial=-1)) + 1
    chosen, all_of = np.zeros((2, count))
    for part in parts(len(site), count):  # NumPy turns both columns into wider ones
        all_of += np.bincount(site[part], weights=of[part], minlength=count)
        chosen += np.bincount(site[part], weights=some[part] & of[part], minlength=count)
    return chosen / np.maximum(all_of, 1)
