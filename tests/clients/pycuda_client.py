"""Memory, streams and events through PyCUDA, without device code. Prints `right` if all bytes arrived."""

import numpy
import pycuda.autoinit  # noqa: F401  makes a context
import pycuda.driver as driver

ROUNDS = 20
COUNT = 100_000

stream, other = driver.Stream(), driver.Stream()
began, ended = driver.Event(), driver.Event()
source = numpy.arange(COUNT, dtype=numpy.int32)
result = numpy.zeros_like(source)
pinned = driver.pagelocked_empty(COUNT, numpy.int32)
returned = driver.pagelocked_empty(COUNT, numpy.int32)
memory = driver.mem_alloc(source.nbytes)
copy = driver.mem_alloc(source.nbytes)
right = True
for number in range(ROUNDS):
    pinned[:] = source + number
    began.record(stream)
    driver.memcpy_htod_async(memory, pinned, stream)
    ended.record(stream)
    other.wait_for_event(ended)
    driver.memcpy_dtod_async(copy, memory, source.nbytes, other)
    driver.memcpy_dtoh_async(returned, copy, other)
    other.synchronize()
    right = right and bool((returned == pinned).all())
    ended.synchronize()
    right = right and ended.time_since(began) >= 0
    driver.memcpy_htod(memory, source)
    driver.memcpy_dtoh(result, memory)
    right = right and bool((result == source).all())
    driver.Context.synchronize()
    spare = driver.mem_alloc(1 << 16)
    driver.memset_d8(spare, 7, 1 << 16)
    spare.free()
print("right" if right else "wrong")
