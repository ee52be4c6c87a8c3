"""Waits for the GPU while locks are taken from ever different stacks, for which the interpreter reads a clock.

The argument says with what the script itself reads one: `nothing`, `time` or `datetime`.
"""

import datetime
import functools
import itertools
import sys
import threading
import time

from cuda.bindings import driver as cuda

BYTES = 1 << 16
STEPS = 3
LOCK = threading.Lock()
CALLING_BACK = (
    lambda function: max((0,), key=function),
    lambda function: min((0,), key=function),
    lambda function: sorted((0,), key=function)[0],
    lambda function: sum(map(function, (0,))),
    lambda function: functools.reduce(lambda _, value: function(value), (0, 0)),
)
READ = {"nothing": int, "time": time.perf_counter, "datetime": datetime.datetime.now}[sys.argv[1]]


def take_lock(ways):
    """Take it below C functions that call each other in this order."""
    if ways:
        return ways[0](lambda _: take_lock(ways[1:]))
    with LOCK:
        return 0


def take_locks(depth):
    for ways in itertools.product(CALLING_BACK, repeat=depth):
        take_lock(ways)


def check(result):
    status, *values = result
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(status)
    return values[0] if values else None


take_locks(3)
check(cuda.cuInit(0))
context = check(cuda.cuDevicePrimaryCtxRetain(check(cuda.cuDeviceGet(0))))
check(cuda.cuCtxSetCurrent(context))
memory = check(cuda.cuMemAlloc(BYTES))
for step in range(STEPS):
    READ()
    check(cuda.cuMemsetD8(memory, step, BYTES))
    check(cuda.cuCtxSynchronize())
    take_locks(5)
    READ()
