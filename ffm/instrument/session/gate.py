"""The runner's side of the gate, at which every process of the program waits until it is instrumented.

See `native/preload/gate.c` for the program's side.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ffm.instrument.library import native_library

HELLO = struct.Struct("<II")
STARTED, FORKED, CUT_OFF, NO_DRIVER = 0, 1, 2, 3
"""Why a process came to the gate; `gate.c` has the same numbers. One that cannot load a driver comes to be known."""

PREFIX, NAME = "ffm-", "gate"

WITHOUT_DRIVER = ("bash",)
"""Programs that can load libraries, but no driver: bash loads only its own commands (`enable -f`). It forks for each
subshell, so a script can have dozens of such processes.
"""

LONGEST = 107
"""Bytes that the path of a socket may have (unix(7))."""

PATIENCE = 20.0
"""Seconds that processes still being instrumented get when the run is over."""


class Gate:
    """Listens for arriving processes; calls `instrument(process_id, reason)` for each, then releases it.

    `instrument` runs on a separate thread for each process. The process is released even if it raises.
    """

    def __init__(self, instrument: Callable[[int, int], None], folder: Path | None = None) -> None:
        """Prepare a gate in a folder, that of temporary files if none is given; or in /tmp if that is too deep."""
        self._instrument = instrument
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=_reachable(folder or Path(tempfile.gettempdir())))
        self.path = Path(self._folder.name) / NAME
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lock = threading.Lock()
        self._handles: dict[int, int] = {}  # a process by its number, as a pidfd
        self._ending = self._closed = False
        self._handlers: list[threading.Thread] = []

    def __enter__(self) -> Gate:
        self._socket.bind(str(self.path))
        self._socket.listen(64)
        threading.Thread(target=self._serve, name="ffm-gate", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.end_all()
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; closing does not
        self._socket.close()
        self._folder.cleanup()
        with self._lock:
            self._closed = True
            handlers = self._handlers
        # Shutting Frida down while it attaches, which can happen at the end of a run, can crash it.
        end = time.monotonic() + PATIENCE
        for handler in handlers:
            handler.join(max(0.0, end - time.monotonic()))
        with self._lock:
            for handle in self._handles.values():
                os.close(handle)
            self._handles.clear()

    def environment(
        self, base: dict[str, str], preloaded: tuple[str, ...] = (), *, tied: bool = True
    ) -> dict[str, str]:
        """Return the environment that leads a program to the gate and preloads more of our libraries.

        A program that is `tied` is killed when this process ends before it.
        """
        libraries = [str(native_library(name)) for name in ("libffm_gate.so", *preloaded)]
        earlier = base.get("LD_PRELOAD")
        return {
            **base,
            "LD_PRELOAD": ":".join([*libraries, earlier] if earlier else libraries),
            "FFM_GATE": str(self.path),
            "FFM_PRELOAD": ":".join(libraries),
            **({"FFM_RUNNER": str(os.getpid())} if tied else {}),
        }

    def alive(self) -> set[int]:
        """Return the processes that came to the gate and have not ended."""
        with self._lock:
            self._forget_ended()
            return set(self._handles)

    def ends(self, process_id: int, *, within_s: float) -> bool:
        """Return whether a process that came to the gate has ended, or does so within some seconds."""
        with self._lock:
            if process_id not in self._handles:
                return True
            handle = os.dup(self._handles[process_id])
        try:
            return _ended(handle, within_s)
        finally:
            os.close(handle)

    def ask_to_end(self, group: int) -> None:
        """Send SIGTERM to every process that came to the gate and is not in a process group, which has got it."""
        with self._lock:
            for process_id, handle in self._handles.items():
                with contextlib.suppress(ProcessLookupError):
                    if os.getpgid(process_id) != group:
                        signal.pidfd_send_signal(handle, signal.SIGTERM)

    def end_all(self) -> None:
        """Kill every process that came to the gate, and every one that still arrives."""
        with self._lock:
            self._ending = True
            for handle in self._handles.values():
                _kill(handle)

    def _serve(self) -> None:
        while True:
            try:
                arrival, _ = self._socket.accept()
            except OSError:
                return
            handler = threading.Thread(target=self._handle, args=(arrival,), daemon=True)
            with self._lock:
                self._handlers = [other for other in self._handlers if other.is_alive()] + [handler]
                handler.start()

    def _handle(self, arrival: socket.socket) -> None:
        with arrival:
            hello = arrival.recv(HELLO.size, socket.MSG_WAITALL)
            if len(hello) < HELLO.size:
                return
            process_id, reason = HELLO.unpack(hello)
            if not self._let_in(process_id):
                return
            try:
                self._instrument(process_id, reason)
            finally:
                with contextlib.suppress(OSError):  # it may have been killed while it waited
                    arrival.send(b"g")

    def _let_in(self, process_id: int) -> bool:
        """Register a process that waits here, unless the run is over; kill it if all are to end."""
        try:
            handle = os.pidfd_open(process_id)
        except OSError:  # it was killed while it waited
            return False
        with self._lock:
            self._forget_ended()
            if self._ending:
                _kill(handle)
            if self._ending or self._closed:
                os.close(handle)
                return False
            earlier = self._handles.pop(process_id, None)  # it has replaced itself by exec
            if earlier is not None:
                os.close(earlier)
            self._handles[process_id] = handle
            return True

    def _forget_ended(self) -> None:
        for process_id, handle in list(self._handles.items()):
            if _ended(handle):
                os.close(self._handles.pop(process_id))


def loads_no_driver(process_id: int) -> bool:
    """Return whether a process runs a program that loads no driver, although it could load libraries."""
    with contextlib.suppress(OSError):  # it was killed while it waited
        return Path(f"/proc/{process_id}/exe").readlink().name in WITHOUT_DRIVER
    return False


def _ended(handle: int, within_s: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _kill(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _reachable(folder: Path) -> Path:
    """Return the folder, or /tmp if the path of a socket below it would be too long."""
    random = 8  # letters that tempfile adds to a prefix
    bytes_ = len(os.fsencode(folder)) + 1 + len(PREFIX) + random + 1 + len(NAME)
    return folder if bytes_ <= LONGEST else Path("/tmp")
