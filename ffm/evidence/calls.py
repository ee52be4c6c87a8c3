"""Which operations call which driver functions, selected by what the catalogue says about these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import looked_up, parts
from ffm.results.columnar.columns import Columns


def functions_where(chosen: Callable[[DriverFunction], bool]) -> NDArray[np.bool_]:
    """Return a table over recorded function indices that says whether a function of the catalogue is chosen."""
    table = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, np.bool_)
    for function in load_catalogue().functions:
        table[function.index] = chosen(function)
    return table


def calls_where(functions: NDArray[np.integer], chosen: Callable[[DriverFunction], bool]) -> NDArray[np.bool_]:
    """Return which operations call chosen functions; `functions` has the recorded index of each."""
    return looked_up(functions_where(chosen), functions)


def done_calls(columns: Columns, chosen: Callable[[DriverFunction], bool]) -> NDArray[np.int64]:
    """Return the rows of the operations that call chosen functions and succeeded."""
    rows = np.flatnonzero(calls_where(columns["function"], chosen))
    done: NDArray[np.int64] = rows[columns["result"][rows] == 0]
    return done


def only_enqueue(columns: Columns) -> NDArray[np.bool_]:
    """Return which operations never wait for results, but only for what they need themselves: launches, and copies and
    sets that are asynchronous and touch no host memory. The driver has kernels for these.
    """
    launches = functions_where(lambda one: one.kind in (Kind.LAUNCH, Kind.HOST_FUNCTION))
    by_kernels = functions_where(lambda one: one.kind in _BY_KERNELS and one.asynchronous)
    on_host = constant("FFM_OPERATION_HOST_SOURCE") | constant("FFM_OPERATION_HOST_DESTINATION")
    enqueues = np.empty(len(columns["function"]), np.bool_)
    for part in parts(len(enqueues)):
        function, flags = columns["function"][part], columns["flags"][part]
        enqueues[part] = launches.take(function) | (by_kernels.take(function) & ((flags & on_host) == 0))
    return enqueues


_BY_KERNELS = (Kind.TRANSFER, Kind.SET)


def waiting(columns: Columns) -> NDArray[np.bool_]:
    """Return which operations waited for the GPU's work, or may have."""
    waits: NDArray[np.bool_] = columns["waits"] > 0
    return waits & ~only_enqueue(columns) if waits.any() else waits


def functions_called(functions: NDArray[np.integer]) -> list[int]:
    """Return the distinct recorded indices among those of some operations, ascending."""
    called = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, np.bool_)
    for part in parts(len(functions)):
        called[functions[part]] = True
    found: list[int] = np.flatnonzero(called).tolist()
    return found
