"""The runner's side of the gate, at which every process of the program waits until it is instrumented.

See `collector/gate.c` for the program's side.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ffm.instrument.library import native_library

HELLO = struct.Struct("<II")
STARTED, FORKED = 0, 1
"""What brought a process to the gate; `gate.c` has the same numbers."""


class Gate:
    """Listens for arriving processes; calls `instrument(process_id, reason)` for each, then lets it go.

    `instrument` runs on a thread of its own for each process. The process is let go also when it raises.
    """

    def __init__(self, instrument: Callable[[int, int], None]) -> None:
        self._instrument = instrument
        # A socket's path may have 107 bytes: results folders can lie deeper.
        self._folder = tempfile.TemporaryDirectory(prefix="ffm-")
        self.path = Path(self._folder.name) / "gate"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

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
        self._socket.close()
        self._folder.cleanup()

    def environment(self, base: dict[str, str], preloaded: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the environment in which a program meets the gate, and loads more of our libraries before its own."""
        libraries = [str(native_library(name)) for name in ("libffm_gate.so", *preloaded)]
        earlier = base.get("LD_PRELOAD")
        return {
            **base,
            "LD_PRELOAD": ":".join([*libraries, earlier] if earlier else libraries),
            "FFM_GATE": str(self.path),
        }

    def _serve(self) -> None:
        while True:
            try:
                arrival, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(arrival,), daemon=True).start()

    def _handle(self, arrival: socket.socket) -> None:
        with arrival:
            hello = arrival.recv(HELLO.size, socket.MSG_WAITALL)
            if len(hello) < HELLO.size:
                return
            process_id, reason = HELLO.unpack(hello)
            try:
                self._instrument(process_id, reason)
            finally:
                with contextlib.suppress(OSError):  # it may have been killed while it waited
                    arrival.send(b"g")
