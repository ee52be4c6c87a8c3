"""Hands NumPy arrays to a kernel: each launch uploads and downloads them."""

import numpy
from numba import cuda


@cuda.jit
def add(values, table):
    place = cuda.grid(1)
    if place < values.size:
        values[place] += table[place]


values = numpy.zeros(1_000_000)
table = numpy.linspace(0.0, 1.0, 1_000_000)
for _ in range(60):
    add[3907, 256](values, table)  # problem: transfer cuMemcpyHtoD_v2 cuMemcpyDtoH_v2
print(f"{values.sum():.3f}")
