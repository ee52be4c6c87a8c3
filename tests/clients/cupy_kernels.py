"""CuPy's own kernels, compiled to PTX: an ElementwiseKernel, and the sum of an array. Prints what they compute."""

import cupy
import numpy

difference = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_difference")
x = numpy.arange(1000, dtype=numpy.float32)
y = numpy.sqrt(x)
found = cupy.asnumpy(difference(cupy.asarray(x), cupy.asarray(y)))
print("elementwise", bool((found == (x - y) * (x - y)).all()))
print("sum", int(cupy.arange(10**6).sum()))
