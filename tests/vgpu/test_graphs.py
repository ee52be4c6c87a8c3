"""Graphs, built by calls and captured from streams, and what a capture refuses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Held, Pinned, checked, context, pattern

pytestmark = pytest.mark.virtual_gpu

NON_BLOCKING = 1
SIZE = 4096
RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
Status = driver.CUstreamCaptureStatus
Result = driver.CUresult


def captured(stream: Any) -> Any:
    graph = checked(driver.cuStreamEndCapture(stream))
    return checked(driver.cuGraphInstantiate(graph, 0))


def copy_node(graph: Any, behind: list[Any], destination: Any, source: Any, made: Any) -> Any:
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    copy.srcDevice, copy.dstDevice = source, destination
    copy.WidthInBytes, copy.Height, copy.Depth = SIZE, 1, 1
    return checked(driver.cuGraphAddMemcpyNode(graph, behind, len(behind), copy, made))


def test_a_captured_stream_does_nothing_until_its_graph_is_launched() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        device, arrived = checked(driver.cuMemAlloc(SIZE)), Pinned(SIZE)
        checked(driver.cuStreamBeginCapture(stream, RELAXED))
        checked(driver.cuMemsetD8Async(device, 7, SIZE, stream))
        checked(driver.cuMemcpyDtoHAsync(arrived.address, device, SIZE, stream))
        assert checked(driver.cuStreamIsCapturing(stream)) == Status.CU_STREAM_CAPTURE_STATUS_ACTIVE
        executable = captured(stream)
        assert checked(driver.cuStreamIsCapturing(stream)) == Status.CU_STREAM_CAPTURE_STATUS_NONE
        checked(driver.cuStreamSynchronize(stream))
        assert (arrived.bytes == 0).all()
        for value in (7, 0):
            checked(driver.cuGraphLaunch(executable, stream))
            checked(driver.cuStreamSynchronize(stream))
            assert (arrived.bytes == 7).all(), value
            arrived.bytes[:] = 0


def test_a_launch_comes_behind_the_streams_work_and_later_work_behind_it() -> None:
    with context() as made:
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        device, sent, arrived = checked(driver.cuMemAlloc(SIZE)), Pinned(SIZE), Pinned(SIZE)
        sent.bytes[:] = pattern(SIZE)
        graph = checked(driver.cuGraphCreate(0))
        up = copy_node(graph, [], device, sent.address, made)
        copy_node(graph, [up], arrived.address, device, made)
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        held = Held(stream)
        checked(driver.cuGraphLaunch(executable, stream))
        again = Pinned(SIZE)
        checked(driver.cuMemcpyDtoHAsync(again.address, device, SIZE, stream))
        assert (arrived.bytes == 0).all()
        held.release()
        checked(driver.cuStreamSynchronize(stream))
        assert (arrived.bytes == sent.bytes).all()
        assert (again.bytes == sent.bytes).all()


def test_nodes_copy_from_and_to_pageable_memory() -> None:
    with context() as made:
        device = checked(driver.cuMemAlloc(SIZE))
        sent, arrived = pattern(SIZE), np.zeros(SIZE, np.uint8)
        graph = checked(driver.cuGraphCreate(0))
        up = copy_node(graph, [], device, sent.ctypes.data, made)
        down = copy_node(graph, [up], arrived.ctypes.data, device, made)
        nodes, count = checked(driver.cuGraphGetNodes(graph, 2))
        assert (count, [int(node) for node in nodes]) == (2, [int(up), int(down)])
        told = checked(driver.cuGraphMemcpyNodeGetParams(down))
        assert (told.dstHost, told.WidthInBytes) == (arrived.ctypes.data, SIZE)
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphLaunch(executable, 0))
        checked(driver.cuCtxSynchronize())
        assert (arrived == sent).all()


def test_streams_join_a_capture_by_events() -> None:
    with context():
        first, second = (checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2))
        forked, joined = (checked(driver.cuEventCreate(0)) for _ in range(2))
        device, arrived = checked(driver.cuMemAlloc(SIZE)), Pinned(SIZE)
        checked(driver.cuStreamBeginCapture(first, RELAXED))
        checked(driver.cuMemsetD8Async(device, 5, SIZE, first))
        checked(driver.cuEventRecord(forked, first))
        checked(driver.cuStreamWaitEvent(second, forked, 0))
        checked(driver.cuMemcpyDtoHAsync(arrived.address, device, SIZE, second))
        assert driver.cuEventSynchronize(forked)[0] == Result.CUDA_ERROR_CAPTURED_EVENT
        checked(driver.cuEventRecord(joined, second))
        checked(driver.cuStreamWaitEvent(first, joined, 0))
        executable = captured(first)
        checked(driver.cuGraphLaunch(executable, first))
        checked(driver.cuStreamSynchronize(first))
        assert (arrived.bytes == 5).all()


def test_a_stream_that_is_not_joined_ends_the_capture_in_an_error() -> None:
    with context():
        first, second = (checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2))
        forked = checked(driver.cuEventCreate(0))
        device = checked(driver.cuMemAlloc(SIZE))
        checked(driver.cuStreamBeginCapture(first, RELAXED))
        checked(driver.cuEventRecord(forked, first))
        checked(driver.cuStreamWaitEvent(second, forked, 0))
        checked(driver.cuMemsetD8Async(device, 5, SIZE, second))
        assert driver.cuStreamEndCapture(first)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        assert checked(driver.cuStreamIsCapturing(second)) == Status.CU_STREAM_CAPTURE_STATUS_NONE


def test_what_cannot_be_captured_is_refused() -> None:
    with context():
        stream, blocking = (checked(driver.cuStreamCreate(flags)) for flags in (NON_BLOCKING, 0))
        device = checked(driver.cuMemAlloc(SIZE))
        assert driver.cuStreamBeginCapture(0, RELAXED)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        assert driver.cuStreamEndCapture(stream)[0] == Result.CUDA_ERROR_ILLEGAL_STATE
        checked(driver.cuStreamBeginCapture(stream, RELAXED))
        assert driver.cuStreamSynchronize(stream)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        assert driver.cuMemsetD8Async(device, 1, SIZE, stream)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        assert driver.cuStreamEndCapture(stream)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        checked(driver.cuStreamBeginCapture(blocking, RELAXED))
        assert driver.cuMemsetD8(device, 1, SIZE)[0] == Result.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        assert driver.cuCtxSynchronize()[0] == Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        checked(driver.cuStreamEndCapture(blocking))
        checked(driver.cuMemsetD8(device, 1, SIZE))


def test_an_executable_graph_can_be_given_another_destination() -> None:
    with context() as made:
        device = checked(driver.cuMemAlloc(SIZE))
        checked(driver.cuMemsetD8(device, 3, SIZE))
        first, second = Pinned(SIZE), Pinned(SIZE)
        graph, other = (checked(driver.cuGraphCreate(0)) for _ in range(2))
        copy_node(graph, [], first.address, device, made)
        copy_node(other, [], second.address, device, made)
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphExecUpdate(executable, other))
        checked(driver.cuGraphLaunch(executable, 0))
        checked(driver.cuCtxSynchronize())
        assert (first.bytes == 0).all()
        assert (second.bytes == 3).all()


def test_one_call_makes_many_copies() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        device, arrived = checked(driver.cuMemAlloc(2 * SIZE)), [Pinned(SIZE), Pinned(SIZE)]
        sent = pattern(2 * SIZE)
        checked(driver.cuMemcpyHtoD(device, sent.ctypes.data, 2 * SIZE))
        checked(driver.cuCtxSynchronize())
        attributes = driver.CUmemcpyAttributes()
        attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
        copies = (
            [driver.CUdeviceptr(target.address) for target in arrived],
            [driver.CUdeviceptr(int(device) + offset) for offset in (0, SIZE)],
            [SIZE, SIZE],
            2,
            [attributes],
            [0],
            1,
        )
        checked(driver.cuMemcpyBatchAsync(*copies, stream))
        checked(driver.cuStreamSynchronize(stream))
        assert (np.concatenate([target.bytes for target in arrived]) == sent).all()
        assert driver.cuMemcpyBatchAsync(*copies, 0)[0] == Result.CUDA_ERROR_INVALID_VALUE


def test_host_functions_are_nodes_too() -> None:
    with context():
        called: list[int] = []
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: called.append(1))
        graph = checked(driver.cuGraphCreate(0))
        parameters = driver.CUDA_HOST_NODE_PARAMS()
        parameters.fn = ctypes.cast(function, ctypes.c_void_p).value
        checked(driver.cuGraphAddHostNode(graph, None, 0, parameters))
        executable = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphLaunch(executable, 0))
        checked(driver.cuCtxSynchronize())
        assert called == [1]
