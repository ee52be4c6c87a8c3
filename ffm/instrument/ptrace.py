"""The system call that traces threads. Source: Linux manual page ptrace(2), linux/ptrace.h."""

from __future__ import annotations

import ctypes

GETREGS = 12
DETACH = 17
SEIZE = 0x4206
INTERRUPT = 0x4207

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def ptrace(request: int, thread: int, data: int | None = None) -> int:
    """Make a request about a thread; return 0, or the number of the error (`errno`)."""
    return 0 if _libc.ptrace(request, thread, None, data) == 0 else ctypes.get_errno()
