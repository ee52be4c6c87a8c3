"""What pinning host memory costs: for the transfers of a program that wait because theirs is pageable, and for the
staging memory of corrections.
"""

from __future__ import annotations

import functools
import mmap
import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ffm.model.pinning import buffers_to_pin
from ffm.model.timeline import Problem, Timeline
from ffm.stages.allocations import pageable_memory
from ffm.stages.analysis_document import PinnedMemory
from ffm.stages.columns import Columns
from ffm.stages.operations import function_name

PINNING = ("cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister_v2")

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


def pinning_s(own: Iterable[tuple[str, int, float]]) -> float:
    """Return the seconds per byte that pinning costs: what it cost the program itself, if that was recorded, and at
    least what this machine needs.

    `own` are the driver function, bytes and seconds of the program's operations or call sites.

    Raises:
        OSError: There is not enough memory to measure with.
    """
    pinned = [(size, seconds) for function, size, seconds in own if function in PINNING and size]
    total = sum(size for size, _ in pinned)
    return max(least_pinning_s(), sum(seconds for _, seconds in pinned) / total if total else 0.0)


def memory_to_pin(columns: Columns, order: NDArray[np.int64], timeline: Timeline) -> list[PinnedMemory]:
    """Return the pageable memory of the transfers that would not wait if it were pinned, and what that costs.

    A repeated transfer needs no pinned memory, because it is left out.

    Args:
        columns: from `ffm.stages.operations.operation_columns`.
        order: the timeline's rows in the columns.
        timeline: the operations with their problems.

    Raises:
        OSError: There is not enough memory to measure with.
    """
    waits = Problem.UNNECESSARY_SYNCHRONIZATION | Problem.MISPLACED_SYNCHRONIZATION
    moved = ((timeline.problem & waits) != 0) & ((timeline.problem & Problem.UNNECESSARY_TRANSFER) == 0)
    rows, first = pageable_memory(columns, order[moved])
    if not len(rows):
        return []
    part = {name: columns[name][rows] for name in ("process", "bytes", "stack")}
    found = buffers_to_pin(part["process"], first, part["bytes"], part["stack"])
    names = [function_name(number) for number in np.unique(columns["function"]).tolist()]
    own = []
    for number, name in zip(np.unique(columns["function"]).tolist(), names, strict=True):
        if name in PINNING:
            calls = (columns["function"] == number) & (columns["result"] == 0)
            own.append((name, int(columns["bytes"][calls].sum()), float(columns["duration"][calls].sum()) / 1e9))
    byte_s = pinning_s(own)
    return [PinnedMemory(sites=list(one.sites), bytes=one.bytes, cost_s=one.bytes * byte_s) for one in found]
