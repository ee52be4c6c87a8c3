"""What a change is called in the Python packages through which people use GPUs.

Sources: the documentation of PyTorch (`Tensor.pin_memory`, `Tensor.to`, `torch.cuda.empty_cache`, "A guide on good
usage of non_blocking and pin_memory() in PyTorch"), CuPy (`cupy.ndarray.get`, `cupyx.empty_pinned`, "Memory
Management"), Numba CUDA (`cuda.pinned_array`, `DeviceNDArray.copy_to_host`, `cuda.defer_cleanup`), JAX
(`jax.Array.copy_to_host_async`, memory kinds, "GPU memory allocation"), PyCUDA (`pycuda.driver.pagelocked_empty`,
`pycuda.tools.DeviceMemoryPool`) and Warp (`wp.copy`, `wp.empty`, `wp.set_mempool_release_threshold`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile

from ffm.results.call_sites import own_frame, python_package, runs_python
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site


@dataclass(frozen=True, slots=True)
class Framework:
    """Sentences for the users of a package."""

    name: str
    """Empty if it is not known which package makes a call."""
    asynchronous: str
    """How to copy without waiting."""
    pinned: str
    """How to pin the host memory of a copy."""
    memory: str
    """How to keep device memory instead of giving it back."""
    waits: str
    """What the package calls an explicit synchronization."""
    order: str
    """How to order the work of several streams without waiting on the CPU."""
    kept_there: str
    """How to keep on the GPU what a loop would fetch in each iteration."""
    sent_once: str
    """How to fill device memory again with what was uploaded once."""
    sent_ahead: str
    """How to upload without waiting, and what must hold then."""
    fetching: tuple[str, ...] = ()
    """Names of its compiled functions, without their scope, that copy to the host and wait as a part of that, but do
    not say so in the name.
    """


TORCH = Framework(
    "PyTorch",
    'Copy with non_blocking=True: tensor.to("cuda", non_blocking=True), or pinned.copy_(tensor, non_blocking=True).',
    "Pin the host tensor, or the copy waits anyway: pin_memory=True for a DataLoader, whose own thread pins, or "
    "tensor.pin_memory() once, before the loop: it copies on the CPU.",
    "PyTorch keeps freed memory by itself: leave out torch.cuda.empty_cache() in the loop. Where memory runs short, "
    "PyTorch gives it back before it tries again: make the work need less.",
    "torch.cuda.synchronize(), or the synchronize() of a stream or an event",
    "stream.wait_stream(other), or stream.wait_event(event)",
    "total += loss.detach() adds up there, and losses.append(loss.detach()) keeps each value there; call .item(), "
    ".cpu() or .tolist() after the loop, as in torch.stack(losses).tolist(), or in every k-th iteration.",
    'saved = tensor.to("cuda") before the loop; use it there, or buffer.copy_(saved) where the loop changes it.',
    'tensor.to("cuda", non_blocking=True), or buffer.copy_(pinned, non_blocking=True), from pinned memory: '
    "pin_memory=True for a DataLoader, whose own thread pins, or tensor.pin_memory() once, before the loop. In the "
    "loop, pin_memory() copies on the CPU, and can take longer than the wait. Batches are safe, because PyTorch hands "
    "pinned memory out again only when the GPU is done with it. Before the script itself writes to a pinned tensor "
    "again, wait for an event recorded after the copy, or use several tensors in turn.",
    ("_local_scalar_dense_cuda",),
)
CUPY = Framework(
    "CuPy",
    "Copy on a stream without waiting: array.set(host, stream=stream), or array.get(out=pinned, blocking=False).",
    "Pin the host array, or the copy waits anyway: cupyx.empty_pinned() or cupyx.empty_like_pinned().",
    "CuPy keeps freed memory in a pool: leave out free_all_blocks() in the loop, and do not turn the pool off "
    "(cupy.cuda.set_allocator).",
    "the synchronize() of a device, a stream or an event",
    "stream.wait_event(event)",
    "total += values.sum() adds up there, and history.append(values.copy()) keeps each there; call .get(), float() or "
    "cupy.asnumpy() after the loop, as in cupy.stack(history).get(), or in every k-th iteration.",
    "saved = cupy.asarray(host) before the loop; use it there, or array[...] = saved where the loop changes the array.",
    "array.set(pinned, stream=stream), with pinned from cupyx.empty_pinned() or cupyx.empty_like_pinned(). Before the "
    "script writes there again, wait for an event that it recorded after the copy, or use several arrays in turn. "
    "cupy.asarray(host) copies to a pinned buffer of CuPy's own, and then does not wait.",
    ("get",),
)
NUMBA = Framework(
    "Numba",
    "Copy on a stream: cuda.to_device(host, stream=stream), or array.copy_to_host(pinned, stream=stream). A NumPy "
    "array that a kernel is given is sent before and copied back after each launch: give it a device array instead, "
    "or cuda.In(array) if it only reads.",
    "Pin the host array, or the copy waits anyway: cuda.pinned_array(), or cuda.pinned(host) around the use.",
    "Make the arrays once, before the loop, and fill them by array.copy_to_device(host), or to_device(host, to=array). "
    "Numba gives arrays back in batches, and each waits: put the loop into `with cuda.defer_cleanup():`.",
    "cuda.synchronize(), or the synchronize() of a stream or an event",
    "event.record(stream) and event.wait(other)",
    "let the kernel add to an element of a device array (cuda.atomic.add), or write each value to the next element of "
    "one; call copy_to_host() after the loop, or in every k-th iteration. A NumPy array that a kernel is given is "
    "copied back after each launch: give it a device array instead, or cuda.In(array) if it only reads.",
    "saved = cuda.to_device(host) before the loop; give it to kernels, or array.copy_to_device(saved) where they "
    "change it. A NumPy array that a kernel is given is sent at each launch, even if it is unchanged.",
    "cuda.to_device(pinned, stream=stream, to=array), with pinned from cuda.pinned_array(). Before the script writes "
    "there again, wait for an event that it recorded after the copy, or use several arrays in turn.",
)
JAX = Framework(
    "JAX",
    "Call array.copy_to_host_async() once the work that produces it is dispatched, and read the array later.",
    'Keep host data in pinned memory, as a sharding with memory_kind="pinned_host" does.',
    "Do not set XLA_PYTHON_CLIENT_ALLOCATOR=platform: otherwise JAX keeps freed memory by itself.",
    "block_until_ready()",
    "no wait at all: JAX orders work by the arrays that it uses",
    "total = total + loss adds up there, and losses.append(loss) keeps each value there; call float(), .item() or "
    "jax.device_get(losses) after the loop, or in every k-th iteration.",
    "saved = jax.device_put(host) before the loop; use it there: arrays do not change.",
    "jax.device_put(host) returns before the copy is over. Leave the host array as it is until then, or put a copy.",
)
PYCUDA = Framework(
    "PyCUDA",
    "Copy on a stream: memcpy_htod_async(memory, pinned, stream), or memcpy_dtoh_async(pinned, memory, stream). "
    "driver.In, driver.Out and driver.InOut copy at each launch: give the kernel memory of the device instead.",
    "Pin the host array, or the copy waits anyway: pagelocked_empty(), or register_host_memory().",
    "Allocate the memory once, before the loop, or take it from a pool (pycuda.tools.DeviceMemoryPool): free(), or the "
    "end of the last reference to the memory, waits.",
    "the synchronize() of a context, a stream or an event",
    "event.record(stream) and other.wait_for_event(event)",
    "total += value adds up in a GPUArray, and a kernel can write each value to the next element of one; call .get() "
    "or memcpy_dtoh() after the loop, or in every k-th iteration. driver.Out and driver.InOut copy back after each "
    "launch: give the kernel memory of the device instead.",
    "saved = pycuda.gpuarray.to_gpu(host) before the loop; use it there, or memcpy_dtod(memory, saved.gpudata, "
    "saved.nbytes) where the loop changes the memory. driver.In and driver.InOut send the array at each launch.",
    "memcpy_htod_async(memory, pinned, stream), with pinned from pagelocked_empty(). Before the script writes there "
    "again, wait for an event that it recorded after the copy, or use several arrays in turn.",
)
WARP = Framework(
    "Warp",
    "Copy on a stream: wp.copy(array, pinned, stream=stream), or wp.copy(pinned, array, stream=stream).",
    'Pin the host array, or the copy waits anyway: wp.empty(shape, dtype, device="cpu", pinned=True).',
    "Make the arrays once, before the loop, and fill them by array.assign(host) or array.zero_(). Or let the device "
    "keep freed memory: wp.set_mempool_release_threshold(device, bytes).",
    "wp.synchronize(), or that of a device, a stream or an event",
    "stream.wait_stream(other), or stream.wait_event(event)",
    "wp.atomic_add() adds up in an element of an array, and a kernel can write each value to the next one; call "
    ".numpy() after the loop, or in every k-th iteration.",
    "saved = wp.array(host, dtype=dtype, device=device) before the loop; use it there, or wp.copy(array, saved) where "
    "the loop changes the array.",
    'wp.copy(array, pinned, stream=stream), with pinned from wp.empty(shape, dtype, device="cpu", pinned=True). Before '
    "the script writes there again, wait for an event that it recorded after the copy, or use several arrays in turn.",
)
PYTHON = Framework(
    "",
    "Call the asynchronous form on the stream of the work that uses the data.",
    "Pin the host memory, or the copy waits anyway: allocate it with cuMemAllocHost, or register it once with "
    "cuMemHostRegister.",
    "Take the memory from a pool, or allocate with cuMemAllocAsync and free "
    "with cuMemFreeAsync on the stream that uses the buffer.",
    "the call that waits",
    "an event that one stream records and another waits for",
    "let a kernel add the values up, or write each to the next place of a buffer, and copy them after the loop, or in "
    "every k-th iteration.",
    "Upload it once, before the loop, into a buffer of its own, and copy from there in the loop (cuMemcpyDtoDAsync).",
    "call the asynchronous form on the stream of the work that uses the data, from pinned memory. Before the program "
    "writes there again, wait for an event that it recorded after the copy, or use several buffers in turn.",
)
"""For programs that call the driver from Python without one of these packages."""

_PACKAGES = {
    "torch": TORCH,
    "cupy": CUPY,
    "cupy_backends": CUPY,
    "cupyx": CUPY,
    "numba": NUMBA,
    "numba_cuda": NUMBA,
    "jax": JAX,
    "jaxlib": JAX,
    "pycuda": PYCUDA,
    "warp": WARP,
}
"""By the folder that contains a package's files."""

_INSTALLED = re.compile("/(site|dist)-packages/")
_WAITS = re.compile(r"sync|wait|block|ready|finish|join")
_MAKES_OR_COPIES = re.compile(r"copy|^_*(to|get|set|put|__init__)(_|$)|assign|array|numpy|full|from_")


def framework_of(files: Iterable[str]) -> Framework | None:
    """Return the package to which the files of a call stack, innermost first, belong; None if there is none.

    A profiler may name files from the package's folder on. Other folders, as of an environment, can have any name.
    """
    for file in files:
        package = python_package(file) or ("" if file.startswith("/") else file.partition("/")[0])
        if package in _PACKAGES:
            return _PACKAGES[package]
    return None


def framework_named(name: str) -> Framework:
    """Return the package of a name, which can be empty as that of `PYTHON`."""
    return next((framework for framework in _PACKAGES.values() if framework.name == name), PYTHON)


def framework_of_site(analysis: Analysis, site: Site) -> Framework | None:
    """Return the Python package through which a site's call is made. None if its stack has no Python function, unless a
    package makes the call on a thread of its own.
    """
    frames = analysis.stacks[site.stack].frames
    script = any(frame.python for frame in frames)
    if not script and (not runs_python(analysis.modules) or own_frame(frames, analysis.modules) is not None):
        return None
    modules = [module.path for module in analysis.modules]
    # A tensor's own methods are no Python functions: there only the library shows the framework.
    files = (
        frame.file if frame.python else modules[frame.module] if 0 <= frame.module < len(modules) else ""
        for frame in frames
    )
    return framework_of(files) or (PYTHON if script else None)


@dataclass(frozen=True, slots=True)
class PackageCall:
    """A function of an installed Python package that the program calls, and that leads to a call of the driver."""

    package: str
    function: str


def package_call(analysis: Analysis, site: Site) -> PackageCall | None:
    """Return which function of a package the program calls that leads to a site's call; None if that has no Python
    function. Functions inside others, as decorators return them, are named only if there are no others.
    """
    frames = analysis.stacks[site.stack].frames
    own = own_frame(frames, analysis.modules)
    if own is None or not own.python:
        return None
    inner = takewhile(lambda frame: frame is not own, frames)
    called = [frame for frame in inner if frame.python and _INSTALLED.search(frame.file)]
    if not called:
        return None
    outermost = next((frame for frame in reversed(called) if "<locals>" not in frame.function), None)
    function = called[-1].function.rpartition(".")[2] if outermost is None else outermost.function
    package = python_package((outermost or called[-1]).file)
    return PackageCall(_PACKAGES[package].name if package in _PACKAGES else package, function)


def says_that_it_waits(function: str) -> bool:
    """Return whether a package's function is there to wait, by its name."""
    return _WAITS.search(function.rpartition(".")[2]) is not None


def says_that_it_copies(function: str) -> bool:
    """Return whether a package's function is there to copy, by its name."""
    return _MAKES_OR_COPIES.search(function.rpartition(".")[2]) is not None


def in_their_words(frameworks: Iterable[Framework], step: Callable[[Framework], str]) -> list[str]:
    """Return what to do in each of the packages, once: `step` is the sentence of one."""
    each = {framework.name: framework for framework in frameworks}
    return [f"In {name or 'Python'}: {step(framework)}" for name, framework in each.items()]


def in_copy(analysis: Analysis, site: Site) -> bool:
    """Return whether a copy of a Python package makes a site's call: between it and the Python code, a function says
    so.
    """
    frames = analysis.stacks[site.stack].frames
    native = list(takewhile(lambda frame: not frame.python, frames))
    framework = framework_of_site(analysis, site)
    if framework is None or framework is PYTHON:
        return False
    return any(_copies(each.function, framework) for each in native[1:])


def _copies(function: str, framework: Framework) -> bool:
    """Return whether a compiled function of a package copies, by its name."""
    name = function.partition("(")[0].replace("::", ".").rpartition(".")[2]
    return "copy" in function.lower() or name in framework.fetching
