"""The `carry` estimator: the dissertation's expected benefit (Figure 5.1), with unrealized savings carried forward
(5.2).

What fixing a set of operations saves, on each CPU thread separately:

- **Unnecessary synchronization.** Its wait goes away, but the GPU's work does not. The wait is saved to the extent that
  the thread has its own CPU work and launches between it and its next synchronization, which keep the GPU busy in the
  meantime. The rest moves into that next synchronization. If that one is fixed in the same set, the rest moves on from
  there together with its own wait. If it stays, or the thread ends, the rest is lost.
- **`cudaFree`** and other frees: there is no asynchronous form, so the call itself goes, and its own time (`duration -
  wait`) is saved too (dissertation 5.1). The own time of an explicit synchronization counts as work that stays, as in
  Figure 5.1, which removes only the wait.
- **Misplaced synchronization.** Moved to the first use of what it protects, it saves `min(first_use, wait)`.
  What was carried into it counts as its wait. Nothing is carried past it.
- **Unnecessary transfer.** It saves its launch (`duration - wait`), and the part of its wait in which the GPU copied
  for it (`copy_time`, if known): that work is gone, so no other work need absorb it. Figure 5.1 leaves this out, and so
  does the default without copy times. The rest of its wait is a synchronization like any other: saved by the first rule
  if that is unnecessary too, otherwise staying as a synchronization.

Every second is counted once. The own time of a removed call and the wait of a removed synchronization absorb nothing;
the time that absorbed one wait does not absorb another; and what the fix removes is not part of the time until the
first use. So a set never saves more than its waits and own times, nor more than the run. A larger set never saves less,
unless it contains misplaced synchronizations: it may contain a wait past which one of them could have been moved.

Selecting an operation means fixing the problems of its row. Rows without a problem change nothing.

*What counts as a synchronization*: a row that waited; an explicit synchronization even if it had nothing to wait for
(it will, once the one before it is gone); and any row that stages 3 or 4 marked with a problem of that kind. A transfer
or launch that never waited is CPU work. Frees wait first and work afterwards; every other call launches first and waits
afterwards.

Rows that sum up many executions (`occurrences` > 1, imported) are each treated as one long execution. That equals the
sum over all executions if they are alike. Otherwise it is an approximation, because work that followed one occurrence
can then absorb the wait of another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.compiled import run
from ffm.model.timeline import NANOSECONDS_IN_SECOND, Timeline

PASSES_WORTH_COMPILING = 10
"""Compiling pays if this many times the rows for which a single pass is compiled are visited one after the other: plain
Python needs about two seconds for them.
"""


def carry(timeline: Timeline, selected: NDArray[np.bool_], copy_time: NDArray[np.int64] | None = None) -> float:
    """Seconds that fixing the selected rows together saves. One pass over the rows.

    Args:
        timeline: the operations.
        selected: shape (rows,).
        copy_time: as for `carry_by_group`.

    Raises:
        ValueError: `selected` does not have one boolean per row.
    """
    if selected.dtype != np.bool_ or selected.shape != (len(timeline),):
        raise ValueError(f"need one boolean for each of {len(timeline)} rows, not {selected.dtype} {selected.shape}")
    # Of the type of sites: for others, the passes are compiled once more.
    label = selected.astype(np.int32) - np.int32(1)
    return float(carry_by_group(timeline, label, np.zeros(1, np.int32), 1, copy_time)[0])


def carry_by_group(
    timeline: Timeline,
    label: NDArray[np.integer],
    group_of: NDArray[np.integer],
    groups: int,
    copy_time: NDArray[np.int64] | None = None,
    visited: int = 0,
) -> NDArray[np.float64]:
    """Seconds that fixing each group alone saves, for any number of groups without common rows, in one pass.

    Args:
        timeline: the operations.
        label: shape (rows,), for example `timeline.site`; negative if a row is in no group.
        group_of: shape (labels,), the group of each label; negative if it is in none.
        groups: the number of groups.
        copy_time: shape (sites,), nanoseconds that the GPU copies for one transfer of each site (see
            `ffm.model.copies`); by default none are known.
        visited: how many rows the caller's earlier passes have visited: compiling pays for many even if the table is
            small.
    """
    if label.shape != (len(timeline),):
        raise ValueError(f"need one label for each of {len(timeline)} rows, not {label.shape}")
    if copy_time is None:
        copy_time = np.zeros(int(timeline.site.max(initial=-1)) + 1, np.int64)
    rows = kernels.Rows(
        timeline.thread,
        timeline.duration,
        timeline.wait,
        timeline.gap,
        timeline.kind,
        timeline.problem,
        timeline.first_use,
        timeline.site,
    )
    visits = max(len(timeline), visited // PASSES_WORTH_COMPILING)
    saved: NDArray[np.int64] = run(kernels.carry_groups, visits, rows, copy_time, label, group_of, groups)
    return saved.astype(np.float64) / NANOSECONDS_IN_SECOND
