"""Copies, streams, events and pools through CuPy, without device code. Prints `right` if all bytes arrived."""

import cupy
import numpy

ROUNDS = 5
COUNT = 100_000

source = numpy.arange(COUNT, dtype=numpy.int32)
stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()
right = True


def same(array: cupy.ndarray, expected: numpy.ndarray) -> bool:
    """Return whether an array on the device has the expected content."""
    return bool((array.get() == expected).all())


for number in range(ROUNDS):
    right &= same(cupy.asarray(source + number), source + number)
    with stream:
        sent = cupy.asarray(source)
        copied = cupy.empty_like(sent)
        copied.data.copy_from_device_async(sent.data, sent.nbytes, stream)
        recorded = stream.record()
    other.wait_event(recorded)
    pinned = numpy.frombuffer(cupy.cuda.alloc_pinned_memory(sent.nbytes), numpy.int32, COUNT)
    copied.get(stream=other, out=pinned, blocking=False)
    other.synchronize()
    right &= bool((pinned == source).all())
    began, ended = stream.record(cupy.cuda.Event()), stream.record(cupy.cuda.Event())
    ended.synchronize()
    right &= cupy.cuda.get_elapsed_time(began, ended) >= 0
    right &= same(cupy.zeros(1000, numpy.int32), numpy.zeros(1000, numpy.int32))
    cupy.cuda.runtime.memset(copied.data.ptr, 1, copied.nbytes)
    right &= same(copied, numpy.full(COUNT, 0x01010101, numpy.int32))

pools = cupy.cuda.MemoryPool(), cupy.cuda.MemoryAsyncPool(), cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
for pool in pools:
    with cupy.cuda.using_allocator(pool.malloc):
        right &= same(cupy.asarray(source), source)

# A graph of copies.
kept = cupy.asarray(source)
with stream:
    target = cupy.empty_like(kept)
    stream.begin_capture()
    target.data.copy_from_device_async(kept.data, kept.nbytes, stream)
    graph = stream.end_capture()
    graph.launch(stream)
stream.synchronize()
right &= same(target, source)

# Device code cannot run here, and the driver says so.
for image in (b"\x7fELF no code for this device", b"not an image"):
    try:
        cupy.cuda.function.Module().load(image)
        right = False
    except cupy.cuda.driver.CUDADriverError as error:
        print(str(error).split(":")[0])
print("right" if right else "wrong")
