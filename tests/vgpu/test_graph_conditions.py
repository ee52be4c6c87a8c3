"""Conditional nodes of graphs, and edges that are added and removed, against what CUDA's documentation says of them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.ptx import HEAD, quick_gpu
from tests.vgpu.virtual_gpu import Pinned, checked

pytestmark = pytest.mark.virtual_gpu

Kind = driver.CUgraphConditionalNodeType
Result = driver.CUresult
Type = driver.CUgraphNodeType
ASSIGN_DEFAULT = 1
WORD = 4

KERNELS = (
    HEAD
    + """
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry count_down(.param .u64 left, .param .u64 handle) {
    .reg .b64 %w<3>; .reg .b32 %r<2>;
    ld.param.u64 %w1, [left];
    ld.param.u64 %w2, [handle];
    ld.global.u32 %r1, [%w1];
    sub.u32 %r1, %r1, 1;
    st.global.u32 [%w1], %r1;
    .param .b64 first; .param .b32 second;
    st.param.b64 [first], %w2;
    st.param.b32 [second], %r1;
    call cudaGraphSetConditional, (first, second);
    ret;
}
.visible .entry set_from(.param .u64 word, .param .u64 handle) {
    .reg .b64 %w<3>; .reg .b32 %r<2>;
    ld.param.u64 %w1, [word];
    ld.param.u64 %w2, [handle];
    ld.global.u32 %r1, [%w1];
    .param .b64 first; .param .b32 second;
    st.param.b64 [first], %w2;
    st.param.b32 [second], %r1;
    call cudaGraphSetConditional, (first, second);
    ret;
}
"""
)


class Graph:
    """A graph with one condition."""

    def __init__(self, at_launch: int | None = None) -> None:
        module = checked(driver.cuModuleLoadData(KERNELS.encode()))
        self._kernels = {
            name: checked(driver.cuModuleGetFunction(module, name)) for name in (b"count_down", b"set_from")
        }
        self.graph = checked(driver.cuGraphCreate(0))
        flags = 0 if at_launch is None else ASSIGN_DEFAULT
        self.handle = checked(driver.cuGraphConditionalHandleCreate(self.graph, None, at_launch or 0, flags))

    def kernel(self, graph: Any, name: bytes, word: int, behind: list[Any]) -> Any:
        launch = driver.CUDA_KERNEL_NODE_PARAMS()
        launch.func = self._kernels[name]
        for axis in "XYZ":
            setattr(launch, f"gridDim{axis}", 1)
            setattr(launch, f"blockDim{axis}", 1)
        launch.kernelParams = ((word, int(self.handle)), (ctypes.c_uint64, ctypes.c_uint64))
        return checked(driver.cuGraphAddKernelNode(graph, behind, len(behind), launch))

    def condition(self, kind: Any, size: int, behind: list[Any]) -> tuple[Any, Any, list[Any]]:
        wanted = driver.CUgraphNodeParams()
        wanted.type = Type.CU_GRAPH_NODE_TYPE_CONDITIONAL
        wanted.conditional.handle = self.handle
        wanted.conditional.type = kind
        wanted.conditional.size = size
        edges = [driver.CUgraphEdgeData() for _ in behind]
        result, node = driver.cuGraphAddNode(self.graph, behind, edges, len(behind), wanted)
        bodies = (
            [wanted.conditional.phGraph_out[place] for place in range(size)] if result == Result.CUDA_SUCCESS else []
        )
        return result, node, bodies


def set_node(graph: Any, word: int, value: int, made: Any) -> Any:
    wanted = driver.CUDA_MEMSET_NODE_PARAMS()
    wanted.dst, wanted.value, wanted.elementSize, wanted.width, wanted.height = word, value, WORD, 1, 1
    return checked(driver.cuGraphAddMemsetNode(graph, [], 0, wanted, made))


def launched(graph: Any, word: int) -> int:
    """What the word is after a launch of the executable graph."""
    arrived = Pinned(WORD)
    checked(driver.cuGraphLaunch(graph, 0))
    checked(driver.cuMemcpyDtoH(arrived.address, word, WORD))
    return int(arrived.bytes.view(np.uint32)[0])


def test_a_loop_runs_until_a_kernel_says_that_it_is_over() -> None:
    with quick_gpu():
        built, word = Graph(at_launch=1), int(checked(driver.cuMemAlloc(WORD)))
        result, node, (body,) = built.condition(Kind.CU_GRAPH_COND_TYPE_WHILE, 1, [])
        assert result == Result.CUDA_SUCCESS
        assert checked(driver.cuGraphNodeGetType(node)) == Type.CU_GRAPH_NODE_TYPE_CONDITIONAL
        built.kernel(body, b"count_down", word, [])
        executable = checked(driver.cuGraphInstantiate(built.graph, 0))
        for turns in (5, 1):
            checked(driver.cuMemsetD32(word, turns, 1))
            assert launched(executable, word) == 0


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        (Kind.CU_GRAPH_COND_TYPE_IF, 1, {0: 0, 1: 100, 2: 100}),
        (Kind.CU_GRAPH_COND_TYPE_IF, 2, {0: 101, 1: 100}),
        (Kind.CU_GRAPH_COND_TYPE_SWITCH, 3, {0: 100, 1: 101, 2: 102, 3: 0}),
    ],
)
def test_the_conditions_value_chooses_a_body(kind: Any, size: int, expected: dict[int, int]) -> None:
    with quick_gpu() as made:
        built, words = Graph(), int(checked(driver.cuMemAlloc(2 * WORD)))
        before = built.kernel(built.graph, b"set_from", words, [])
        result, _node, bodies = built.condition(kind, size, [before])
        assert result == Result.CUDA_SUCCESS
        for place, body in enumerate(bodies):
            set_node(body, words + WORD, 100 + place, made)
        executable = checked(driver.cuGraphInstantiate(built.graph, 0))
        for value, result in expected.items():
            checked(driver.cuMemsetD32(words, value, 1))
            checked(driver.cuMemsetD32(words + WORD, 0, 1))
            assert launched(executable, words + WORD) == result, value


def test_what_conditional_nodes_refuse() -> None:
    with quick_gpu():
        built = Graph()
        assert built.condition(Kind.CU_GRAPH_COND_TYPE_WHILE, 2, [])[0] == Result.CUDA_ERROR_INVALID_VALUE
        result, _node, (body,) = built.condition(Kind.CU_GRAPH_COND_TYPE_IF, 1, [])
        assert result == Result.CUDA_SUCCESS
        assert built.condition(Kind.CU_GRAPH_COND_TYPE_IF, 1, [])[0] == Result.CUDA_ERROR_INVALID_VALUE
        assert driver.cuGraphDestroy(body)[0] == Result.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuGraphAddEventRecordNode(body, [], 0, checked(driver.cuEventCreate(0))))
        assert driver.cuGraphInstantiate(built.graph, 0)[0] == Result.CUDA_ERROR_NOT_SUPPORTED


def test_a_stream_is_captured_into_a_graph() -> None:
    with quick_gpu():
        built, word = Graph(at_launch=1), int(checked(driver.cuMemAlloc(WORD)))
        stream = checked(driver.cuStreamCreate(1))
        _result, _node, (body,) = built.condition(Kind.CU_GRAPH_COND_TYPE_IF, 1, [])
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        checked(driver.cuStreamBeginCaptureToGraph(stream, body, [], [], 0, mode))
        checked(driver.cuMemsetD32Async(word, 3, 1, stream))
        checked(driver.cuStreamEndCapture(stream))
        checked(driver.cuMemsetD32(word, 1, 1))
        assert launched(checked(driver.cuGraphInstantiate(built.graph, 0)), word) == 3


def test_edges_order_nodes_that_were_added_in_another_order() -> None:
    with quick_gpu() as made:
        word = int(checked(driver.cuMemAlloc(WORD)))
        graph = checked(driver.cuGraphCreate(0))
        last, first = (set_node(graph, word, value, made) for value in (2, 1))
        edge = [driver.CUgraphEdgeData()]
        checked(driver.cuGraphAddDependencies(graph, [first], [last], edge, 1))
        assert driver.cuGraphAddDependencies(graph, [first], [last], edge, 1)[0] == Result.CUDA_ERROR_INVALID_VALUE
        assert launched(checked(driver.cuGraphInstantiate(graph, 0)), word) == 2
        nodes, _data, count = checked(driver.cuGraphNodeGetDependentNodes(first, 1))
        assert (count, [int(node) for node in nodes]) == (1, [int(last)])
        come, gone, _data, count = checked(driver.cuGraphGetEdges(graph, 1))
        assert (count, int(come[0]), int(gone[0])) == (1, int(first), int(last))
        checked(driver.cuGraphAddDependencies(graph, [last], [first], edge, 1))
        assert driver.cuGraphInstantiate(graph, 0)[0] == Result.CUDA_ERROR_INVALID_VALUE
        checked(driver.cuGraphRemoveDependencies(graph, [first], [last], edge, 1))
        assert launched(checked(driver.cuGraphInstantiate(graph, 0)), word) == 1
        checked(driver.cuGraphDestroyNode(first))
        assert launched(checked(driver.cuGraphInstantiate(graph, 0)), word) == 2


def test_a_node_is_changed_in_an_executable_graph_whose_nodes_have_another_order() -> None:
    with quick_gpu() as made:
        word = int(checked(driver.cuMemAlloc(WORD)))
        arrived = [Pinned(WORD) for _ in range(2)]
        graph = checked(driver.cuGraphCreate(0))
        copy = driver.CUDA_MEMCPY3D()
        copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        copy.srcDevice, copy.dstDevice = word, arrived[0].address
        copy.WidthInBytes, copy.Height, copy.Depth = WORD, 1, 1
        down = checked(driver.cuGraphAddMemcpyNode(graph, [], 0, copy, made))
        first = set_node(graph, word, 7, made)
        checked(driver.cuGraphAddDependencies(graph, [first], [down], [driver.CUgraphEdgeData()], 1))
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        copy.dstDevice = arrived[1].address
        checked(driver.cuGraphExecMemcpyNodeSetParams(executable, down, copy, made))
        launched(executable, word)
        assert [int(one.bytes[0]) for one in arrived] == [0, 7]
