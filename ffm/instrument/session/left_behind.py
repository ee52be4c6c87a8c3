"""Waits for the processes, such as daemons, that a program left behind when its first process ended."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence

LOOK_EACH_S = 0.05
UNDECIDED_S = 10.0
"""How long processes may take until one of them loads a driver, where none of the program's has yet."""
ARRIVAL_S = 2.0
"""How long a child may take from its birth until it comes to the gate, where no process has loaded a driver yet."""


def await_left_behind(
    alive: Callable[[], set[int]], users: Callable[[], set[int]], *, until: float | None, stop: Sequence[int]
) -> bool:
    """Wait for the processes that use the driver, because their recordings are not complete; return false when the time
    is up.

    If no process has used the driver so far, the first one that is left may be about to. Others are not waited for.

    Args:
        alive: The program's processes that live.
        users: Those of its processes, living or not, that use the driver.
        until: When the time is up (`time.monotonic`); None for never.
        stop: Descriptors of which one is readable once the run is over, or has failed.
    """
    began = time.monotonic()
    while True:
        living, using = alive(), users()
        waited = time.monotonic() - began
        undecided = not using and waited < UNDECIDED_S
        if not (living or waited < ARRIVAL_S if undecided else living & using):
            return True
        if until is not None and time.monotonic() > until:
            return False
        if select.select(stop, [], [], LOOK_EACH_S)[0]:
            return True
