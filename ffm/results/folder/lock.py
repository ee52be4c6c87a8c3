"""Allows one measurement at a time in a folder. Others can read who holds the lock, and it is free as soon as the
holder is gone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ffm.errors import DocumentError
from ffm.whole_file import PRIVATE, remove_leftovers

LOCK_FILE = ".lock"
"""In a results folder. The file stays; the lock is on the open file, so that the kernel releases it with its holder."""

LINGERING = 5.0
"""Seconds in which a holder that took the lock writes who it is. One that was killed while it started another process
leaves the lock to that for a moment, until it executes its program."""

_NOT_SUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of file systems without locks, such as Lustre when mounted without `flock`."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lock."""

    process_id: int
    host: str
    since: str
    """ISO 8601, UTC."""
    doing: str
    """`ffm stage memory`"""

    def __str__(self) -> str:
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"`{self.doing}` (process {self.process_id}{where}, since {self.since})"

    @property
    def is_this_process(self) -> bool:
        """Whether it is the process that asks."""
        return self.process_id == os.getpid() and self.host == socket.gethostname()

    def may_live(self) -> bool:
        """Return whether the process may exist; for another host that is unknown."""
        return self.host != socket.gethostname() or Path(f"/proc/{self.process_id}").exists()


class InUseError(DocumentError):
    """Another process is writing there."""


@contextmanager
def exclusive(path: Path, what: str, doing: str) -> Iterator[None]:
    """Hold the lock file `path`, which is created if necessary in an existing folder; `what` names what it protects.

    On a file system without locks, only the file's content says who holds it; two processes that start at the same
    instant are not distinguished there.

    Raises:
        InUseError: Another process holds it.
        OSError: The lock file cannot be opened.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    try:
        _take(file, path, what)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        _write(file, path, Holder(process_id=os.getpid(), host=socket.gethostname(), since=now, doing=doing))
        try:
            yield
        finally:
            os.ftruncate(file, 0)
    finally:
        os.close(file)


@contextmanager
def writing_to(folder: Path, doing: str) -> Iterator[None]:
    """Use an existing results folder exclusively; leftovers of killed writers are removed.

    Raises:
        InUseError: Another process writes there.
        OSError: The folder cannot be written.
    """
    with exclusive(folder / LOCK_FILE, f"The results folder {folder}", doing):
        remove_leftovers(folder)
        yield


def holder(path: Path) -> Holder | None:
    """Return who seems to hold a lock file, without touching the lock; None if nobody does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = _read(file)
    finally:
        os.close(file)
    return found if found is not None and found.may_live() else None


def _take(file: int, path: Path, what: str) -> None:
    wait = "Wait until it has ended, or choose another folder with --results."
    end = time.monotonic() + LINGERING
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            found = _read(file)
            if time.monotonic() > end or (found is not None and found.may_live()):
                raise InUseError(f"{what} is in use by {found or 'another process'}. {wait}") from None
            time.sleep(0.02)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            found = _read(file)
            if found is not None and found.may_live():
                raise InUseError(f"{what} is in use by {found}. {wait} If it was killed, remove {path}.") from None
            return


def _write(file: int, path: Path, found: Holder) -> None:
    os.ftruncate(file, 0)
    try:
        os.pwrite(file, msgspec.json.encode(found) + b"\n", 0)
    except OSError as error:  # by a descriptor: it names no file
        raise OSError(error.errno, error.strerror, str(path)) from error


def _read(file: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None
