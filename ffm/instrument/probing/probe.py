"""A small program that blocks on the GPU on demand: `python -m ffm.instrument.probing.probe LIBRARY`.

`ffm.instrument.probing.wait_search` runs it to examine the stacks of its blocked threads. It calls the driver through
`ctypes`, so that neither a compiler nor another package is needed.

Reads commands from standard input and answers each on standard output, one JSON object a line:

    {"do": "context", "flags": N}  makes a new context that waits as the flags say    -> {"calls": [NAME, ...]}
    {"do": "block", "call": NAME}  keeps the GPU busy and calls NAME in a new thread  -> {"thread": ID}
    {"do": "release"}              lets the GPU go on and waits for that thread       -> {"blocked": BOOL}
    {"do": "launch"}               makes calls that must not wait on a busy GPU       -> {"thread": ID}
    {"do": "quit"}

The first line it writes is {"base": ADDRESS, "path": FILE, "occupied_by": HOW, "calls": [NAME, ...], "contexts": BOOL}:
which calls it can make, and whether it can create further contexts. A failure is {"error": SENTENCE}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from ffm.instrument.probing.occupation import HostFunctionOccupation, occupation_of
from ffm.instrument.probing.probe_driver import Driver, ProbeError, loaded_at, traceable_by_anyone

PATIENCE = 10.0
"""Seconds that a released call may take to return."""
BYTES = 4096

BLOCKING_SYNC = 4
"""`CU_CTX_SCHED_BLOCKING_SYNC`; events have a flag of the same meaning, 1."""


class Surroundings:
    """A context with memory, an event and a stream that can be kept busy; current in the thread that created it."""

    def __init__(self, driver: Driver, context: ctypes.c_void_p, flags: int) -> None:
        self._driver = driver
        self.context = context
        driver("set_context", context)
        self.stream, self.event = ctypes.c_void_p(), ctypes.c_void_p()
        # Without the non-blocking flag, calls on the default stream wait for this one.
        driver("create_stream", ctypes.byref(self.stream), ctypes.c_uint(0))
        driver("create_event", ctypes.byref(self.event), ctypes.c_uint(1 if flags & BLOCKING_SYNC else 0))
        self.device, self.spare = ctypes.c_uint64(), ctypes.c_uint64()
        self.pinned, self.spare_pinned = ctypes.c_void_p(), ctypes.c_void_p()
        self.pageable = ctypes.create_string_buffer(BYTES)
        driver("allocate", ctypes.byref(self.device), ctypes.c_size_t(BYTES))
        driver("allocate_pinned", ctypes.byref(self.pinned), ctypes.c_size_t(BYTES))
        self.occupation = occupation_of(driver, self.stream)

    def calls(self) -> dict[str, tuple[Any, ...]]:
        """Return the public calls that may wait for the busy stream: exported names and arguments."""
        size = ctypes.c_size_t(BYTES)
        calls: dict[str, tuple[Any, ...]] = {
            "synchronize_context": (),
            "synchronize_stream": (self.stream,),
            "synchronize_event": (self.event,),
            "download": (self.pageable, self.device, size),
            "free": (self.spare,),
            "download_later": (self.pageable, self.device, size, self.stream),
            "upload": (self.device, self.pageable, size),
            "free_pinned": (self.spare_pinned,),
        }
        has, name = self._driver.has, self._driver.name
        return {name(purpose): arguments for purpose, arguments in calls.items() if has(purpose)}

    def prepare(self, call: str) -> None:
        """Create what the call `call` frees, before the GPU is busy."""
        size = ctypes.c_size_t(BYTES)
        if call == self._driver.name("free"):
            self._driver("allocate", ctypes.byref(self.spare), size)
        elif call == self._driver.name("free_pinned"):
            self._driver("allocate_pinned", ctypes.byref(self.spare_pinned), size)


class Probe:
    """Makes public calls wait, each in a separate thread."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._gpu = ctypes.c_int()
        context = ctypes.c_void_p()
        driver("initialise", ctypes.c_uint(0))
        driver("device", ctypes.byref(self._gpu), ctypes.c_int(0))
        driver("retain_context", ctypes.byref(context), self._gpu)
        self.surroundings = Surroundings(driver, context, 0)
        self._thread: threading.Thread | None = None
        self._failure: str | None = None

    def enter_context(self, flags: int) -> None:
        """Continue in a new context with `flags` (`CU_CTX_SCHED_…`), current in this thread."""
        context = ctypes.c_void_p()
        self.driver("create_context", ctypes.byref(context), ctypes.c_uint(flags), self._gpu)
        self.surroundings = Surroundings(self.driver, context, flags)

    def block(self, call: str) -> int:
        """Keep the GPU busy and make the public call `call` in a new thread; return the thread's id."""
        calls = self.surroundings.calls()
        if call not in calls:
            raise ProbeError(f"the probe cannot make the call {call}")
        self.surroundings.prepare(call)
        self.surroundings.occupation.occupy()
        self.driver("record_event", self.surroundings.event, self.surroundings.stream)
        return self._start(lambda: self.driver(call, *calls[call]))

    def launch(self) -> int:
        """Keep the GPU busy and enqueue work in a new thread; return its id once it has finished.

        Raises `ProbeError` if one of the calls waits.
        """
        self.surroundings.occupation.occupy()
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
        """Let the GPU continue and wait for the blocked thread; return whether it was still blocked before."""
        thread = self._thread
        if thread is None:
            raise ProbeError("there is no blocked call to release")
        blocked = thread.is_alive()
        self.surroundings.occupation.release()
        thread.join(PATIENCE)
        if thread.is_alive():
            raise ProbeError(f"a released call did not return within {PATIENCE:.0f} s")
        self.driver("synchronize_context")
        self._thread = None
        if self._failure is not None:
            raise ProbeError(self._failure)
        return blocked

    def _enqueue(self) -> None:
        here = self.surroundings
        size = ctypes.c_size_t(BYTES)
        self.driver("upload_later", here.device, here.pinned, size, here.stream)
        self.driver("set_bytes_later", here.device, ctypes.c_ubyte(1), size, here.stream)
        self.driver("record_event", here.event, here.stream)
        if isinstance(here.occupation, HostFunctionOccupation):
            # `free(NULL)` does nothing.
            nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
            self.driver("launch_host_function", here.stream, nothing, None)
        else:
            # Released together with the round before it, like all later ones.
            here.occupation.occupy()

    def _start(self, work: Callable[[], None]) -> int:
        started = threading.Event()
        self._failure = None

        def run() -> None:
            try:
                self.driver("set_context", self.surroundings.context)
                started.set()
                work()
            except ProbeError as error:
                self._failure = str(error)
                started.set()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        started.wait()
        return self._thread.native_id or 0


def _answer(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def serve(path: str) -> None:
    """Load the driver at `path` and execute the commands from standard input until it ends."""
    driver = Driver(path)
    base, file = loaded_at(driver.address("initialise")) if driver.has("initialise") else (0, path)
    probe = Probe(driver)
    _answer(
        base=base,
        path=file,
        occupied_by=probe.surroundings.occupation.name,
        calls=list(probe.surroundings.calls()),
        contexts=driver.has("create_context"),
    )
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "context":
            probe.enter_context(command["flags"])
            _answer(calls=list(probe.surroundings.calls()))
        elif command["do"] == "block":
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
        print("usage: python -m ffm.instrument.probing.probe LIBRARY", file=sys.stderr)
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
