"""What pinning the memory of transfers costs."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.transfers.pinning import memory_to_pin
from ffm.instrument.recording.layout import constant
from ffm.model.timeline import Problem
from ffm.results.columnar.columns import Columns
from ffm.stages.analysis.timelines import traced_timeline

CALL_NS = 50_000
LEAST_BYTE_S = 1e-10


def uploads(*sources: int) -> Columns:
    """One upload of a page from each address, from one call site."""
    count = len(sources)
    names = ("duration", "wait", "waits", "bytes", "destination", "stream", "handle", "result", "process", "thread")
    columns: Columns = {name: np.zeros(count, np.int64) for name in (*names, "stack")}
    columns["start"] = 100_000 * np.arange(count)
    columns["source"] = np.array(sources, np.uint64)
    columns["bytes"] = np.full(count, 4096)
    columns["kind"] = np.zeros(count, np.uint8)
    columns["function"] = np.full(count, load_catalogue()["cuMemcpyHtoD_v2"].index)
    columns["flags"] = np.full(count, constant("FFM_OPERATION_HOST_SOURCE"))
    return columns


def cost_s(call_ns: int, *sources: int) -> float:
    columns = uploads(*sources)
    timeline = traced_timeline(columns)
    timeline.problem[:] = Problem.UNNECESSARY_SYNCHRONIZATION
    (found,) = memory_to_pin(columns, timeline, LEAST_BYTE_S, call_ns)
    return found.cost_s


@pytest.mark.parametrize("repeated", [1, 5])
def test_each_buffer_costs_a_call_however_often_it_is_sent(repeated: int) -> None:
    buffers = [0x10000, 0x90000] * repeated
    assert cost_s(CALL_NS, *buffers) - cost_s(0, *buffers) == pytest.approx(2 * CALL_NS / 1e9)
