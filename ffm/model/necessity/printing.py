"""Which waits make the text appear that kernels print (`printf` in device code).

The driver keeps the text, and writes it to the program's output in later calls: waits that the program asks for,
synchronous copies, and a few others (CUDA C++ Programming Guide, "Formatted output"). So the text of a kernel appears
at the latest in the first of these that follows it, and without that one later, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ffm.model.necessity import state
from ffm.model.necessity.program import NO_CLOCKS, UNKNOWN_THREAD, Handovers, Operations, Role, Scope, Uses
from ffm.model.necessity.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Prints:
    """When the driver wrote what kernels print. Columns of equal length; times in nanoseconds."""

    operation: NDArray[np.int64]
    """The operation that ended when it was seen; -1 if it is not among them."""
    since: NDArray[np.int64]
    until: NDArray[np.int64]
    """It wrote between these times."""


def waits_that_show(
    operations: Operations,
    launches: NDArray[np.int64],
    writes: NDArray[np.bool_],
    prints: Prints,
    handovers: Handovers,
) -> NDArray[np.bool_]:
    """Return which operations let out what kernels print.

    `launches` are the rows that start kernels; `writes`, of length n, says in which operations the driver writes what
    kernels before have printed. Which of the kernels did print is not known: of those whose text can have been waiting,
    all may have. Each relies on the first wait of each thread that comes after it.
    """
    shows = np.zeros(len(operations.start), np.bool_)
    if not len(prints.since):
        return shows
    seen = prints.operation[prints.operation >= 0]
    shows[seen] = operations.judged[seen]
    waiting = replace(operations, scope=np.where(writes, operations.scope, Scope.NONE).astype(np.uint8))
    any_time = Uses(
        operation=launches,
        time=operations.start[launches],
        role=np.full(len(launches), Role.HOST_FUNCTION, np.uint8),
        thread=np.full(len(launches), UNKNOWN_THREAD),
    )
    sweep = Sweep(waiting, any_time, NO_CLOCKS, handovers)
    needs, _ = sweep.run(np.zeros(len(operations.start), np.bool_), state.OF_OTHERS)
    kernel, wait = sweep.always_operation(needs[:, state.USE]), needs[:, state.RELIED_ON]
    out = np.full(len(operations.start), np.iinfo(np.int64).max)
    np.minimum.at(out, kernel, operations.end[wait])
    may = np.zeros(len(operations.start), np.bool_)
    may[launches] = _overlap(operations.start[launches], out[launches], prints)
    shows[wait[may[kernel]]] = True
    return shows


def _overlap(start: NDArray[np.int64], end: NDArray[np.int64], prints: Prints) -> NDArray[np.bool_]:
    """Return for each span of time whether the driver may have written in it. O((n + m) log m)."""
    order = np.argsort(prints.until)
    until = prints.until[order]
    earliest = np.minimum.accumulate(prints.since[order][::-1])[::-1]  # of this one and all that end later
    place = np.searchsorted(until, start, side="right")
    return np.append(earliest, np.iinfo(np.int64).max)[place] < end
