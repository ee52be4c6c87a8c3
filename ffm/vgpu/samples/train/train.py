"""train [STEPS]: logistic regression on the GPU, from Python, with a loop that fetches the loss of each step.

Prints the mean loss of every REPORTED steps and a checksum of the weights. Exit status: 0 when the weights agree with
those that NumPy computes, 1 when they do not, 2 for wrong arguments or a failed call of the driver. `train_fixed` runs
the same code with `fixed=True`: it only enqueues the copy of each loss, and waits once before it reports.

The kernels lie beside this file in `train_kernels.fatbin`, which build_nvcc.sh makes, or else, with a virtual GPU, in
`../lib/libtrain_kernels.so`.
"""

import ctypes
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
LIBRARIES = HERE.parent / "lib"
FATBIN = HERE / "train_kernels.fatbin"
if not FATBIN.exists():
    # Under this name the bindings find the virtual driver already loaded.
    ctypes.CDLL(str(LIBRARIES / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    os.environ.setdefault("VGPU_CONFIGURATION", str(HERE / "train.vgpu"))

try:  # after the driver that it is to find
    from cuda.bindings import driver  # type: ignore[import-untyped]
except ImportError as missing:
    sys.exit(f"train: {missing}; it needs the Python package cuda-bindings")

FEATURES = 64
BATCH = 256
SLOTS = 4  # batches that may be on their way to the GPU
REPORTED = 50
DEFAULT_STEPS = 900
RATE = 0.5
TOLERATED_DIFFERENCE = 1e-3

Floats = NDArray[np.float32]


def check(answer: tuple[Any, ...]) -> Any:
    """Return what a call of the driver answered beside its status; end the program when it failed."""
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        print(f"train: CUDA call failed: {status.name}", file=sys.stderr)
        sys.exit(2)
    return values[0] if len(values) == 1 else tuple(values)


class Kernel:
    """A kernel of the module: `types` are those of its parameters, None for an address on the device."""

    def __init__(self, module: Any, name: str, *types: Any) -> None:
        self._function = check(driver.cuModuleGetFunction(module, name.encode()))
        self._types = types

    def launch(self, threads: int, *arguments: Any) -> None:
        """Run on `threads` threads, at most 128 of them in a block, on the default stream."""
        block = min(threads, 128)
        parameters = (arguments, self._types)
        check(driver.cuLaunchKernel(self._function, threads // block, 1, 1, block, 1, 1, 0, 0, parameters, 0))


def load_module() -> Any:
    """Load the kernels, for the GPU that is there."""
    if FATBIN.exists():
        return check(driver.cuModuleLoad(str(FATBIN).encode()))
    image = ctypes.CDLL(str(LIBRARIES / "libtrain_kernels.so")).train_image
    image.restype = ctypes.c_void_p
    return check(driver.cuModuleLoadData(image()))


def pinned(count: int) -> Floats:
    """`count` zeros in page-locked memory."""
    address = int(check(driver.cuMemHostAlloc(4 * count, 0)))
    array: Floats = np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))
    array[:] = 0
    return array


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-values))."""
    result: NDArray[np.float64] = 1 / (1 + np.exp(-values))
    return result


class Batches:
    """Samples of two classes, drawn again for each step: this is the CPU's own work between its calls of the driver."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)
        self._direction = self._random.standard_normal(FEATURES)

    def draw(self, samples: Floats, labels: Floats) -> None:
        """Write a batch: `samples` (BATCH, FEATURES) and `labels` (BATCH), 0 or 1."""
        drawn = self._random.standard_normal((BATCH, FEATURES), dtype=np.float32)
        chances = sigmoid(drawn @ self._direction)
        samples[:] = drawn
        labels[:] = self._random.random(BATCH) < chances


class Trainer:
    """The model and its training on the GPU; everything is on the default stream."""

    def __init__(self, steps: int, fixed: bool) -> None:
        self._fixed = fixed
        module, count, address = load_module(), ctypes.c_int, None
        self._predict = Kernel(module, "predict", address, address, address, address, address, count)
        self._update = Kernel(module, "update", address, address, address, ctypes.c_float, count, count)
        self._mean_loss = Kernel(module, "mean_loss", address, address, count)
        self._batch = check(driver.cuMemAlloc(4 * BATCH * (FEATURES + 1)))  # samples, then labels
        self._weights = check(driver.cuMemAlloc(4 * (FEATURES + 1)))  # the last one is the bias
        self._errors = check(driver.cuMemAlloc(4 * BATCH))
        self._sample_losses = check(driver.cuMemAlloc(4 * BATCH))
        self._loss = check(driver.cuMemAlloc(4))
        check(driver.cuMemsetD32(self._weights, 0, FEATURES + 1))
        self._slots = [pinned(BATCH * (FEATURES + 1)) for _ in range(SLOTS)]
        self._uploaded = [check(driver.cuEventCreate(2)) for _ in range(SLOTS)]  # CU_EVENT_DISABLE_TIMING
        self.losses = pinned(steps)

    def batch_of(self, step: int) -> tuple[Floats, Floats]:
        """Return where to write the step's samples and labels, when an earlier batch there has been uploaded."""
        # needed: source overwritten
        check(driver.cuEventSynchronize(self._uploaded[step % SLOTS]))
        slot = self._slots[step % SLOTS]
        return slot[: BATCH * FEATURES].reshape(BATCH, FEATURES), slot[BATCH * FEATURES :]

    def step(self, step: int) -> None:
        """Train on the batch that was written for this step, and fetch the loss into `losses`."""
        slot = self._slots[step % SLOTS]
        check(driver.cuMemcpyHtoDAsync(self._batch, slot.ctypes.data, slot.nbytes, 0))
        check(driver.cuEventRecord(self._uploaded[step % SLOTS], 0))
        labels = driver.CUdeviceptr(int(self._batch) + 4 * BATCH * FEATURES)
        self._predict.launch(BATCH, self._batch, labels, self._weights, self._errors, self._sample_losses, FEATURES)
        self._update.launch(128, self._batch, self._errors, self._weights, RATE, FEATURES, BATCH)
        self._mean_loss.launch(1, self._sample_losses, self._loss, BATCH)
        destination = self.losses[step:].ctypes.data
        if self._fixed:
            check(driver.cuMemcpyDtoHAsync(destination, self._loss, 4, 0))
        else:
            # problem: result fetched in each step
            check(driver.cuMemcpyDtoH(destination, self._loss, 4))

    def report(self, step: int) -> None:
        """Print the mean loss of the last REPORTED steps."""
        if self._fixed:
            check(driver.cuStreamSynchronize(0))
        mean = float(np.mean(self.losses[max(0, step + 1 - REPORTED) : step + 1], dtype=np.float64))
        print(f"step {step + 1}: loss {mean:.6f}")

    def weights(self) -> Floats:
        """Fetch the weights and the bias."""
        result = np.zeros(FEATURES + 1, dtype=np.float32)
        # needed: result used at once
        check(driver.cuMemcpyDtoH(result.ctypes.data, self._weights, result.nbytes))
        return result


class Reference:
    """The same training in double precision with NumPy."""

    def __init__(self) -> None:
        self.weights = np.zeros(FEATURES + 1)

    def step(self, samples: Floats, labels: Floats) -> None:
        """Train on one batch."""
        rows = np.hstack([samples, np.ones((BATCH, 1))])
        self.weights -= RATE / BATCH * (rows.T @ (sigmoid(rows @ self.weights) - labels))


def train(steps: int, fixed: bool) -> int:
    """Train and compare; returns the exit status."""
    check(driver.cuInit(0))
    context = check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))
    check(driver.cuCtxSetCurrent(context))
    trainer, batches, reference = Trainer(steps, fixed), Batches(), Reference()
    for step in range(steps):
        samples, labels = trainer.batch_of(step)
        batches.draw(samples, labels)
        trainer.step(step)
        reference.step(samples, labels)
        if (step + 1) % REPORTED == 0 or step + 1 == steps:
            trainer.report(step)
    weights = trainer.weights()
    difference = float(np.abs(weights - reference.weights).max())
    print(f"{steps} steps, checksum {zlib.crc32(weights.tobytes() + trainer.losses.tobytes()):08x}")
    if difference <= TOLERATED_DIFFERENCE:
        return 0
    print(f"train: the weights differ from the reference by {difference:g}", file=sys.stderr)
    return 1


def main(fixed: bool) -> int:
    """Read the number of steps and train; returns the exit status."""
    name = Path(sys.argv[0]).name
    text = sys.argv[1] if len(sys.argv) > 1 else str(DEFAULT_STEPS)
    if len(sys.argv) > 2 or not text.isdecimal() or not 1 <= int(text) < 2**31:
        print(f"{name}: '{' '.join(sys.argv[1:])}' is no whole number of at least 1", file=sys.stderr)
        print(f"usage: {name} [STEPS]", file=sys.stderr)
        return 2
    return train(int(text), fixed)
