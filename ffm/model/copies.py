"""How long the GPU takes to copy, derived from a run's transfers.

A trace shows how long the CPU waited for a synchronous transfer, but not how much of that was the copy and how much was
earlier work. The fastest call stack with waiting transfers shows the speed of the link. At that speed, each transfer's
bytes give the minimum time of its copy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORTH_TIMING_BYTES = 64 * 1024
"""Smaller transfers last as long as their call, and reveal nothing about the speed."""


def copy_times(
    transferred: NDArray[np.integer],
    count: NDArray[np.integer],
    total_s: NDArray[np.floating],
    wait_s: NDArray[np.floating],
) -> NDArray[np.int64]:
    """Minimum nanoseconds that the copy of one transfer takes, for each call stack; shape (stacks,).

    Zero if the speed is unknown: nothing was transferred, or no transfer of a size worth timing waits for most of its
    time (in others the time is not that of the copy).

    Args:
        transferred: bytes that all transfers of each stack moved; 0 for stacks that are not transfers.
        count: the number of operations.
        total_s: seconds in the driver, including waiting.
        wait_s: seconds of waiting.
    """
    size = transferred / np.maximum(count, 1)
    timed = (size >= WORTH_TIMING_BYTES) & (wait_s > 0.5 * total_s) & (total_s > 0)
    if not timed.any():
        return np.zeros(len(size), np.int64)
    bytes_a_second = (transferred[timed] / total_s[timed]).max()
    least: NDArray[np.float64] = size / bytes_a_second * 1e9
    return least.astype(np.int64)
