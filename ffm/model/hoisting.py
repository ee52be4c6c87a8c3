"""Which frees and allocations disappear if memory is kept instead of freed (dissertation 5.4.1; 6.2).

A `cudaFree` that waits for nothing useful cannot simply be deleted, or memory would leak. Instead, the buffer is kept
for the next allocation at the same place. So a free saves its own time only if a later allocation at that place takes
over its memory, and then that allocation disappears as well. As many frees stay as buffers were in use at once; for a
loop, the last.
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
    """For each free, return the row of the allocation that could have used its memory, and the reverse.

    Rows are the successful allocations and frees of a run in order of time; all columns have shape (n,). A free gives
    its memory to the next allocation of the process with the call stack that had allocated it; each free serves one
    allocation. Returns shape (n,), with -1 if there is no partner. One pass.

    Args:
        process: the process of each row.
        site: the call stack of each row.
        address: the address allocated or freed.
        allocates: True for allocations, False for frees.
    """
    partner = np.full(len(site), -1, np.int32)
    living: dict[tuple[int, int], int] = {}  # process and address: the call stack that allocated it
    kept: dict[tuple[int, int], list[int]] = {}  # process and that call stack: frees whose memory has no taker yet
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
