"""Which kernels a run launched is known only if the driver named those of every launch."""

from __future__ import annotations

import numpy as np
import pytest

from ffm.driver.catalogue import load_catalogue
from ffm.evidence.named_work import all_launched
from ffm.results.documents.measured import LaunchedKernels

NAMED = [LaunchedKernels(stack=1, names=["one", "other"]), LaunchedKernels(stack=2, names=["one"])]
KERNEL, GRAPH, COPY = "cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoD_v2"


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ([(KERNEL, 1), (COPY, 0), (KERNEL, 2)], {"one", "other"}),
        ([(KERNEL, 1), (KERNEL, 2), (GRAPH, 3)], None),
        ([(KERNEL, 1), (KERNEL, 2), (KERNEL, 4)], None),
    ],
    ids=["all named", "a graph", "one without a name"],
)
def test_kernels_are_known_if_those_of_each_launch_are(calls: list[tuple[str, int]], known: set[str] | None) -> None:
    index = {function.name: function.index for function in load_catalogue().functions}
    columns = {
        "function": np.array([index[name] for name, _ in calls], np.int32),
        "stack": np.array([stack for _, stack in calls], np.int32),
    }
    assert all_launched(NAMED, columns) == known
