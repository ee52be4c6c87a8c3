"""Which streams' work has no memory in common, so that its order does not matter.

Where it is not known what memory work uses (`uses.py`), the answer is that there may be memory in common.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Kind, Memory
from ffm.evidence.calls import calls_where
from ffm.evidence.memory.contexts import context_number_reused, contexts_apart
from ffm.evidence.memory.kernels import GivenMemory
from ffm.evidence.memory.uses import Uses, uses_of_work
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import numbered
from ffm.model.necessity.program import Operations, Side, Streams
from ffm.results.columnar.columns import Columns

_FOLLOWED = (Memory.DEVICE, Memory.ASYNCHRONOUS, Memory.PINNED, Memory.REGISTERED, Memory.MANAGED)
"""What the program allocates and kernels find only by an address. Memory that is mapped can have several, and arrays
none.
"""


def streams_with_memory(
    columns: Columns,
    operations: Operations,
    contexts: NDArray[np.void],
    joined: NDArray[np.void],
    given: GivenMemory,
    unread: NDArray[np.bool_],
) -> Streams:
    """Return the streams of a process with what their work uses, and which of them have no memory in common.

    Args:
        columns: the operations of one process, in order of time.
        operations: what they do.
        contexts: `ffm_context` rows: the device of each context.
        joined: `ffm_joined` rows: which device memory leads to which.
        given: which device memory kernels are given.
        unread: which operations are downloads that the CPU is known not to have touched.
    """
    context = operations.streams.context
    apart = contexts_apart(columns, operations, contexts)[np.ix_(context, context)]
    if len(context) < 2 or _reached_otherwise(columns, operations):
        return replace(operations.streams, apart=apart)
    uses = uses_of_work(columns, operations, joined, given, unread).shared(operations.stream)
    apart |= ~_together(uses, operations)
    return replace(
        operations.streams, apart=apart, used=None if apart.all() else uses.by_operation(len(operations.start))
    )


def _together(uses: Uses, operations: Operations) -> NDArray[np.bool_]:
    """Return, of shape (streams, streams), whether some memory is used by work of both, and written by one of them."""
    streams = len(operations.streams.context)
    together = np.zeros((streams, streams), np.bool_)
    anything = np.unique(operations.stream[uses.anything])
    together[anything] = True
    together[:, anything] = True
    together[np.diag_indices(streams)] = True
    stream = operations.stream[uses.operation]
    _, alike = numbered(uses.memory, stream, uses.writes, uses.side)
    _, first = np.unique(uses.memory[alike], return_index=True)
    code = (stream[alike] * 2 + uses.writes[alike]) * len(Side) + uses.side[alike]
    seen: set[bytes] = set()
    ends = np.append(first, len(alike))[1:]
    for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
        used = code[begin:end].tobytes()  # most memory is used as some other memory is
        if used in seen:
            continue
        seen.add(used)
        rows = alike[begin:end]
        marking, looking = rows[uses.side[rows] != Side.LOOKS], rows[uses.side[rows] != Side.MARKS]
        for one, other in ((marking, looking), (looking, marking)):
            writing, using = stream[one[uses.writes[one]]], stream[other]
            together[np.ix_(writing, using)] = True
            together[np.ix_(using, writing)] = True
    return together


def _reached_otherwise(columns: Columns, operations: Operations) -> bool:
    """Return whether work may use memory in ways that are not followed: by descriptions, from other processes, at other
    addresses, or unseen.
    """
    done, functions = columns["result"] == 0, columns["function"]
    private = functions == constant("FFM_FUNCTION_PRIVATE")
    otherwise = done & calls_where(functions, _reaches_otherwise)
    return bool(otherwise.any() or private.any()) or context_number_reused(columns, operations)


def _reaches_otherwise(function: DriverFunction) -> bool:
    if function.kind is Kind.ALLOCATION:
        return function.memory not in _FOLLOWED
    return function.kind in (Kind.SHARING, Kind.VIEW)
