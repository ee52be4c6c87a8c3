"""How much of a device recorded kernels fill, from their blocks and threads and from how large the device is."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.filled_devices import filled_devices
from ffm.instrument.recording.layout import constant
from ffm.model.device import Fills
from ffm.results.documents.measured import ContextDevice

MULTIPROCESSORS, THREADS = 100, 1536
DEVICE = ContextDevice(process=0, context=0, device=0, uuid="", multiprocessors=MULTIPROCESSORS, threads=THREADS)
KERNEL, GRAPH = "cuLaunchKernel", "cuGraphLaunch"


def filled(
    *launches: tuple[int, int, int], function: str = KERNEL, device: ContextDevice = DEVICE, context: int = 0
) -> list[Fills]:
    """Return how much kernels fill, each given as its stream, its blocks and the threads of a block."""
    sizes = [blocks << constant("FFM_LAUNCH_BLOCKS_SHIFT") | threads for _, blocks, threads in launches]
    columns = {
        "function": np.full(len(launches), load_catalogue()[function].index, np.int32),
        "process": np.zeros(len(launches), np.int32),
        "flags": np.full(len(launches), context << constant("FFM_OPERATION_CONTEXT_SHIFT"), np.int32),
        "after_wait": np.array(sizes, np.int32),
    }
    found = filled_devices(columns, np.array([stream for stream, _, _ in launches], np.int32), [device])
    return [Fills.UNKNOWN] * len(launches) if found is None else [Fills(one) for one in found.tolist()]


def test_kernels_of_all_streams_fit_if_they_have_no_more_blocks_than_there_are_multiprocessors() -> None:
    assert filled((0, 50, 32), (1, 50, 1024)) == [Fills.LITTLE, Fills.LITTLE]
    assert filled((0, 50, 32), (1, 51, 32)) == [Fills.LITTLE, Fills.UNKNOWN]
    assert filled((0, 50, 32), (1, 33, 32), (2, 34, 32)) == [Fills.UNKNOWN, Fills.LITTLE, Fills.UNKNOWN]


def test_a_kernel_fills_the_device_with_as_many_threads_as_run_there_at_once() -> None:
    assert filled((0, 6 * MULTIPROCESSORS, 256), (1, 6 * MULTIPROCESSORS - 1, 256)) == [Fills.ALL, Fills.UNKNOWN]
    most = constant("FFM_LAUNCH_MOST_BLOCKS")
    assert filled((0, most, 1024), (1, most, 1)) == [Fills.ALL, Fills.ALL]


def test_few_blocks_of_many_threads_run_beside_others() -> None:
    assert filled((0, MULTIPROCESSORS, 1024)) == [Fills.LITTLE]


@pytest.mark.parametrize(
    "device",
    [
        ContextDevice(process=0, context=0, device=0, uuid=""),
        ContextDevice(process=0, context=1, device=0, uuid="", multiprocessors=1, threads=1),
        ContextDevice(process=1, context=0, device=0, uuid="", multiprocessors=1, threads=1),
    ],
)
def test_nothing_is_known_of_a_device_that_the_driver_did_not_describe(device: ContextDevice) -> None:
    assert filled((0, 1, 1), (1, 1000, 1024), device=device) == [Fills.UNKNOWN] * 2


def test_nothing_is_known_of_a_context_beyond_those_described() -> None:
    assert filled((0, 1, 1), context=200) == [Fills.UNKNOWN]


def test_nothing_is_known_of_graphs_and_of_launches_without_a_size() -> None:
    assert filled((0, 1, 1), function=GRAPH) == [Fills.UNKNOWN]
    assert filled((0, 0, 0)) == [Fills.UNKNOWN]
