"""Asynchronous copies from or to pageable memory, which are not asynchronous: PyTorch's `non_blocking` among them."""

from __future__ import annotations

import numpy as np

from ffm.driver.catalogue import Kind
from ffm.evidence.calls import calls_where
from ffm.evidence.transfers.allocations import pageable_memory
from ffm.instrument.recording.layout import constant
from ffm.results.columnar.columns import Columns

STAGED_BYTES = 64 * 1024
"""Pageable uploads up to this size return once they are staged (CUDA Driver API, "API synchronization behavior")."""


def sites_of_staged_copies(columns: Columns) -> list[int]:
    """Return the stacks with such copies, in order.

    The driver stages what is pageable in pinned memory: the CPU copies the bytes, and a call may wait for its stream.
    """
    copies = calls_where(columns["function"], lambda one: one.kind is Kind.TRANSFER and one.asynchronous)
    rows = np.flatnonzero(copies)
    flags, result, bytes_ = (columns[name][rows] for name in ("flags", "result", "bytes"))
    upload = (flags & constant("FFM_OPERATION_HOST_SOURCE")) != 0
    rows, _ = pageable_memory(columns, rows[(result == 0) & (~upload | (bytes_ > STAGED_BYTES))])
    stacks: list[int] = np.unique(columns["stack"][rows]).tolist()
    return stacks
