"""The `bound` estimator: what the published Diogenes computes, an upper bound from averages.

Derived from Diogenes's own results of cumf_als and the screens that it printed from them:

- For one call stack: `min(mean wait, mean gap) * (occurrences whose synchronization is not needed)` plus `mean
  operation time * (duplicate transfers or, for all other calls, the unneeded occurrences)`, but at most the stack's
  time in the driver. Single points and folds are sums over their stacks. Operation time is the part of a call that does
  not wait.
- For a sequence or subsequence: `min(sum of time in the driver, sum of gaps)` over its operations.

A gap is the time to the thread's next *synchronizing or transferring* operation. Diogenes traced nothing else, so the
launches and allocations of a timeline are part of the gap here.

Unlike in `ffm.model.estimators.carry`, CPU time *before* a synchronization may absorb its wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.compiled import run
from ffm.model.timeline import NANOSECONDS_IN_SECOND, Timeline


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums for a number of groups or call stacks. Times are seconds; each column has shape (groups,)."""

    count: NDArray[np.int64]
    total: NDArray[np.float64]
    """Time in the driver, including waiting."""
    wait: NDArray[np.float64]
    gap: NDArray[np.float64]
    """From the operations to the next synchronizing or transferring one."""
    unnecessary: NDArray[np.int64]
    """Occurrences that synchronize without need."""
    duplicate: NDArray[np.int64]
    """Occurrences that transfer without need."""
    problems: NDArray[np.int64]
    """Occurrences with any problem."""
    kind: NDArray[np.int64]
    """`Kind` of the first row; 0 if there is none."""


def totals(timeline: Timeline, label: NDArray[np.integer], group_of: NDArray[np.integer], groups: int) -> Totals:
    """Sum up the rows of each group in one pass. Arguments as for `ffm.model.estimators.carry.carry_by_group`."""
    sums: NDArray[np.int64] = run(
        kernels.bound_totals,
        len(timeline),
        timeline.thread,
        timeline.duration,
        timeline.wait,
        timeline.gap,
        timeline.kind,
        timeline.problem,
        timeline.occurrences,
        label,
        group_of,
        groups,
    )
    columns = sums.T
    return Totals(
        columns[0],
        columns[1] / NANOSECONDS_IN_SECOND,
        columns[2] / NANOSECONDS_IN_SECOND,
        columns[3] / NANOSECONDS_IN_SECOND,
        columns[4],
        columns[5],
        columns[6],
        columns[7],
    )


def bound_by_stack(stacks: Totals) -> NDArray[np.float64]:
    """Seconds that fixing each call stack alone saves; a single point or fold is the sum over its stacks."""
    count = np.maximum(stacks.count, 1)
    waits = np.minimum(stacks.wait, stacks.gap) * stacks.unnecessary / count
    removed = np.where(stacks.duplicate > 0, stacks.duplicate, stacks.unnecessary)
    own = np.maximum(stacks.total - stacks.wait, 0.0) * removed / count
    saved: NDArray[np.float64] = np.minimum(waits + own, stacks.total)
    return saved


def bound_of_sequence(operations: Totals) -> NDArray[np.float64]:
    """Seconds that fixing each sequence or subsequence saves; each group's totals are over all its operations."""
    saved: NDArray[np.float64] = np.minimum(operations.total, operations.gap)
    return saved
