"""Memory, streams and events through NVIDIA's `cuda.core`, without device code. Prints `right` if all bytes arrived.

`Device.sync` is not used: it goes through NVIDIA's runtime, which does not start on the virtual driver.
"""

import numpy
from cuda.core import Device, LegacyPinnedMemoryResource

ROUNDS = 5
COUNT = 100_000

device = Device()
device.set_current()
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource()
source = numpy.arange(COUNT, dtype=numpy.int32)
right = True
for number in range(ROUNDS):
    sent, arrived = (pinned.allocate(source.nbytes) for _ in range(2))
    numpy.from_dlpack(sent).view(numpy.int32)[:] = source + number
    memory = device.memory_resource.allocate(source.nbytes, stream=stream)
    sent.copy_to(memory, stream=stream)
    memory.copy_to(arrived, stream=stream)
    done = stream.record()
    done.sync()
    right &= bool((numpy.from_dlpack(arrived).view(numpy.int32) == source + number).all())
    memory.close(stream)
    stream.sync()
print("right" if right else "wrong")
