"""How much of its device each recorded kernel fills: whether others can run beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Effect
from ffm.evidence.calls import calls_where
from ffm.evidence.handles import CONTEXT_SHIFT
from ffm.instrument.recording.layout import constant
from ffm.model.device import Fills
from ffm.model.grouping import parts
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import ContextDevice


def filled_devices(
    columns: Columns, stream: NDArray[np.int32], devices: list[ContextDevice]
) -> NDArray[np.uint8] | None:
    """Return `DeviceWork.fills`, shape (n,); `stream` is the number of the stream that each row uses, -1 for none.

    A block of a kernel fits on a multiprocessor that has nothing else to do. So kernels that have no more blocks
    together than there are multiprocessors can run at once, whatever else their blocks need.
    """
    if not any(one.multiprocessors for one in devices):
        return None
    kernels = calls_where(columns["function"], lambda function: function.effect is Effect.LAUNCH_KERNEL)
    kernels &= stream >= 0
    launching = _streams_that_launch(columns["process"], stream, kernels)
    contexts = 1 + max(one.context for one in devices)
    sizes = np.zeros((2, len(launching), contexts + 1), np.int64)  # the last context stands for unknown ones
    for one in devices:
        if one.process < len(launching):
            sizes[:, one.process, one.context] = one.multiprocessors, one.multiprocessors * one.threads
    shift = constant("FFM_LAUNCH_BLOCKS_SHIFT")
    found = np.zeros(len(stream), np.uint8)
    for part in parts(len(stream)):
        process = columns["process"][part]
        context = np.minimum(columns["flags"][part] >> CONTEXT_SHIFT, contexts)
        multiprocessors, room = sizes[:, process, context]
        size = columns["after_wait"][part].astype(np.int64)
        blocks, threads = size >> shift, size & ((1 << shift) - 1)
        known = kernels[part] & (size > 0) & (multiprocessors > 0)
        found[part][known & (blocks * launching[process] <= multiprocessors)] = Fills.LITTLE
        found[part][known & (room > 0) & (blocks * threads >= room)] = Fills.ALL
    return found if found.any() else None


def _streams_that_launch(
    process: NDArray[np.integer], stream: NDArray[np.int32], kernels: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return for each process how many of its streams have kernels."""
    owner = np.full(int(stream.max(initial=-1)) + 1, -1, np.int64)
    for part in parts(len(stream)):
        owner[stream[part][kernels[part]]] = process[part][kernels[part]]
    return np.bincount(owner[owner >= 0], minlength=int(process.max(initial=-1)) + 1)
