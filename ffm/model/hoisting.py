"""Which frees and allocations go when memory is kept instead of freed (dissertation 5.4.1; 6.2).

A `cudaFree` that only waits for nothing is not deleted, or memory would leak: the buffer is kept for the next
allocation at the same place. So a free saves its own time only where a later allocation of that place takes its memory
over, and that allocation goes with it. As many frees stay as buffers were in use at once: of a loop's, the last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def reused_memory(
    process: NDArray[np.integer],
    site: NDArray[np.integer],
    address: NDArray[np.integer],
    allocates: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """For each free the row of the allocation that could have had its memory, and for that the row of the free.

    Rows are the successful allocations and frees of a run in order of time, all columns of shape (n,). A free gives its
    memory to the next allocation at the place that had allocated it, with the process's same call stack; each free
    serves one allocation. Returns shape (n,), -1 where there is no partner. One pass.

    Args:
        process: of each row.
        site: the call stack of each row.
        address: what was allocated or freed.
        allocates: True for allocations, False for frees.
    """
    partner = np.full(len(site), -1, np.int32)
    living: dict[tuple[int, int], int] = {}  # process and address: the call stack that allocated it
    kept: dict[tuple[int, int], list[int]] = {}  # process and that call stack: frees whose memory waits for a taker
    rows = zip(process.tolist(), site.tolist(), address.tolist(), allocates.tolist(), strict=True)
    for row, (owner, stack, where, allocation) in enumerate(rows):
        if allocation:
            waiting = kept.get((owner, stack))
            if waiting:
                free = waiting.pop()
                partner[row], partner[free] = free, row
            living[owner, where] = stack
        else:
            allocated_at = living.pop((owner, where), None)
            if allocated_at is not None:
                kept.setdefault((owner, allocated_at), []).append(row)
    return partner
