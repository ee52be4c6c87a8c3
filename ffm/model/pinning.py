"""Which host memory must be pinned so that transfers need not wait.

A copy from or to pageable memory waits, whatever the program calls: making it asynchronous requires that its memory is
pinned first, once. Memory at the same place counts as one buffer, because the fix is to keep it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
"""Bytes of a page, the least that can be pinned."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Host memory that some call sites transfer, and no others: `bytes` in whole pages."""

    sites: tuple[int, ...]
    bytes: int


def buffers_to_pin(
    process: NDArray[np.integer], first: NDArray[np.uint64], size: NDArray[np.integer], site: NDArray[np.integer]
) -> list[Buffers]:
    """Return the distinct memory of some transfers, by the set of sites that use it.

    Args:
        process: of each transfer, shape (n,).
        first: address of the first byte in host memory, shape (n,).
        size: bytes, shape (n,).
        site: call site, shape (n,).
    """
    if not len(first):
        return []
    # Addresses have at most 64 bits, so that the page's number leaves 12 for the process.
    base = process.astype(np.uint64) << np.uint64(52)
    begin = base + first // np.uint64(PAGE)
    end = base + (first + np.maximum(size, 1).astype(np.uint64) + np.uint64(PAGE - 1)) // np.uint64(PAGE)
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    begins = np.flatnonzero(np.concatenate(([True], begin[1:] >= reach[:-1])))
    pages = reach[np.append(begins[1:], len(reach)) - 1] - begin[begins]
    buffer = np.searchsorted(begins, np.arange(len(begin)), side="right") - 1
    users: dict[int, list[int]] = {}
    for number, user in np.unique(np.column_stack([buffer, site[order]]), axis=0).tolist():
        users.setdefault(number, []).append(user)
    total: dict[tuple[int, ...], int] = {}
    for number, sites in users.items():
        total[tuple(sites)] = total.get(tuple(sites), 0) + PAGE * int(pages[number])
    return [Buffers(sites, size) for sites, size in total.items()]
