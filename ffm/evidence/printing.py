"""What kernels print, as stage 3 saw the driver write it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import calls_where, done_calls
from ffm.evidence.program_order import access_rows
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.necessity.printing import Prints, waits_that_show
from ffm.model.necessity.program import Handovers, Operations
from ffm.results.columnar.columns import Columns

_WRITING = (Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.MODULE, Kind.CONTEXT)
"""Kinds of calls in which the driver writes what kernels have printed, unless they are asynchronous."""


def showing_waits(
    columns: Columns, operations: Operations, recording: Recording, handovers: Handovers
) -> NDArray[np.bool_]:
    """Return which operations of a process make the text appear that its kernels print."""
    printed = recording.accesses[recording.accesses["kind"] == constant("FFM_ACCESS_PRINTED")]
    if not len(printed):
        return np.zeros(len(operations.start), np.bool_)
    writing = calls_where(columns["function"], lambda each: each.kind in _WRITING and not each.asynchronous)
    return waits_that_show(
        operations,
        done_calls(columns, lambda function: function.kind is Kind.LAUNCH),
        writing & (columns["result"] == 0),
        Prints(
            operation=access_rows(columns, printed),
            since=printed["address"].astype(np.int64),
            until=np.minimum(printed["time"], np.iinfo(np.int64).max).astype(np.int64),
        ),
        handovers,
    )
