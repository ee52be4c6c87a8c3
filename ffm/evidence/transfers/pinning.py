"""Which pageable memory must be pinned before a program's transfers can do without their waits, and what that costs."""

from __future__ import annotations

import numpy as np

from ffm.evidence.calls import functions_called
from ffm.evidence.operations import function_name
from ffm.evidence.transfers.allocations import pageable_memory
from ffm.instrument.pinning import PINNING, pinning_s
from ffm.model.codes import has_any
from ffm.model.pinning import buffers_to_pin
from ffm.model.timeline import Problem, Timeline
from ffm.results.columnar.columns import Columns
from ffm.results.documents.analysis import PinnedMemory


def memory_to_pin(columns: Columns, timeline: Timeline, least_byte_s: float, call_ns: int = 0) -> list[PinnedMemory]:
    """Return the pageable memory of the transfers that would not wait if it were pinned, and what that costs: a call
    for each buffer, and so much for each byte.

    A repeated transfer needs no pinned memory, because it is left out.

    Args:
        columns: from `ffm.evidence.operations.operation_columns`.
        timeline: the same operations with their problems.
        least_byte_s: seconds per byte in which the machine makes and zeroes pages.
        call_ns: nanoseconds that each call takes to pin memory, whatever its size.
    """
    waits = Problem.UNNECESSARY_SYNCHRONIZATION | Problem.MISPLACED_SYNCHRONIZATION
    moved = has_any(timeline.problem, waits) & ~has_any(timeline.problem, Problem.UNNECESSARY_TRANSFER)
    rows, address = pageable_memory(columns, np.flatnonzero(moved))
    if not len(rows):
        return []
    part = {name: columns[name][rows] for name in ("process", "bytes", "stack")}
    found = buffers_to_pin(part["process"], address, part["bytes"], part["stack"])
    own = []
    for number in functions_called(columns["function"]):
        if (name := function_name(number)) in PINNING:
            calls = (columns["function"] == number) & (columns["result"] == 0)
            took = (columns["duration"][calls] - call_ns).clip(0).sum()
            own.append((name, int(columns["bytes"][calls].sum()), float(took) / 1e9))
    byte_s, call_s = pinning_s(own, least_byte_s), call_ns / 1e9
    return [
        PinnedMemory(sites=list(one.sites), bytes=one.bytes, cost_s=one.bytes * byte_s + one.count * call_s)
        for one in found
    ]
