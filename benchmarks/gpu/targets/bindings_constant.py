"""Uploads a constant in each step, and waits for it, through the driver's own interface."""

import ctypes

from cuda.bindings import driver


def checked(answer):
    """Return what a call of the driver answers. Raises `RuntimeError` when it failed."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(answer[0])
    return answer[1] if len(answer) > 1 else None


BYTES = 4 << 20
checked(driver.cuInit(0))
context = checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(0))))
checked(driver.cuCtxSetCurrent(context))
table = ctypes.create_string_buffer(b"\x01" * BYTES, BYTES)
answer = ctypes.create_string_buffer(4)
memory = checked(driver.cuMemAlloc(BYTES))
for _ in range(100):
    checked(driver.cuMemcpyHtoD(memory, ctypes.addressof(table), BYTES))  # problem: transfer cuMemcpyHtoD_v2
    checked(driver.cuCtxSynchronize())  # problem: unnecessary cuCtxSynchronize
checked(driver.cuMemcpyDtoH(ctypes.addressof(answer), memory, 4))
print(answer.raw.hex())
