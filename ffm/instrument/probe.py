"""A small program that blocks on the GPU on demand: `python -m ffm.instrument.probe LIBRARY`.

`ffm.instrument.wait_function` runs it, to look at the stacks of its blocked threads. The GPU is kept busy
without a kernel, so that no compiler and no machine code for a certain GPU is needed: a host function in
the stream (`cuLaunchHostFunc`) waits for a semaphore, or, where the driver has no host functions, the
stream waits for a value in memory (`cuStreamWaitValue32`).

Reads commands from standard input and answers each on standard output, one JSON object a line:

    {"do": "block", "call": NAME}  keeps the GPU busy and calls NAME in a new thread  -> {"thread": ID}
    {"do": "release"}              lets the GPU go on and waits for that thread       -> {"blocked": BOOL}
    {"do": "launch"}               makes calls that must not wait on a busy GPU       -> {"thread": ID}
    {"do": "quit"}

The first line it writes is {"base": ADDRESS, "path": FILE, "occupied_by": HOW}. A failure is {"error":
SENTENCE}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 10.0
"""Seconds that a released call may take to return."""
BYTES = 4096

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1).value
_STREAM_WAIT_VALUE_GEQ = 0
_HOST_ALLOCATION_MAPPED = 2


class ProbeError(Exception):
    """The driver refused something that the probe needs."""


class Driver:
    """The driver's functions, called by name."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise ProbeError(f"the driver cannot be loaded: {error}") from error

    def has(self, name: str) -> bool:
        """Return whether the driver exports `name`."""
        return hasattr(self._library, name)

    def address(self, name: str) -> int:
        """Return the address of the exported function `name`."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call `name`. Raises `ProbeError` when the driver does not export it or answers an error."""
        result = self.result(name, *arguments)
        if result != 0:
            raise ProbeError(f"{name} returned the error {result}{self.meaning(result)}")

    def result(self, name: str, *arguments: Any) -> int:
        """Call `name`; return its result, a `CUresult`. Raises `ProbeError` when the driver does not export it."""
        if not self.has(name):
            raise ProbeError(f"the driver does not export {name}")
        return int(getattr(self._library, name)(*arguments))

    def meaning(self, result: int) -> str:
        """Return the name of an error in brackets, empty where the driver does not tell."""
        text = ctypes.c_char_p()
        if self.has("cuGetErrorName") and self._library.cuGetErrorName(result, ctypes.byref(text)) == 0:
            return f" ({(text.value or b'').decode()})"
        return ""


class HostFunctionOccupation:
    """Keeps a stream busy with a host function that waits for a semaphore."""

    name = "host_function"

    def __init__(self, driver: Driver, stream: ctypes.c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._libc = ctypes.CDLL(None)
        # A `sem_t` has 32 bytes on Linux x86-64.
        self._semaphore = ctypes.create_string_buffer(64)
        self._libc.sem_init(self._semaphore, 0, 0)

    def occupy(self) -> None:
        """Let the stream wait for `release`."""
        wait = ctypes.cast(self._libc.sem_wait, ctypes.c_void_p)
        self._driver("cuLaunchHostFunc", self._stream, wait, ctypes.byref(self._semaphore))

    def release(self) -> None:
        """Let the stream go on."""
        self._libc.sem_post(self._semaphore)


class WaitValueOccupation:
    """Keeps a stream busy with a wait for a value in pinned host memory."""

    name = "stream_wait_value"

    def __init__(self, driver: Driver, stream: ctypes.c_void_p) -> None:
        self._driver, self._stream = driver, stream
        self._rounds = 0
        memory = ctypes.c_void_p()
        driver("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(4), ctypes.c_uint(_HOST_ALLOCATION_MAPPED))
        self._value = ctypes.c_uint32.from_address(memory.value or 0)
        self._value.value = 0
        self._address = ctypes.c_uint64()
        driver("cuMemHostGetDevicePointer_v2", ctypes.byref(self._address), memory, ctypes.c_uint(0))

    def occupy(self) -> None:
        """Let the stream wait for `release`."""
        self._rounds += 1
        name = next(
            (name for name in ("cuStreamWaitValue32_v2", "cuStreamWaitValue32") if self._driver.has(name)),
            "cuStreamWaitValue32",
        )
        rounds, flags = ctypes.c_uint32(self._rounds), ctypes.c_uint(_STREAM_WAIT_VALUE_GEQ)
        self._driver(name, self._stream, self._address, rounds, flags)

    def release(self) -> None:
        """Let the stream go on."""
        self._value.value = self._rounds


class Probe:
    """A context with a stream that can be kept busy, and the public calls that wait for it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._context = ctypes.c_void_p()
        device = ctypes.c_int()
        driver("cuInit", ctypes.c_uint(0))
        driver("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        driver("cuCtxSetCurrent", self._context)
        self._stream, self._event = ctypes.c_void_p(), ctypes.c_void_p()
        # Without the non-blocking flag, calls on the default stream wait for this one.
        driver("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(0))
        driver("cuEventCreate", ctypes.byref(self._event), ctypes.c_uint(0))
        self._device, self._spare = ctypes.c_uint64(), ctypes.c_uint64()
        self._pinned = ctypes.c_void_p()
        self._pageable = ctypes.create_string_buffer(BYTES)
        driver("cuMemAlloc_v2", ctypes.byref(self._device), ctypes.c_size_t(BYTES))
        driver("cuMemAllocHost_v2", ctypes.byref(self._pinned), ctypes.c_size_t(BYTES))
        self.occupation = self._occupation()
        self._thread: threading.Thread | None = None
        self._failure: str | None = None

    def _occupation(self) -> HostFunctionOccupation | WaitValueOccupation:
        kind = HostFunctionOccupation if self.driver.has("cuLaunchHostFunc") else WaitValueOccupation
        occupation = kind(self.driver, self._stream)
        try:
            occupation.occupy()
        except ProbeError:
            if kind is WaitValueOccupation:
                raise
            occupation = WaitValueOccupation(self.driver, self._stream)
            occupation.occupy()
        # One round with nobody waiting: what a first use makes the driver do is done then.
        occupation.release()
        self.driver("cuStreamSynchronize", self._stream)
        return occupation

    def block(self, call: str) -> int:
        """Keep the GPU busy and make the public call `call` in a new thread; return the thread's id."""
        size = ctypes.c_size_t(BYTES)
        calls: dict[str, tuple[Any, ...]] = {
            "cuCtxSynchronize": (),
            "cuStreamSynchronize": (self._stream,),
            "cuEventSynchronize": (self._event,),
            "cuMemcpyDtoH_v2": (self._pageable, self._device, size),
            "cuMemFree_v2": (self._spare,),
        }
        if call not in calls:
            raise ProbeError(f"the probe cannot make the call {call}")
        if call == "cuMemFree_v2":
            self.driver("cuMemAlloc_v2", ctypes.byref(self._spare), size)
        self.occupation.occupy()
        self.driver("cuEventRecord", self._event, self._stream)
        return self._start(lambda: self.driver(call, *calls[call]))

    def launch(self) -> int:
        """Keep the GPU busy and enqueue work in a new thread; return its id when it has returned.

        Raises `ProbeError` when one of the calls waits.
        """
        self.occupation.occupy()
        identifier = self._start(self._enqueue)
        thread = self._thread
        assert thread is not None
        thread.join(PATIENCE / 2)
        waited = thread.is_alive()
        self.release()
        if waited:
            raise ProbeError("a call that only enqueues work waited for the GPU")
        return identifier

    def release(self) -> bool:
        """Let the GPU go on, wait for the blocked thread; return whether it was still blocked before."""
        thread = self._thread
        if thread is None:
            raise ProbeError("there is no blocked call to release")
        blocked = thread.is_alive()
        self.occupation.release()
        thread.join(PATIENCE)
        if thread.is_alive():
            raise ProbeError(f"a released call did not return within {PATIENCE:.0f} s")
        self.driver("cuCtxSynchronize")
        self._thread = None
        if self._failure is not None:
            raise ProbeError(self._failure)
        return blocked

    def _enqueue(self) -> None:
        size = ctypes.c_size_t(BYTES)
        self.driver("cuMemcpyHtoDAsync_v2", self._device, self._pinned, size, self._stream)
        self.driver("cuMemsetD8Async", self._device, ctypes.c_ubyte(1), size, self._stream)
        self.driver("cuEventRecord", self._event, self._stream)
        if isinstance(self.occupation, HostFunctionOccupation):
            # `free(NULL)` does nothing.
            nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
            self.driver("cuLaunchHostFunc", self._stream, nothing, None)

    def _start(self, work: Callable[[], None]) -> int:
        started = threading.Event()
        self._failure = None

        def run() -> None:
            try:
                self.driver("cuCtxSetCurrent", self._context)
                started.set()
                work()
            except ProbeError as error:
                self._failure = str(error)
                started.set()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        started.wait()
        return self._thread.native_id or 0


def loaded_at(address: int) -> tuple[int, str]:
    """Return the base address and the path of the module of this process that holds `address`."""
    rows = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    files: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if len(row) == 6:
            first, last = (int(part, 16) for part in row[0].split("-"))
            files.setdefault(row[5], []).append((first, last))
    for path, ranges in files.items():
        if any(first <= address < last for first, last in ranges):
            return min(first for first, _ in ranges), path
    raise ProbeError("the driver is not in the process's list of mapped files")


def traceable_by_anyone() -> None:
    """Let a process that is not our parent attach, where the Yama security module restricts that."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_PR_SET_PTRACER_ANY), 0, 0, 0)


def _answer(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def serve(path: str) -> None:
    """Load the driver at `path` and obey the commands on standard input until it ends."""
    driver = Driver(path)
    base, file = loaded_at(driver.address("cuInit")) if driver.has("cuInit") else (0, path)
    probe = Probe(driver)
    _answer(base=base, path=file, occupied_by=probe.occupation.name)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "block":
            _answer(thread=probe.block(command["call"]))
        elif command["do"] == "release":
            _answer(blocked=probe.release())
        elif command["do"] == "launch":
            _answer(thread=probe.launch())
        else:
            return


def main(arguments: list[str]) -> int:
    """Run the probe on the library named by the only argument; return the exit status."""
    if len(arguments) != 1:
        print("usage: python -m ffm.instrument.probe LIBRARY", file=sys.stderr)
        return 2
    traceable_by_anyone()
    try:
        serve(arguments[0])
    except ProbeError as error:
        _answer(error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
