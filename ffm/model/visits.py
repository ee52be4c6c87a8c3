"""In which order passes visit the rows of a run: by process, then by when each acts on the GPU.

In runs with one thread per process, that is the order of the rows themselves. An order of rows, and its inverse, the
places of rows in it, are columns; an empty column stands for the order of the rows, and takes no memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inner

Columns = NDArray[Any]


@inner
def row_at(order: Columns, place: int) -> int:
    """Return the row at a place of an order."""
    return index(order[place] if len(order) > 0 else place)


@inner
def is_lone(trace: Any) -> bool:
    """Return whether a run has one thread, so that no column needs to tell which; `trace` has the columns of `Timeline`
    and `DeviceWork`.
    """
    return len(trace.thread) == 0


@inner
def thread_of(trace: Any, row: int) -> int:
    """Return the thread of a row."""
    return 0 if is_lone(trace) else index(trace.thread[row])


@inner
def process_of(trace: Any, row: int) -> int:
    """Return the process of a row."""
    return index(trace.process_of_thread[thread_of(trace, row)])


@inner
def is_legacy(trace: Any, row: int) -> bool:
    """Return whether a row's stream is its process's legacy default stream."""
    legacy = trace.legacy[process_of(trace, row)]
    return bool(legacy >= 0 and legacy == trace.stream[row])


def at(column: NDArray[np.integer], numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the rows at some places of an order, or the places of some rows."""
    return column[numbers] if len(column) else numbers


def inverse(order: NDArray[np.int64]) -> NDArray[np.integer]:
    """Return the place of each row in an order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place
