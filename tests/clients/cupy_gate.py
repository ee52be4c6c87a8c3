"""Waits in CuPy, on two threads."""

import threading

import cupy
import numpy

host = numpy.zeros(1 << 16)
device = cupy.zeros(1 << 16)


def fetch(times):
    for _ in range(times):
        cupy.asnumpy(device)  # on a thread


worker = threading.Thread(target=fetch, args=(4,))
worker.start()
worker.join()
for _ in range(6):
    device.set(host)  # set
    float(device[0])  # item
cupy.cuda.Device().synchronize()  # at the end
