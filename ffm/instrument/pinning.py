"""What pinning host memory costs on this machine."""

from __future__ import annotations

import functools
import mmap
import time
from collections.abc import Iterable

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind, Memory, Shape

PINNING = frozenset(
    function.name
    for function in load_catalogue().of_kind(Kind.ALLOCATION)
    if function.memory in (Memory.PINNED, Memory.REGISTERED) and function.shape is not Shape.NARROW
)
"""Driver functions that pin host memory."""

MEASURED_BYTES, ROUNDS = 32 << 20, 3


@functools.cache
def least_pinning_s() -> float:
    """Measure the seconds per byte in which this machine makes and zeroes pages: the least that pinned memory costs.

    Raises:
        OSError: There is not enough memory.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        pages = mmap.mmap(-1, MEASURED_BYTES, flags=flags)
        least = min(least, time.perf_counter() - began)
        pages.close()
    return least / MEASURED_BYTES


def pinning_s(own: Iterable[tuple[str, int, float]], least_s: float) -> float:
    """Return the seconds per byte that pinning costs: what it cost the program itself, if that was recorded, and at
    least `least_s`, what a machine needs.

    `own` are the driver function, bytes and seconds of the program's operations or call sites.
    """
    pinned = [(size, seconds) for function, size, seconds in own if function in PINNING and size]
    total = sum(size for size, _ in pinned)
    return max(least_s, sum(seconds for _, seconds in pinned) / total if total else 0.0)
