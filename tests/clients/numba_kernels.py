"""Numba's kernels, a stencil and a reduction, against NumPy. Prints whether the values are the same."""

import numpy as np
from numba import cuda


@cuda.jit
def stencil(given, made):  # type: ignore[no-untyped-def]
    """Set the mean of four neighbours."""
    i, j = cuda.grid(2)
    if 0 < i < given.shape[0] - 1 and 0 < j < given.shape[1] - 1:
        made[i, j] = 0.25 * (given[i - 1, j] + given[i + 1, j] + given[i, j - 1] + given[i, j + 1])


@cuda.reduce
def total(x, y):  # type: ignore[no-untyped-def]
    """Add."""
    return x + y


given = np.random.default_rng(0).random((200, 300))
made, expected = np.zeros_like(given), np.zeros_like(given)
stencil[(13, 19), (16, 16)](given, made)
above, below, left, right = given[:-2, 1:-1], given[2:, 1:-1], given[1:-1, :-2], given[1:-1, 2:]
expected[1:-1, 1:-1] = 0.25 * (above + below + left + right)
print("stencil", np.array_equal(made, expected))
print("sum", int(total(np.arange(10000.0))))
