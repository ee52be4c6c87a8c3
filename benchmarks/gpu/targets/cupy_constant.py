"""Uploads the same table in each step."""

import cupy
import numpy

table = numpy.linspace(0.0, 1.0, 4_000_000)
values = cupy.ones(4_000_000)
for _ in range(100):
    values = cupy.sqrt(values + cupy.asarray(table))  # problem: transfer cuMemcpyHtoDAsync_v2 cuMemcpyHtoD_v2
print(f"{float(values.sum()):.3f}")
