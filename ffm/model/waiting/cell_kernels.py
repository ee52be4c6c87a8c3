"""The passes that number the CPU work between calls, and add up what each cell of a run takes
(`ffm.results.waiting.regions`), in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Columns are those of `Timeline` and `Graph`. A pair of sites is
`first * (sites + 1) + second`, where the second is `sites` if the thread has no further call.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ffm.model.compiled import index, inner
from ffm.model.numbers import TRANSFER

Columns = NDArray[Any]


@inner
def pair_at(thread: Columns, site: Columns, sites: int, row: int) -> int:
    """Return the pair of a row's site and that of its thread's next row."""
    follows = row + 1 < len(site) and thread[row + 1] == thread[row]
    return index(site[row] * (sites + 1) + (site[row + 1] if follows else sites))


def first_of_pairs(thread: Columns, site: Columns, sites: int, first: Columns) -> None:
    """Fill in the first row of each pair; `first`, shape (sites * (sites + 1),), contains -1."""
    for row in range(len(site)):
        pair = pair_at(thread, site, sites, row)
        if first[pair] < 0:
            first[pair] = row


def look_up_pairs(thread: Columns, site: Columns, sites: int, of_pair: Columns, of_row: Columns) -> None:
    """Fill in, for each row, what its pair has in `of_pair`."""
    for row in range(len(site)):
        of_row[row] = of_pair[pair_at(thread, site, sites, row)]


def mark_sites(
    site: Columns, gpu_begin: Columns, gpu_end: Columns, kind: Columns, calls: Columns, works: Columns, copies: Columns
) -> None:
    """Mark the sites that have rows, rows with GPU work, and transfers."""
    for row in range(len(site)):
        one = index(site[row])
        calls[one] = True
        if gpu_end[row] > gpu_begin[row]:
            works[one] = True
        if kind[row] == TRANSFER:
            copies[one] = True


def look_up_sites(
    site: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    call_at: Columns,
    work_at: Columns,
    of_call: Columns,
    of_gpu: Columns,
) -> None:
    """Fill in, for each row, what its site has in `call_at` and, if it has GPU work, in `work_at`; otherwise -1."""
    for row in range(len(site)):
        one = index(site[row])
        of_call[row] = call_at[one]
        of_gpu[row] = work_at[one] if gpu_end[row] > gpu_begin[row] else -1


@inner
def add(owner: int, lasting: int, total: Columns, counts: Columns) -> None:
    """Add to what a cell takes, if there is one."""
    if owner >= 0 and lasting > 0:
        total[index(owner)] += lasting
        counts[index(owner)] += 1


def add_up(
    gap: Columns,
    duration: Columns,
    waited: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    after: Columns,
    of_call: Columns,
    of_gpu: Columns,
    total: Columns,
    counts: Columns,
) -> None:
    """Add the nanoseconds of rows to their cells' totals: of the work after them, of their calls without waiting for
    the GPU, and of their GPU work; and count them.
    """
    for row in range(len(gap)):
        add(after[row], gap[row], total, counts)
        add(of_call[row], duration[row] - waited[row], total, counts)
        add(of_gpu[row], gpu_end[row] - gpu_begin[row], total, counts)
