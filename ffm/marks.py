"""Marks that a Python program leaves for its measurement: `with ffm.iteration("train"):`.

Only the standard library is used, because the program pays for what it imports. A measured process finds the folder for
its marks in the environment. `CLOCK_MONOTONIC` is also the clock of recordings.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

VARIABLE: Final = "FFM_ITERATIONS"
"""The folder for marks, in the environment of measured programs."""

COLLECTOR: Final = "FFM_COLLECTOR"
"""In the environment of programs of which some iterations are measured: the library in the process that is told where
iterations begin and end.
"""

PREFIX: Final = "iterations-"
"""Of the files with marks; the process's number follows. A line has thread, begin, end (nanoseconds) and name."""

RANGES_PREFIX: Final = "ranges-"
"""Likewise, of the files that `instrument/native/ranges` writes for programs that use NVTX; zeros may follow a line."""

_folder = os.environ.get(VARIABLE)


def _library() -> Callable[[bytes, bool], None] | None:
    """Return the library's function that is told; None if nobody wants to know, or it is not in this process."""
    path = os.environ.get(COLLECTOR)
    if path is None:
        return None
    import ctypes

    try:
        function = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY).ffm_collector_mark
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_char_p, ctypes.c_bool)
    function.restype = None
    return lambda name, begins: function(name, begins)


_tell = _library()


class _Nothing:
    """Marks nothing: nobody measures."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Iteration:
    """Writes a mark at its end."""

    def __init__(self, name: str) -> None:
        self._name = " ".join(name.split())

    def __enter__(self) -> None:
        if _tell is not None:
            _tell(self._name.encode(errors="replace"), True)
        self._begin = time.monotonic_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end = time.monotonic_ns()
        if _tell is not None:
            _tell(self._name.encode(errors="replace"), False)
        line = f"{threading.get_native_id()} {self._begin} {end} {self._name}\n"
        file = os.open(f"{_folder}/{PREFIX}{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line.encode(errors="replace"))
        finally:
            os.close(file)


_NOTHING = _Nothing()


def iteration(name: str) -> _Nothing | _Iteration:
    """Mark an iteration of a loop: a context manager, which does nothing unless ffm measures the program.

    `ffm check --iterations NAME` then reports the waits of each. Iterations of one name follow each other on a thread.
    """
    return _NOTHING if _folder is None else _Iteration(name)
