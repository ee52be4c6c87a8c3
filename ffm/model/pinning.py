"""Which host memory must be pinned so that transfers need not wait.

A copy from or to pageable memory waits, whatever the program calls. To make it asynchronous, its memory has to be
pinned first, once. Memory at the same place counts as one buffer, because the fix is to keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
"""Bytes of a page, the least that can be pinned."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Host memory that some call sites transfer, and no others: `bytes` in whole pages, in `count` separate pieces."""

    sites: tuple[int, ...]
    bytes: int
    count: int = 1


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
    total: dict[tuple[int, ...], tuple[int, int]] = {}
    for number in np.unique(process):
        mine = process == number
        for sites, pages in _distinct(first[mine], size[mine], site[mine]):
            before, count = total.get(sites, (0, 0))
            total[sites] = before + PAGE * pages, count + 1
    return [Buffers(sites, size, count) for sites, (size, count) in total.items()]


def _distinct(
    first: NDArray[np.uint64], size: NDArray[np.integer], site: NDArray[np.integer]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the sites that use it, and its pages, for each piece of one process's memory between unused pages."""
    offset = first % np.uint64(PAGE)
    begin = first // np.uint64(PAGE)
    end = begin + (offset + np.maximum(size, 1).astype(np.uint64) + np.uint64(PAGE - 1)) // np.uint64(PAGE)
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    begins = np.flatnonzero(np.concatenate(([True], begin[1:] >= reach[:-1])))
    pages = reach[np.append(begins[1:], len(reach)) - 1] - begin[begins]
    buffer = np.searchsorted(begins, np.arange(len(begin)), side="right") - 1
    users: dict[int, list[int]] = {}
    for number, user in np.unique(np.column_stack([buffer, site[order]]), axis=0).tolist():
        users.setdefault(number, []).append(user)
    for number, sites in users.items():
        yield tuple(sites), int(pages[number])
