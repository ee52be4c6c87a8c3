"""A training loop with NVIDIA's Python binding.

The comment at each call names it, and says whether it is needed as written; `once` is what happens at the end.
"""

from cuda.bindings import driver as cuda

BYTES = 1 << 16
STEPS = 12


def check(result):
    status, *values = result
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(status)
    return values[0] if values else None


class Model:
    def __init__(self):
        self.host = bytearray(BYTES)
        self.weights = bytes(BYTES)
        self.device = check(cuda.cuMemAlloc(2 * BYTES))  # cuMemAlloc_v2: needed

    def upload(self, step):
        batch = bytes([step]) * BYTES
        check(cuda.cuMemcpyHtoD(self.device, batch, BYTES))  # cuMemcpyHtoD_v2: unnecessary

    def upload_again(self):
        check(cuda.cuMemcpyHtoD(int(self.device) + BYTES, self.weights, BYTES))  # cuMemcpyHtoD_v2: unnecessary

    def loss_of(self, step):
        check(cuda.cuMemcpyDtoH(self.host, self.device, BYTES))  # cuMemcpyDtoH_v2: needed
        return self.host[step]

    def losses(self):
        for step in range(STEPS):
            self.upload(step)
            self.upload_again()
            check(cuda.cuCtxSynchronize())  # cuCtxSynchronize: unnecessary
            yield self.loss_of(step)


def train():
    model = Model()
    total = sum(sorted(model.losses(), key=lambda loss: -loss))
    check(cuda.cuMemFree(model.device))  # cuMemFree_v2: once
    return total


check(cuda.cuInit(0))
context = check(cuda.cuDevicePrimaryCtxRetain(check(cuda.cuDeviceGet(0))))
check(cuda.cuCtxSetCurrent(context))
if train() != sum(range(STEPS)):
    raise SystemExit("wrong losses")
