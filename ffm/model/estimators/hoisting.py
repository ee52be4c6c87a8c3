"""Which frees and allocations disappear if memory is kept instead of freed (dissertation 5.4.1; 6.2).

A `cudaFree` that waits for nothing useful cannot simply be deleted, or memory would leak. Instead, the buffer is kept
for the next allocation at the same place for which it is large enough. So a free saves its own time only if a later
allocation at that place takes over its memory, and then that allocation disappears as well. As many frees stay as
buffers were in use at once; in a loop, that is the last one. If each iteration asks for more than the one before, all
frees stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.model.estimators.hoisting_kernels import Calls, Kept, Sizes, reuse
from ffm.model.grouping import numbered

SURPLUS_PART = 8
"""Memory that an allocation takes over may be an eighth larger than it. The pool of `ffm apply-remedy` keeps to it
(`best_of` in `ffm/instrument/native/correction/order/pool.c`).
"""

LEAST_KEPT_BYTES = 64 << 20
"""A process can keep this much of a kind of memory without a taker on top of what it held of it at its peak (`SLACK` in
`pool.c`).
"""


def reused_memory(
    process: NDArray[np.integer],
    site: NDArray[np.integer],
    address: NDArray[np.integer],
    size: NDArray[np.integer],
    allocates: NDArray[np.bool_],
    kind: NDArray[np.integer],
) -> NDArray[np.int32]:
    """For each free, return the row of the allocation that could have used its memory, and the reverse.

    Rows are the successful allocations and frees of a run in order of time; all columns have shape (n,). A free gives
    its memory to the next allocation of the process with the call stack that had allocated it and about its size; each
    free serves one allocation. Returns shape (n,), with -1 if there is no partner, and the row itself for a free whose
    memory the process could keep to its end. One pass.

    Args:
        process: the process of each row.
        site: the call stack of each row.
        address: the address allocated or freed.
        size: the bytes that an allocation asks for; not used for frees.
        allocates: True for allocations, False for frees.
        kind: what kind of memory an allocation is of; not used for frees.
    """
    partner = np.full(len(site), -1, np.int32)
    asking = np.flatnonzero(allocates)
    if not len(asking):
        return partner
    pool, _ = numbered(process[asking], kind[asking])
    place, _ = numbered(pool, site[asking])
    asked, first = numbered(place, size[asking])
    number = np.full(len(site), -1, np.int64)
    number[asking] = asked
    where, addresses = numbered(process, address)
    leaves = 1 << int(len(first) - 1).bit_length()
    sizes = Sizes(
        size[asking][first].astype(np.int64), np.searchsorted(place[first], place[first], side="right"), pool[first]
    )
    kept = Kept(
        waiting=np.zeros(2 * leaves, np.int64),
        latest=np.full(len(first), -1, np.int64),
        before=np.full(len(site), -1, np.int64),
        living=np.full(len(addresses), -1, np.int64),
        held=np.zeros(int(pool.max()) + 1, np.int64),
        peak=np.zeros(int(pool.max()) + 1, np.int64),
    )
    run(reuse, len(site), Calls(where, allocates, number), sizes, kept, SURPLUS_PART, LEAST_KEPT_BYTES, partner)
    return partner


def without_keeping(partner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the partners if memory that nobody takes over is freed after all, instead of being kept to the process's
    end.
    """
    rows = np.flatnonzero(partner >= 0)
    kept = rows[partner[rows] == rows]
    if not len(kept):
        return partner
    without = partner.copy()
    without[kept] = -1
    return without
