"""Keeps the arrays on the GPU between the launches."""

import numpy
from numba import cuda


@cuda.jit
def add(values, table):
    place = cuda.grid(1)
    if place < values.size:
        values[place] += table[place]


values = cuda.to_device(numpy.zeros(1_000_000))
table = cuda.to_device(numpy.linspace(0.0, 1.0, 1_000_000))
for _ in range(60):
    add[3907, 256](values, table)
print(f"{values.copy_to_host().sum():.3f}")
