"""Why synchronizations have their verdicts."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Reason(IntEnum):
    """Why a synchronization has its verdict."""

    NOT_A_SYNCHRONIZATION = 0
    NOTHING_RELIES = 1
    LATER_COVERS = 2
    """Something relies on the work it waits for, but a later synchronization, which must stay, covers it too."""
    RESULT_USED = 3
    SOURCE_OVERWRITTEN = 4
    PRIVATE_CALL = 5
    ORDERS_STREAMS = 6
    TIMING = 7
    UNWATCHED_MEMORY = 8
    HOST_FUNCTION = 9
    NOT_WATCHED = 10
    RELEASED = 11
    HOST_TIMER = 12
    DESTROYED = 13
    UNKNOWN_WAIT = 14
    MAYBE_TIMER = 15
    HANDED_OVER = 16
    SHARED_MEMORY = 17
    OUTSIDE_PORTION = 18
    """Only a portion of the run was measured, and what lies outside of it may rely on the wait."""
    ANSWER = 19
    """The program asks whether the work is over, and never got the answer that it is not."""
    PRINTED = 20
    """What kernels print appears when it returns."""
    COUNTER_TIMER = 21
    """As `HOST_TIMER`, where the program itself reads the processor's counter (RDTSC, RDTSCP)."""
    RESULT_USED_UNSEEN = 22
    """As `RESULT_USED`, by a use that was not watched."""
    SOURCE_OVERWRITTEN_UNSEEN = 23
    """As `SOURCE_OVERWRITTEN`, likewise."""
    EVENT_NOT_RECORDED = 24
    """Its event was not recorded yet, so it waits for nothing."""


UNNECESSARY = (Reason.NOTHING_RELIES, Reason.LATER_COVERS, Reason.EVENT_NOT_RECORDED)
"""The reasons of synchronizations that may be removed, perhaps only as long as another one stays."""

REQUIRED = frozenset(Reason) - {Reason.NOT_A_SYNCHRONIZATION, *UNNECESSARY}
"""The reasons that make a synchronization required."""

AT_UNKNOWN_TIMES = frozenset((Reason.NOT_WATCHED, Reason.HOST_FUNCTION, Reason.OUTSIDE_PORTION, Reason.PRINTED))
"""The reasons of synchronizations on which something may rely before all that was seen to: they cannot be moved."""


_IS_REQUIRED = np.isin(np.arange(1 + max(Reason)), list(REQUIRED))


def is_required(reason: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which of some values of `Reason` make a synchronization required."""
    required: NDArray[np.bool_] = _IS_REQUIRED[reason]
    return required
