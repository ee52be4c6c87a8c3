"""Order on and between streams, events, host functions and waits for values."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from tests.vgpu.virtual_gpu import Held, Pinned, checked, context, load

pytestmark = pytest.mark.virtual_gpu

NON_BLOCKING = 1
SHORT = 4096
NOT_READY = driver.CUresult.CUDA_ERROR_NOT_READY


def word_writer(target: Pinned) -> Any:
    """Return a call that makes the GPU write the next number into `target` on a stream."""

    def write(stream: Any, value: int) -> None:
        checked(driver.cuStreamWriteValue32(stream, target.address, value, 0))

    return write


def engine_threads() -> int:
    """Return how many threads of this process do the GPU's work."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("vgpu-engine") for name in names)


def value_of(target: Pinned) -> int:
    return int(target.bytes.view(np.uint32)[0])


def test_work_of_one_stream_is_done_in_order() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        device = checked(driver.cuMemAlloc(256))
        arrived = [Pinned(256) for _ in range(50)]
        for number, target in enumerate(arrived):
            checked(driver.cuMemsetD8Async(device, number, 256, stream))
            checked(driver.cuMemcpyDtoHAsync(target.address, device, 256, stream))
        checked(driver.cuStreamSynchronize(stream))
        for number, target in enumerate(arrived):
            assert (target.bytes == number).all()


@pytest.mark.parametrize(("flags", "behind"), [(0, True), (NON_BLOCKING, False)], ids=["blocking", "non-blocking"])
def test_legacy_default_stream_comes_behind_blocking_streams_only(flags: int, behind: bool) -> None:
    with context():
        stream = checked(driver.cuStreamCreate(flags))
        held = Held(stream)
        checked(driver.cuMemsetD8(checked(driver.cuMemAlloc(16)), 1, 16))
        if behind:
            assert driver.cuStreamQuery(0)[0] == NOT_READY
        else:
            checked(driver.cuStreamSynchronize(0))
        held.release()
        checked(driver.cuCtxSynchronize())


@pytest.mark.parametrize(("flags", "behind"), [(0, True), (NON_BLOCKING, False)], ids=["blocking", "non-blocking"])
def test_blocking_streams_come_behind_the_legacy_default_stream(flags: int, behind: bool) -> None:
    with context():
        held = Held(0)
        stream = checked(driver.cuStreamCreate(flags))
        event = checked(driver.cuEventCreate(0))
        checked(driver.cuEventRecord(event, stream))
        if behind:
            assert driver.cuEventQuery(event)[0] == NOT_READY
        else:
            checked(driver.cuEventSynchronize(event))
        held.release()
        checked(driver.cuCtxSynchronize())
        checked(driver.cuEventQuery(event))


@pytest.mark.virtual_gpu(fresh=True)
def test_one_thread_does_the_work_of_many_streams() -> None:
    """Where processors are few, threads of the GPU delay each other and the program, as no GPU does."""
    with context():
        device = [checked(driver.cuMemAlloc(SHORT)) for _ in range(8)]
        pinned = [Pinned(SHORT) for _ in device]
        streams = [checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in device]
        for turn in range(20):
            for address, target, stream in zip(device, pinned, streams, strict=True):
                checked(driver.cuMemsetD8Async(address, turn, SHORT, stream))
                checked(driver.cuMemcpyDtoHAsync(target.address, address, SHORT, stream))
        checked(driver.cuCtxSynchronize())
        assert all((target.bytes == 19).all() for target in pinned)
        assert engine_threads() == 1


@pytest.mark.virtual_gpu(fresh=True)
def test_work_that_waits_holds_no_other_work_back() -> None:
    with context():
        streams = [checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(4)]
        held = [Held(stream) for stream in streams]
        device, pinned = checked(driver.cuMemAlloc(SHORT)), Pinned(SHORT)
        other = checked(driver.cuStreamCreate(NON_BLOCKING))
        checked(driver.cuMemsetD8Async(device, 7, SHORT, other))
        checked(driver.cuMemcpyDtoHAsync(pinned.address, device, SHORT, other))
        checked(driver.cuStreamSynchronize(other))
        assert (pinned.bytes == 7).all()
        assert not any(one.is_over() for one in held)
        for one in held:
            one.release()
        checked(driver.cuCtxSynchronize())


def test_per_thread_entries_use_a_stream_of_each_thread() -> None:
    with context() as made:
        library = load()
        target = Pinned(4)
        checked(driver.cuStreamWaitValue32(2, target.address, 1, 0))
        handle = ctypes.c_void_p(0)
        assert library.cuStreamQuery_ptsz(handle) == int(NOT_READY)
        answers: list[int] = []

        def ask() -> None:
            checked(driver.cuCtxSetCurrent(made))
            answers.append(library.cuStreamQuery_ptsz(handle))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert answers == [0]
        target.bytes[0] = 1
        assert library.cuStreamSynchronize_ptsz(handle) == 0


def test_event_orders_two_streams() -> None:
    with context():
        first, second = (checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2))
        event = checked(driver.cuEventCreate(0))
        target = Pinned(4)
        write = word_writer(target)
        held = Held(first)
        write(first, 1)
        checked(driver.cuEventRecord(event, first))
        checked(driver.cuStreamWaitEvent(second, event, 0))
        write(second, 2)
        assert driver.cuStreamQuery(second)[0] == NOT_READY
        held.release()
        checked(driver.cuStreamSynchronize(second))
        assert value_of(target) == 2


def test_event_that_was_never_recorded_is_over() -> None:
    with context():
        event = checked(driver.cuEventCreate(0))
        checked(driver.cuEventQuery(event))
        checked(driver.cuEventSynchronize(event))
        checked(driver.cuStreamWaitEvent(0, event, 0))
        checked(driver.cuStreamSynchronize(0))


def test_elapsed_time_covers_the_modelled_time_of_a_copy() -> None:
    size = 16 << 20
    with context():
        stream = checked(driver.cuStreamCreate(0))
        device, source = checked(driver.cuMemAlloc(size)), Pinned(size)
        start, end = checked(driver.cuEventCreate(0)), checked(driver.cuEventCreate(0))
        assert driver.cuEventElapsedTime(start, end)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE
        held = Held(stream)
        checked(driver.cuEventRecord(start, stream))
        checked(driver.cuMemcpyHtoDAsync(device, source.address, size, stream))
        checked(driver.cuEventRecord(end, stream))
        assert driver.cuEventElapsedTime(start, end)[0] == NOT_READY
        held.release()
        checked(driver.cuEventSynchronize(end))
        milliseconds = checked(driver.cuEventElapsedTime(start, end))
        assert milliseconds >= 1e3 * size / 55e9


def test_host_function_runs_in_its_place_and_may_not_call_the_driver() -> None:
    with context():
        library = load()
        stream = checked(driver.cuStreamCreate(0))
        before, after = Pinned(4), Pinned(4)
        seen: list[tuple[int, int, int]] = []

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def function(data: int) -> None:
            seen.append((value_of(before), value_of(after), library.cuCtxSynchronize()))

        held = Held(stream)
        word_writer(before)(stream, 1)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert library.cuLaunchHostFunc(ctypes.c_void_p(int(stream)), ctypes.c_void_p(address), None) == 0
        word_writer(after)(stream, 1)
        assert not seen
        held.release()
        checked(driver.cuStreamSynchronize(stream))
        assert seen == [(1, 0, int(driver.CUresult.CUDA_ERROR_NOT_PERMITTED))]
        assert value_of(after) == 1


def test_wait_value_holds_until_the_gpu_writes_it() -> None:
    with context():
        waiting, writing = (checked(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2))
        word = Pinned(4)
        checked(driver.cuStreamWaitValue32(waiting, word.address, 5, 1))
        checked(driver.cuStreamWriteValue32(writing, word.address, 4, 0))
        checked(driver.cuStreamSynchronize(writing))
        assert driver.cuStreamQuery(waiting)[0] == NOT_READY
        checked(driver.cuStreamWriteValue32(writing, word.address, 5, 0))
        checked(driver.cuStreamSynchronize(waiting))


def test_destroyed_stream_still_does_its_work() -> None:
    with context():
        stream = checked(driver.cuStreamCreate(NON_BLOCKING))
        target = Pinned(4)
        held = Held(stream)
        word_writer(target)(stream, 8)
        checked(driver.cuStreamDestroy(stream))
        assert driver.cuStreamQuery(stream)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE
        held.release()
        checked(driver.cuCtxSynchronize())
        assert value_of(target) == 8


def test_streams_know_their_flags_and_priority() -> None:
    with context():
        least, greatest = checked(driver.cuCtxGetStreamPriorityRange())
        assert greatest < least
        stream = checked(driver.cuStreamCreateWithPriority(NON_BLOCKING, greatest))
        assert checked(driver.cuStreamGetPriority(stream)) == greatest
        assert checked(driver.cuStreamGetFlags(stream)) == NON_BLOCKING


def test_no_stream_is_ever_captured() -> None:
    none = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
    with context():
        stream = checked(driver.cuStreamCreate(0))
        assert checked(driver.cuStreamIsCapturing(stream)) == none
        assert checked(driver.cuStreamGetCaptureInfo(stream))[0] == none
