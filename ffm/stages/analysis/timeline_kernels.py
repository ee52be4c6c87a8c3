"""The passes over a run's operations that make the model's table of them, in the subset of Python that Numba compiles.

As in `ffm.model.kernels`, nothing is compiled here. Rows come by process, thread and start.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Columns = NDArray[Any]


def number_threads(process: Columns, thread: Columns, number: Columns) -> None:
    """Fill in a number for each row's thread, counted over all processes; the first row has its number already."""
    for row in range(1, len(number)):
        other = process[row] != process[row - 1] or thread[row] != thread[row - 1]
        number[row] = number[row - 1] + other


def fill_in_gaps(thread: Columns, start: Columns, duration: Columns, gap: Columns) -> None:
    """Fill in the time from the end of each row to the next one of its thread; 0 for the last one."""
    for row in range(len(gap)):
        last = row + 1 == len(gap) or thread[row + 1] != thread[row]
        gap[row] = 0 if last else max(start[row + 1] - start[row] - duration[row], 0)
