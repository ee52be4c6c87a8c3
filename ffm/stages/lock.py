"""One measurement at a time in a folder: who has it can be read, and it is free as soon as the holder is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ffm.stages.errors import DocumentError
from ffm.whole_file import PRIVATE, remove_leftovers

LOCK_FILE = ".lock"
"""Of a results folder. It stays; what is locked is the open file, so that the kernel frees it with its holder."""

_NOT_SUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
"""What file systems answer that know no locks, as Lustre does where it is mounted without `flock`."""


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

    def may_live(self) -> bool:
        """Whether the process exists; of another host nobody knows."""
        return self.host != socket.gethostname() or Path(f"/proc/{self.process_id}").exists()


class InUseError(DocumentError):
    """Somebody else is writing there."""


@contextmanager
def exclusive(path: Path, what: str, doing: str) -> Iterator[None]:
    """Hold the lock file `path`, which is made if need be in a folder that exists; `what` names what it protects.

    On a file system that knows no locks the file's content alone says who holds it: two that begin in the same instant
    are not told apart there.

    Raises:
        InUseError: somebody holds it.
        OSError: the lock file cannot be opened.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    try:
        _take(file, path, what)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        _write(file, Holder(process_id=os.getpid(), host=socket.gethostname(), since=now, doing=doing))
        try:
            yield
        finally:
            os.ftruncate(file, 0)
    finally:
        os.close(file)


@contextmanager
def writing_to(folder: Path, doing: str) -> Iterator[None]:
    """Have a results folder, which exists, to oneself; what killed writers left in it is removed.

    Raises:
        InUseError: somebody else writes there.
        OSError: the folder cannot be written.
    """
    with exclusive(folder / LOCK_FILE, f"The results folder {folder}", doing):
        remove_leftovers(folder)
        yield


def holder(path: Path) -> Holder | None:
    """Return who seems to hold a lock file, without touching the lock; None where nobody does."""
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
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUseError(f"{what} is in use by {_read(file) or 'another process'}. {wait}") from None
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        found = _read(file)
        if found is not None and found.may_live():
            raise InUseError(f"{what} is in use by {found}. {wait} If it was killed, remove {path}.") from None


def _write(file: int, found: Holder) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, msgspec.json.encode(found) + b"\n", 0)


def _read(file: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None
