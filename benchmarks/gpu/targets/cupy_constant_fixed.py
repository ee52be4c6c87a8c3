"""Uploads the table once."""

import cupy
import numpy

table = cupy.asarray(numpy.linspace(0.0, 1.0, 4_000_000))
values = cupy.ones(4_000_000)
for _ in range(100):
    values = cupy.sqrt(values + table)
print(f"{float(values.sum()):.3f}")
