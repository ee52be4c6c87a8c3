"""The user's secret, which distinguishes results that this user measured from those of others.

It is stored in the user's own state folder, created on the first measurement, and never leaves that folder. Without a
folder that belongs to this user alone, for example without a home, there is none; then no results count as the user's
own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

SECRET_FILE = "secret"
SECRET_BYTES = 32


def own_secret(*, make: bool = False) -> bytes | None:
    """Return the user's secret; None if there is none. With `make`, it is created if it is missing."""
    folder = Path(platformdirs.user_state_dir("ffm"))
    try:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(folder) as descriptor:
            _require_own(os.fstat(descriptor), stat.S_ISDIR, others=0o022)
            try:
                return _read(descriptor)
            except FileNotFoundError:
                return _made(descriptor) if make else None
    except OSError:
        return None


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(folder: int) -> bytes:
    descriptor = os.open(SECRET_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        _require_own(os.fstat(descriptor), stat.S_ISREG, others=0o077)
        secret = file.read(SECRET_BYTES + 1)
    if len(secret) != SECRET_BYTES:
        raise PermissionError("the secret was edited or truncated")
    return secret


def _made(folder: int) -> bytes:
    """Create the secret, completely or not at all; if several processes do so at once, one wins and all return the
    same.
    """
    name = f".{secrets.token_hex(8)}"
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(name, SECRET_FILE, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.unlink(name, dir_fd=folder)
    return _read(folder)


def _require_own(found: os.stat_result, kind: Callable[[int], bool], *, others: int) -> None:
    """Refuse what another user has created, or could have written to (or read, by `others`)."""
    if not kind(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & others:
        raise PermissionError("it is not this user's own")
