"""The table that the model works on: one row per traced driver operation.

The rows are the CPU side of the dissertation's graph (chapter 5). A row represents two CPU nodes, `CLaunch` (the part
of the call that does not wait, `duration - wait`) and `CWait` (`wait`), and the `CWork` that follows until the next row
of the same thread (`gap`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

NANOSECONDS_IN_SECOND = 1e9


class Kind(IntEnum):
    """What an operation does, as far as the model distinguishes it."""

    OTHER = 0
    SYNCHRONIZATION = 1
    """An explicit synchronization: its purpose is to wait."""
    TRANSFER = 2
    """Moves bytes between host and device, or sets them."""
    FREE = 3
    """Releases memory. If it waits, the wait disappears only with the call (dissertation 5.1)."""
    ALLOCATION = 4
    LAUNCH = 5
    PRIVATE = 6
    """A wait under no public call: a library used the driver's private interface."""


class Problem(IntFlag):
    """What stages 3 and 4 found about an operation. A transfer may also synchronize, so flags combine."""

    NONE = 0
    UNNECESSARY_SYNCHRONIZATION = 1
    MISPLACED_SYNCHRONIZATION = 2
    UNNECESSARY_TRANSFER = 4


@dataclass(frozen=True, slots=True)
class Timeline:
    """Operations of a run, sorted by thread, then start. All columns have the same length, if not said otherwise.

    Times are nanoseconds on the host's monotonic clock. In results, the cost of the probes has been removed from them
    (`ffm.model.estimators.replay.Replay.without_probes`).
    """

    thread: NDArray[np.int32]
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    """Time inside the driver call, including waiting."""
    wait: NDArray[np.int64]
    """Part of `duration` spent in the driver's internal wait function."""
    gap: NDArray[np.int64]
    """From the end of the operation to the start of the thread's next one, or to the end of the run."""
    site: NDArray[np.int32]
    """Index of the call stack in the results' table of sites."""
    kind: NDArray[np.uint8]
    """A value of `Kind`."""
    problem: NDArray[np.uint8]
    """Flags of `Problem`."""
    first_use: NDArray[np.int64]
    """For a misplaced synchronization, the time from its end to the first use of what it protects; otherwise 0. Empty
    if no synchronization is misplaced.
    """
    occurrences: NDArray[np.int64]
    """How many executions the row sums up: 1 in a measured trace, more in imported per-stack totals. Empty if it is 1
    for all.
    """

    def __len__(self) -> int:
        return len(self.start)

    def over(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return when the calls of some rows are over; all others take no part in it, and no memory."""
        ends: NDArray[np.int64] = self.start[rows] + self.duration[rows]
        return ends

    def for_path(self) -> Timeline:
        """Return the same with empty columns in place of those that only estimates need."""
        return replace(
            self,
            problem=np.empty(0, np.uint8),
            first_use=np.empty(0, np.int64),
            occurrences=np.empty(0, np.int64),
        )
