"""Measures what a driver's calls take by themselves: `python -m ffm.instrument.probing.latency_probe LIBRARY`.

Prints {"latencies": [NANOSECONDS, ...], "pinning": [NANOSECONDS, ...], "copies": [NANOSECONDS, ...]} or
{"error": SENTENCE}: how much longer a wait takes than the GPU's work, how long pinning a page does, and how long the
GPU takes to copy within its memory. It imports little, so that it starts quickly.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
import time

from ffm.instrument.probing.probe_driver import Driver, ProbeError

REPETITIONS = 60
WARMING_UP = 5
"""The first repetitions start the driver's threads, and are not counted."""

BYTES = 1 << 20
"""Bytes that the GPU sets: enough work for the waiting thread to fall asleep, if its driver lets it sleep."""

COPIED_BYTES = 32 << 20
"""Bytes that the GPU copies: with their destination, more than most GPUs cache."""

COPIES = 9

PAUSE_S = 0.0002
"""Seconds between repetitions, so that the GPU and its input queue become idle."""


def measured_latencies(driver: Driver) -> list[int]:
    """Repeatedly give work to the idle GPU and wait for it; return the excess over the work's own time in nanoseconds.

    Raises:
        ProbeError: The driver has no GPU, or refused a call.
    """
    context, stream, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    gpu, begun, ended, elapsed = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    driver("initialise", ctypes.c_uint(0))
    driver("device", ctypes.byref(gpu), ctypes.c_int(0))
    driver("retain_context", ctypes.byref(context), gpu)
    driver("set_context", context)
    driver("create_stream", ctypes.byref(stream), ctypes.c_uint(0))
    driver("create_event", ctypes.byref(begun), ctypes.c_uint(0))
    driver("create_event", ctypes.byref(ended), ctypes.c_uint(0))
    driver("allocate", ctypes.byref(memory), ctypes.c_size_t(BYTES))
    latencies: list[int] = []
    for repetition in range(WARMING_UP + REPETITIONS):
        time.sleep(PAUSE_S)
        start = time.monotonic_ns()
        driver("record_event", begun, stream)
        driver("set_bytes_later", memory, ctypes.c_ubyte(1), ctypes.c_size_t(BYTES), stream)
        driver("record_event", ended, stream)
        driver("synchronize_stream", stream)
        took = time.monotonic_ns() - start
        driver("time_between_events", ctypes.byref(elapsed), begun, ended)
        if repetition >= WARMING_UP:
            latencies.append(max(took - round(elapsed.value * 1e6), 0))
    return latencies


def measured_pinning(driver: Driver) -> list[int]:
    """Repeatedly pin and release one page that exists; return how long pinning took each time, in nanoseconds.

    The result is empty if the driver refuses. `measured_latencies` must have made a context current.
    """
    page = mmap.mmap(-1, mmap.PAGESIZE)
    page[0] = 1
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    took: list[int] = []
    for _ in range(REPETITIONS):
        start = time.monotonic_ns()
        try:
            driver("pin", address, ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_uint(0))
            took.append(time.monotonic_ns() - start)
            driver("unpin", address)
        except ProbeError:
            break
    return took[WARMING_UP:]


def measured_copies(driver: Driver) -> list[int]:
    """Repeatedly copy `COPIED_BYTES` within the GPU's memory; return how long each copy took, in nanoseconds.

    The result is empty if the driver refuses, for example for lack of memory. `measured_latencies` must have made a
    context current.
    """
    source, destination, elapsed = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_float()
    stream, begun, ended = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    took: list[int] = []
    try:
        driver("create_stream", ctypes.byref(stream), ctypes.c_uint(0))
        driver("create_event", ctypes.byref(begun), ctypes.c_uint(0))
        driver("create_event", ctypes.byref(ended), ctypes.c_uint(0))
        for memory in (source, destination):
            driver("allocate", ctypes.byref(memory), ctypes.c_size_t(COPIED_BYTES))
            driver("set_bytes_later", memory, ctypes.c_ubyte(1), ctypes.c_size_t(COPIED_BYTES), stream)
        for _ in range(COPIES):
            driver("record_event", begun, stream)
            driver("copy_later", destination, source, ctypes.c_size_t(COPIED_BYTES), stream)
            driver("record_event", ended, stream)
            driver("synchronize_stream", stream)
            driver("time_between_events", ctypes.byref(elapsed), begun, ended)
            took.append(round(elapsed.value * 1e6))
    except ProbeError:
        return []
    return took


def main() -> None:
    """Measure with the library named on the command line, and print."""
    try:
        driver = Driver(sys.argv[1])
        answer: dict[str, object] = {
            "latencies": measured_latencies(driver),
            "pinning": measured_pinning(driver),
            "copies": measured_copies(driver),
        }
    except ProbeError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
