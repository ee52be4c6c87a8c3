"""An ordinary CuPy script with known problems: a constant sent again, an unread result, needless waits."""

import cupy
import numpy

STEPS = 10
COUNT = 1_000_000

constant = numpy.arange(COUNT, dtype=numpy.float32)
state = cupy.zeros(COUNT, numpy.float32)


def step() -> None:
    """Copy the constant into the state."""
    weights = cupy.asarray(constant)  # the same bytes in every step
    state.data.copy_from_device_async(weights.data, weights.nbytes)
    cupy.cuda.Device().synchronize()  # nothing needs it


def report() -> None:
    """Fetch the state, and ignore it."""
    state.get()


for _ in range(STEPS):
    step()
    report()
print("sum", state.get().sum())
