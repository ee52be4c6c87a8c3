"""How long the GPU takes to copy, from what the transfers of a run show.

A trace tells how long the CPU waited for a synchronous transfer, not how much of that was the copy and how much was
work before it. The fastest call stack whose transfers wait shows what the connection can do; each transfer's bytes
at that speed is the least time that its copy takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORTH_TIMING_BYTES = 64 * 1024
"""Smaller transfers last as long as their call, and say nothing of the speed."""


def copy_times(
    transferred: NDArray[np.integer],
    count: NDArray[np.integer],
    total_s: NDArray[np.floating],
    wait_s: NDArray[np.floating],
) -> NDArray[np.int64]:
    """Nanoseconds that the copy of one transfer takes at least, for each call stack; shape (stacks,).

    Zero where the speed is not known: nothing was transferred, or no transfer of a size worth timing waits for most
    of its time (in others the time is not the copy's).

    Args:
        transferred: bytes that all transfers of each stack moved, 0 for stacks that are no transfers.
        count: how many operations there were.
        total_s: seconds in the driver, waiting included.
        wait_s: seconds of waiting.
    """
    size = transferred / np.maximum(count, 1)
    timed = (size >= WORTH_TIMING_BYTES) & (wait_s > 0.5 * total_s) & (total_s > 0)
    if not timed.any():
        return np.zeros(len(size), np.int64)
    bytes_a_second = (transferred[timed] / total_s[timed]).max()
    least: NDArray[np.float64] = size / bytes_a_second * 1e9
    return least.astype(np.int64)
