"""Copies from or to pageable memory, which the driver stages: not even asynchronous ones, such as PyTorch's
`non_blocking` copies, are asynchronous then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import calls_where
from ffm.evidence.transfers.allocations import pageable_memory
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import sums_by
from ffm.results.columnar.columns import Columns

STAGED_BYTES = 64 * 1024
"""Pageable uploads up to this size return once they are staged (CUDA Driver API, "API synchronization behavior")."""

STAGED_SHARE = 0.5
"""If more than this share of an upload call is spent without waiting, the CPU itself copies the bytes."""


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


def staged_uploads(columns: Columns, uploads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which uploads are from pageable memory and return once the CPU has copied the bytes.

    A few bytes are copied at once. Many go through the driver's buffers, part by part, and the call may wait for these;
    if most of the call is copying, it hardly does.
    """
    many = columns["bytes"][uploads] > STAGED_BYTES
    staged: NDArray[np.bool_] = many & (_mostly_working(columns)[columns["stack"][uploads]] if many.any() else False)
    few = uploads[~many & (columns["waits"][uploads] > 0)]
    pageable, _ = pageable_memory(columns, few)
    staged[np.searchsorted(uploads, pageable)] = True
    return staged


def _mostly_working(columns: Columns) -> NDArray[np.bool_]:
    """Return of which stacks the calls spend more than `STAGED_SHARE` of their time without waiting."""
    stack = columns["stack"]
    count = int(stack.max(initial=-1)) + 1
    duration, wait = sums_by(stack, count, columns["duration"]), sums_by(stack, count, columns["wait"])
    working: NDArray[np.bool_] = duration - wait > STAGED_SHARE * duration
    return working
