"""In each step, NumPy multiplies matrices with the threads of OpenBLAS, and another program is started."""

import subprocess

import cupy
import numpy

STEPS = 10

matrix = numpy.ones((400, 400), numpy.float32)
state = cupy.zeros(100_000, numpy.float32)

total = 0.0
for step in range(STEPS):
    state.data.memset(step % 2, state.nbytes)
    used = state.get()
    unused = state.get()
    total += float(used.sum()) + float((matrix @ matrix)[0, 0])
    subprocess.run(["true"], check=True)
print("total", total > 0)
