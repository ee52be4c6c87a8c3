"""Waiting for the program's end, and learning how it ended, also where Frida has taken its status."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

_INFO_BYTES = 64
_GET_INFO = 3 << 30 | _INFO_BYTES << 16 | 0xFF << 8 | 11
"""PIDFD_GET_INFO, `_IOWR(0xFF, 11, struct pidfd_info)`; source: Linux, include/uapi/linux/pidfd.h."""
_INFO_EXIT = 1 << 3
_MASK, _EXIT_CODE = struct.Struct("<Q"), struct.Struct("<i")
_EXIT_CODE_OFFSET = 60


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended. `status` is a wait status; CPU times in seconds; `timed_out` when we ended it."""

    status: int
    user_s: float
    system_s: float
    timed_out: bool


def await_end(
    program: subprocess.Popen[bytes],
    timeout_s: float | None,
    *,
    stop: int | None = None,
    end_others: Callable[[], None] = lambda: None,
) -> ProgramEnd:
    """Wait for the program; end it and all it started when the time is up, or when we are interrupted.

    So also when the descriptor `stop` becomes readable. `end_others` ends those of its processes that have left its
    process group.

    Frida traces the program from this very process while it attaches. Waiting for the child directly would take the
    stops that Frida waits for, hence the pidfd, which is readable only at the end.

    Raises:
        ChildProcessError: Frida took the program's status, and this kernel tells it only once (Linux before 6.15).
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    handle = os.pidfd_open(program.pid)
    timed_out = False
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if stop is not None:
            poll.register(stop, select.POLLIN)
        timed_out = not poll.poll(None if timeout_s is None else timeout_s * 1000)
    finally:
        try:
            if timed_out or not select.select([handle], [], [], 0)[0]:
                os.killpg(program.pid, signal.SIGKILL)
                end_others()
            select.select([handle], [], [])
            status = _take_status(program, handle, timed_out)
        finally:
            os.close(handle)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProgramEnd(status, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, timed_out)


def _take_status(program: subprocess.Popen[bytes], handle: int, timed_out: bool) -> int:
    """Take the wait status of a program that has ended."""
    try:
        _, status = os.waitpid(program.pid, 0)
    except ChildProcessError:
        known = status_of_taken(handle)
        if known is None and not timed_out:
            raise
        status = signal.SIGKILL if known is None else known
    program.returncode = os.waitstatus_to_exitcode(status)
    return status


def status_of_taken(handle: int) -> int | None:
    """The wait status of a process whose status somebody has taken, by its pidfd; None where the kernel is too old."""
    information = bytearray(_INFO_BYTES)
    _MASK.pack_into(information, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(handle, _GET_INFO, information)
    except OSError:
        return None
    if not _MASK.unpack_from(information, 0)[0] & _INFO_EXIT:
        return None
    return int(_EXIT_CODE.unpack_from(information, _EXIT_CODE_OFFSET)[0])
