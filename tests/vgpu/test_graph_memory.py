"""Memory that nodes of graphs allocate and free, against what CUDA's documentation says of it."""

from __future__ import annotations

from typing import Any

import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Pinned, checked, context

pytestmark = pytest.mark.virtual_gpu

NON_BLOCKING = 1
SIZE = 1 << 20
RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
AUTO_FREE = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
Attribute = driver.CUgraphMem_attribute
Result = driver.CUresult
Type = driver.CUgraphNodeType


def allocation(graph: Any, behind: list[Any]) -> tuple[Any, int]:
    wanted = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    wanted.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.bytesize = SIZE
    node = checked(driver.cuGraphAddMemAllocNode(graph, behind, len(behind), wanted))
    return node, int(wanted.dptr)


def footprint(attribute: Any = Attribute.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) -> int:
    return int(checked(driver.cuDeviceGetGraphMemAttribute(0, attribute)))


def test_memory_is_the_devices_from_the_first_launch_until_it_is_trimmed() -> None:
    with context():
        graph = checked(driver.cuGraphCreate(0))
        node, address = allocation(graph, [])
        freed = checked(driver.cuGraphAddMemFreeNode(graph, [node], 1, address))
        assert checked(driver.cuGraphNodeGetType(node)) == Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC
        assert checked(driver.cuGraphNodeGetType(freed)) == Type.CU_GRAPH_NODE_TYPE_MEM_FREE
        assert int(checked(driver.cuGraphMemFreeNodeGetParams(freed))) == address
        assert int(checked(driver.cuGraphMemAllocNodeGetParams(node)).dptr) == address
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        assert footprint() == 0
        for _ in range(2):
            checked(driver.cuGraphLaunch(executable, 0))
            assert footprint() == SIZE
        checked(driver.cuCtxSynchronize())
        checked(driver.cuGraphExecDestroy(executable))
        assert footprint() == 0
        assert footprint(Attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == SIZE
        checked(driver.cuDeviceGraphMemTrim(0))
        assert footprint(Attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0
        high = Attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH
        assert footprint(high) == SIZE
        checked(driver.cuDeviceSetGraphMemAttribute(0, high, driver.cuuint64_t(0)))
        assert footprint(high) == 0


def test_memory_that_the_graph_does_not_free_is_used_and_freed_outside() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        graph = checked(driver.cuGraphCreate(0))
        _, address = allocation(graph, [])
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        assert driver.cuMemFree(address)[0] == Result.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuGraphLaunch(executable, stream))
        arrived = Pinned(SIZE)
        checked(driver.cuMemsetD8Async(address, 7, SIZE, stream))
        checked(driver.cuMemcpyDtoHAsync(arrived.address, address, SIZE, stream))
        assert driver.cuGraphLaunch(executable, stream)[0] == Result.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuMemFreeAsync(address, stream))
        checked(driver.cuGraphLaunch(executable, stream))
        assert footprint() == SIZE
        checked(driver.cuStreamSynchronize(stream))
        assert (arrived.bytes == 7).all()
        checked(driver.cuGraphExecDestroy(executable))
        checked(driver.cuGraphDestroy(graph))
        checked(driver.cuMemsetD8(address, 1, SIZE))
        checked(driver.cuMemFree(address))
        assert driver.cuMemFree(address)[0] == Result.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuDeviceGraphMemTrim(0))
        assert footprint() == 0


def test_a_launch_may_free_what_the_last_one_left() -> None:
    with context():
        graph = checked(driver.cuGraphCreate(0))
        allocation(graph, [])
        executable = checked(driver.cuGraphInstantiate(graph, int(AUTO_FREE)))
        for _ in range(2):
            checked(driver.cuGraphLaunch(executable, 0))
            assert footprint() == SIZE


def test_another_graph_frees_memory_once() -> None:
    with context():
        owner, other = (checked(driver.cuGraphCreate(0)) for _ in range(2))
        node, address = allocation(owner, [])
        checked(driver.cuGraphAddMemFreeNode(other, [], 0, address))
        assert driver.cuGraphAddMemFreeNode(other, [], 0, address)[0] == Result.CUDA_ERROR_INVALID_VALUE
        assert driver.cuGraphAddMemFreeNode(owner, [node], 1, address)[0] == Result.CUDA_ERROR_INVALID_VALUE
        first, second = (checked(driver.cuGraphInstantiate(graph, 0)) for graph in (owner, other))
        assert driver.cuGraphLaunch(second, 0)[0] == Result.CUDA_ERROR_INVALID_VALUE
        for _ in range(2):
            checked(driver.cuGraphLaunch(first, 0))
            checked(driver.cuGraphLaunch(second, 0))


def test_what_graphs_with_memory_cannot_do() -> None:
    with context():
        graph, parent = (checked(driver.cuGraphCreate(0)) for _ in range(2))
        node, address = allocation(graph, [])
        freed = checked(driver.cuGraphAddMemFreeNode(graph, [node], 1, address))
        assert driver.cuGraphDestroyNode(freed)[0] == Result.CUDA_ERROR_INVALID_VALUE
        edge = [driver.CUgraphEdgeData()]
        assert driver.cuGraphRemoveDependencies(graph, [node], [freed], edge, 1)[0] == Result.CUDA_ERROR_INVALID_VALUE
        assert driver.cuGraphClone(graph)[0] == Result.CUDA_ERROR_NOT_SUPPORTED
        assert driver.cuGraphAddChildGraphNode(parent, [], 0, graph)[0] == Result.CUDA_ERROR_NOT_SUPPORTED
        checked(driver.cuGraphInstantiate(graph, 0))
        assert driver.cuGraphInstantiate(graph, 0)[0] == Result.CUDA_ERROR_NOT_SUPPORTED


def test_allocations_of_a_captured_stream_become_nodes() -> None:
    with context():
        stream, other = (checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2))
        arrived, forked, joined = Pinned(SIZE), *(checked(driver.cuEventCreate(0)) for _ in range(2))
        checked(driver.cuStreamBeginCapture(stream, RELAXED))
        address = checked(driver.cuMemAllocAsync(SIZE, stream))
        checked(driver.cuMemsetD8Async(address, 9, SIZE, stream))
        checked(driver.cuEventRecord(forked, stream))
        checked(driver.cuStreamWaitEvent(other, forked, 0))
        checked(driver.cuMemcpyDtoHAsync(arrived.address, address, SIZE, other))
        checked(driver.cuEventRecord(joined, other))
        checked(driver.cuStreamDestroy(other))
        checked(driver.cuStreamWaitEvent(stream, joined, 0))
        checked(driver.cuMemFreeAsync(address, stream))
        graph = checked(driver.cuStreamEndCapture(stream))
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        assert (arrived.bytes == 0).all()
        checked(driver.cuGraphLaunch(executable, stream))
        checked(driver.cuStreamSynchronize(stream))
        assert (arrived.bytes == 9).all()
        assert driver.cuMemFree(address)[0] == Result.CUDA_ERROR_INVALID_VALUE
