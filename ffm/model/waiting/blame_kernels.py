"""The pass that shares waiting among the GPU work that caused it (`ffm.model.waiting.blame`), in the subset of Python
that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Columns are those of `Timeline` and `Graph`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[Any]


def blame_work(
    thread: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    gpu_after: Columns,
    cause: Columns,
    waited: Columns,
    blame: Columns,
) -> None:
    """Add what each row `waited` to the `blame`, shape (n,), of the work that this was for, by how long each piece ran.

    That is the work that ended the wait and what this came after, as far back as the thread has not waited for it.
    """
    on = -1
    synchronized = np.int64(0)
    for row in range(len(thread)):
        if thread[row] != on:
            on = thread[row]
            synchronized = np.int64(-1)
        if cause[row] < 0:
            continue
        lasting = np.int64(0)
        work = cause[row]
        while work >= 0 and gpu_end[work] > synchronized:
            lasting += gpu_end[work] - max(gpu_begin[work], synchronized)
            work = gpu_after[work]
        given = np.int64(0)
        before = np.int64(0)
        work = cause[row]
        while work >= 0 and gpu_end[work] > synchronized:
            before += gpu_end[work] - max(gpu_begin[work], synchronized)
            share = np.int64(waited[row] * (before / lasting))  # of all up to this one: what is rounded is not lost
            blame[work] += share - given
            given = share
            work = gpu_after[work]
        blame[cause[row]] += waited[row] - given
        synchronized = max(synchronized, gpu_end[cause[row]])


def bound_work(
    thread: Columns,
    gpu_begin: Columns,
    gpu_end: Columns,
    gpu_after: Columns,
    cause: Columns,
    waited: Columns,
    region: Columns,
    lasting: Columns,
    bound: Columns,
) -> None:
    """Add to the `bound` of each region, for each wait, how long its GPU work ran that the wait was for, but no more
    than the wait lasted. `region` contains that of each row's GPU work, `lasting` a zero for each region.
    """
    on = -1
    synchronized = np.int64(0)
    for row in range(len(thread)):
        if thread[row] != on:
            on = thread[row]
            synchronized = np.int64(-1)
        if cause[row] < 0:
            continue
        work = cause[row]
        while work >= 0 and gpu_end[work] > synchronized:
            lasting[region[work]] += gpu_end[work] - max(gpu_begin[work], synchronized)
            work = gpu_after[work]
        work = cause[row]
        while work >= 0 and gpu_end[work] > synchronized:
            bound[region[work]] += min(lasting[region[work]], waited[row])
            lasting[region[work]] = 0
            work = gpu_after[work]
        synchronized = max(synchronized, gpu_end[cause[row]])
