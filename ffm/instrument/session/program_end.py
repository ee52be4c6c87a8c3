"""Waits for the program's end and finds out how it ended, even if Frida has already collected its status."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_INFO_BYTES = 64
_GET_INFO = 3 << 30 | _INFO_BYTES << 16 | 0xFF << 8 | 11
"""PIDFD_GET_INFO, `_IOWR(0xFF, 11, struct pidfd_info)`; source: Linux, include/uapi/linux/pidfd.h."""
_INFO_EXIT = 1 << 3
_MASK, _EXIT_CODE = struct.Struct("<Q"), struct.Struct("<i")
_EXIT_CODE_OFFSET = 60


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended. `status` is a wait status; times are in seconds; `timed_out`: ffm stopped it."""

    status: int
    user_s: float
    system_s: float
    delayed_s: float | None
    """How long its main thread was ready to run but had no processor; None if the kernel does not tell."""
    timed_out: bool
    left: bool = False
    """It runs on, and has no status; its times are those of its first process."""


def await_end(
    program: subprocess.Popen[bytes],
    timeout_s: float | None,
    *,
    stop: int | None = None,
    end_others: Callable[[], None] = lambda: None,
    interrupt: Callable[[], bool] = lambda: False,
    leave: int | None = None,
) -> ProgramEnd:
    """Wait for the program; stop it and all it started when the time is up, or when ffm is interrupted.

    It is also stopped when the descriptor `stop` becomes readable. `end_others` stops those of its processes that have
    left its process group. If `leave` becomes readable first, the program is left alone.

    Frida traces the program from this very process while it attaches. Waiting for the child directly would consume the
    stops that Frida waits for. Hence the pidfd, which becomes readable only at the end.

    Raises:
        ChildProcessError: Frida collected the program's status, and this kernel reports it only once (Linux before
            6.15).
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    handle = os.pidfd_open(program.pid)
    first = [handle] if stop is None else [handle, stop]
    timed_out = left = False
    try:
        try:
            timed_out = not _readable(first if leave is None else [*first, leave], timeout_s)
        except KeyboardInterrupt:
            if not interrupt():
                raise
            _readable([handle] if leave is None else [handle, leave], None)
        left = _must_leave(leave, first)
    finally:
        try:
            if not left:
                status, delayed_s = _collect(program, handle, timed_out, end_others)
        finally:
            os.close(handle)
    if left:
        return _left(program)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user_s, system_s = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return ProgramEnd(status, user_s, system_s, delayed_s, timed_out)


def _collect(
    program: subprocess.Popen[bytes], handle: int, timed_out: bool, end_others: Callable[[], None]
) -> tuple[int, float | None]:
    """End the program if it has not ended, or in any case if the time was up; return its status, and its delay."""
    if timed_out or not select.select([handle], [], [], 0)[0]:
        os.killpg(program.pid, signal.SIGKILL)
        end_others()
    select.select([handle], [], [])
    delayed_s = _delayed_s(program.pid)
    return _take_status(program, handle, timed_out), delayed_s


def _must_leave(leave: int | None, first: list[int]) -> bool:
    """Return whether the program is to be left alone, and none of what comes first has happened."""
    if leave is None:
        return False
    return leave in select.select([leave, *first], [], [], 0)[0] and not select.select(first, [], [], 0)[0]


def _left(program: subprocess.Popen[bytes]) -> ProgramEnd:
    """Describe a program that runs on, and wait for it no longer: who waits for it then is the system's first process.

    Its times are the 14th and 15th numbers of `stat`, in ticks (proc(5)).
    """
    program.returncode = 0  # otherwise Python would look after it
    fields = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    user_s, system_s = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13])
    return ProgramEnd(0, user_s, system_s, _delayed_s(program.pid), timed_out=False, left=True)


def _delayed_s(process: int) -> float | None:
    """Return how long the main thread of a process that has ended waited for a processor.

    `schedstat` has three numbers: nanoseconds on a processor, nanoseconds ready for one, and time slices (Linux,
    Documentation/scheduler/sched-stats.rst). It is gone once the status of the process is collected, and is missing or
    all zero in kernels that do not count.
    """
    try:
        ran, waited, _slices = map(int, Path(f"/proc/{process}/schedstat").read_text().split())
    except (OSError, ValueError):
        return None
    return waited / 1e9 if ran else None


def _readable(descriptors: list[int], timeout_s: float | None) -> bool:
    """Wait until one can be read; return false when the time is up. Signals to this process are handled at once.

    The kernel may deliver a signal to any of Frida's threads, which interrupts no call of the main thread.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    with _arriving_signals() as arriving:
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            poll = select.poll()
            for descriptor in [*descriptors, *arriving]:
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(None if left is None else left * 1000)}
            if ready - set(arriving) or not ready:
                return bool(ready)
            os.read(arriving[0], 512)


@contextmanager
def _arriving_signals() -> Iterator[list[int]]:
    """Yield a descriptor that is readable once a signal handler was called; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield [read]
    finally:
        signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)


def _take_status(program: subprocess.Popen[bytes], handle: int, timed_out: bool) -> int:
    """Collect the wait status of a program that has ended."""
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
    """Return the wait status of a process whose status was already collected, by its pidfd; None on older kernels."""
    information = bytearray(_INFO_BYTES)
    _MASK.pack_into(information, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(handle, _GET_INFO, information)
    except OSError:
        return None
    if not _MASK.unpack_from(information, 0)[0] & _INFO_EXIT:
        return None
    return int(_EXIT_CODE.unpack_from(information, _EXIT_CODE_OFFSET)[0])
