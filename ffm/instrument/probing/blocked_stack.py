"""The stack of one thread of a child process, read while the thread is briefly stopped.

Uses `ptrace` directly because Frida's `Process.enumerateThreads` sometimes needs 15 s for its first answer. Source:
Linux manual pages ptrace(2), proc(5).
"""

from __future__ import annotations

import ctypes
import errno
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.ptrace import DETACH, GETREGS, INTERRUPT, SEIZE, ptrace

LARGEST_STACK = 1 << 16
"""Most bytes that are read, from the innermost frame outwards."""
_PAGE = 4096

_WALL = 0x40000000
_STOPPED = 0x7F

# `struct user_regs_struct` of x86-64, in words.
_REGISTERS = 27
_PROGRAM_COUNTER = 16
_STACK_POINTER = 19


@dataclass(frozen=True, slots=True)
class Stack:
    """Where a thread was, and the content of its stack."""

    program_counter: int
    words: NDArray[np.int64]
    """The stack's 8-byte words, innermost first: return addresses among other data and stale values."""


def read_stack(process: int, thread: int) -> Stack | None:
    """Return the stack of `thread` of the child `process`, or None if the thread has ended.

    Raises `PermissionError` if tracing is not allowed. Call this from one Python thread only, which becomes the tracer.
    """
    if not _trace(SEIZE, thread):
        return None
    try:
        if not _trace(INTERRUPT, thread) or not _stopped(thread):
            return None
        registers = (ctypes.c_uint64 * _REGISTERS)()
        if not _trace(GETREGS, thread, ctypes.addressof(registers)):
            return None
        words = _memory(process, registers[_STACK_POINTER])
        return Stack(registers[_PROGRAM_COUNTER], words)
    finally:
        _trace(DETACH, thread)


def _trace(request: int, thread: int, data: int | None = None) -> bool:
    """Make a request; return whether the thread still exists. Raises `PermissionError`."""
    error = ptrace(request, thread, data)
    if error not in (0, errno.ESRCH):
        raise OSError(error, os.strerror(error))
    return error == 0


def _stopped(thread: int) -> bool:
    """Wait until the thread has stopped; return False if it has ended instead."""
    try:
        _, status = os.waitpid(thread, _WALL)
    except ChildProcessError:
        return False
    return status & 0xFF == _STOPPED


def _memory(process: int, start: int) -> NDArray[np.int64]:
    """Return the words from `start` to the end of the stack, or as many as may be read."""
    parts: list[bytes] = []
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        place = start
        while place < start + LARGEST_STACK:
            try:
                part = os.pread(memory.fileno(), _PAGE - place % _PAGE, place)
            except OSError:
                break
            parts.append(part)
            place += len(part)
    content = b"".join(parts)
    return np.frombuffer(content[: len(content) // 8 * 8], dtype="<i8")
