"""What ffm's collector relies on, tested on a driver: `python benchmarks/gpu/facts.py LIBRARY [FACT]`.

Each fact is tested in a separate process, because some end theirs if they do not hold. Prints one line of JSON for
each, [fact, [whether it is as the collector needs it or null, what was observed]]; with FACT, only the answer.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from waiting import BYTES, Measured

from ffm.instrument.probing.probe_driver import Driver

SECONDS = 20.0
PAGE = mmap.PAGESIZE
PROT_NONE, PROT_ALL = 0, mmap.PROT_READ | mmap.PROT_WRITE

CUDA_ERROR_NOT_INITIALIZED = 3

Answer = tuple[bool | None, str]

_libc = ctypes.CDLL(None, use_errno=True)


def protect(address: int, size: int, protection: int) -> None:
    """Change the protection of the pages that hold `size` bytes. Raises `OSError`."""
    before = address % PAGE  # the driver's pinned blocks need not start on a page of their own
    address, size = address - before, size + before
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(protection)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mprotect: {os.strerror(code)}")


def _written_while_protected(gpu: Measured, address: int) -> Answer:
    """Let the GPU write into memory that the CPU may not touch, and check whether the bytes arrived."""
    protect(address, BYTES, PROT_NONE)
    gpu.driver("cuMemcpyAsync", ctypes.c_uint64(address), gpu.device, gpu.size, gpu.here.stream)
    gpu.driver("cuStreamSynchronize", gpu.here.stream)
    protect(address, BYTES, PROT_ALL)
    right = ctypes.string_at(address, BYTES) == b"\7" * BYTES
    return right, "the GPU writes it while its pages are protected" if right else "the bytes did not arrive"


def _filled(gpu: Measured) -> None:
    gpu.driver("cuMemsetD8_v2", gpu.device, ctypes.c_ubyte(7), gpu.size)
    gpu.driver("cuCtxSynchronize")


def pinned(gpu: Measured) -> Answer:
    """Page-locked memory can be watched by page while the GPU writes it."""
    _filled(gpu)
    return _written_while_protected(gpu, gpu.pinned.value or 0)


def registered(gpu: Measured) -> Answer:
    """Registered memory can, too."""
    _filled(gpu)
    return _written_while_protected(gpu, gpu.registered_memory().value or 0)


def managed(gpu: Measured) -> Answer:
    """Managed memory can, too."""
    _filled(gpu)
    return _written_while_protected(gpu, gpu.managed_memory().value)


def managed_in_kernel_order(gpu: Measured) -> Answer:
    """The CPU has touched managed memory before it is protected, so the GPU must fetch the pages."""
    address = gpu.managed_memory().value
    ctypes.memset(address, 1, BYTES)
    protect(address, BYTES, PROT_NONE)
    gpu.driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(9), gpu.size, gpu.here.stream)
    gpu.driver("cuStreamSynchronize", gpu.here.stream)
    protect(address, BYTES, PROT_ALL)
    right = ctypes.string_at(address, BYTES) == b"\x09" * BYTES
    return right, "pages move to the GPU while they are protected" if right else "the bytes did not arrive"


def mappings(gpu: Measured) -> Answer:
    """Protecting single pages splits mappings; a process may have 65,530 of them."""
    said = []
    for name, address in (("pinned", gpu.pinned.value or 0), ("managed", gpu.managed_memory().value)):
        ctypes.memset(address, 1, BYTES)
        before = len(Path("/proc/self/maps").read_text().splitlines())
        for place in range(0, BYTES, 2 * PAGE):
            protect(address + place, PAGE, PROT_NONE)
            protect(address + place, PAGE, PROT_ALL)
        after = len(Path("/proc/self/maps").read_text().splitlines())
        said.append(f"{name}: {_mapping(address)}, {after - before} more after {BYTES // PAGE // 2} pages")
    return None, "; ".join(said)


def _mapping(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            words = line.split(maxsplit=5)
            return f"{words[1]} {words[5] if len(words) > 5 else 'anonymous'}"
    return "not mapped"


def signals(gpu: Measured) -> Answer:
    """The driver leaves SIGSEGV and SIGTRAP to the program."""
    del gpu
    status = Path("/proc/self/status").read_text().splitlines()
    caught = int(next(row for row in status if row.startswith("SigCgt")).split()[1], 16)
    names = [name.name for name in signal.Signals if caught >> (name - 1) & 1]
    wrong = {"SIGSEGV", "SIGTRAP"} & set(names)
    return not wrong, f"caught in a process with the driver: {', '.join(names) or 'none'}"


def threads(gpu: Measured) -> Answer:
    """The driver's own threads."""
    del gpu
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return None, f"{len(names)} threads: {', '.join(sorted(names))}"


def fork(gpu: Measured) -> Answer:
    """A child forked after cuInit cannot use the driver."""
    child = os.fork()
    if child == 0:
        os._exit(min(gpu.driver.result("cuCtxSynchronize"), 255))
    _, status = os.waitpid(child, 0)
    result = os.waitstatus_to_exitcode(status)
    return result == CUDA_ERROR_NOT_INITIALIZED, f"cuCtxSynchronize answers {result} in a forked child"


def parameters(gpu: Measured) -> Answer:
    """The driver reports where a kernel's parameters are, which corrections of launches need."""
    function = getattr(gpu.here.occupation, "function", None)
    if function is None or not gpu.driver.has("cuFuncGetParamInfo"):
        return None, "no kernel of a real GPU, or no cuFuncGetParamInfo (since CUDA 12.4)"
    found = []
    for index in range(2):
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        gpu.driver("cuFuncGetParamInfo", function, ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size))
        found.append((offset.value, size.value))
    return found == [(0, 8), (8, 4)], f"(offset, size) of the parameters: {found}"


FACTS: dict[str, Callable[[Measured], Answer]] = {
    "protected pinned memory": pinned,
    "protected registered memory": registered,
    "protected managed memory": managed,
    "managed memory that moves": managed_in_kernel_order,
    "mappings": mappings,
    "signals": signals,
    "threads": threads,
    "fork": fork,
    "kernel parameters": parameters,
}


def ask(library: str, fact: str) -> Answer:
    """Test a fact in a separate process."""
    command = [sys.executable, __file__, library, fact]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False, f"no answer within {SECONDS:.0f} s"
    try:
        good, says = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines()
        return False, f"its process ended with {done.returncode}: {said[-1] if said else 'it said nothing'}"
    return good, says


def main(arguments: list[str]) -> int:
    """Test all facts, or one; return the exit status."""
    library = arguments[0] if arguments else "libcuda.so.1"
    if len(arguments) > 1:
        print(json.dumps(FACTS[arguments[1]](Measured(Driver(library)))))
        return 0
    for fact in FACTS:
        print(json.dumps([fact, ask(library, fact)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
