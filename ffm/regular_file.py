"""Opens files that others may have chosen: only regular files, so that no pipe blocks and no device is read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; without `follow`, not through a symbolic link at its end.

    Raises:
        OSError: There is none, it may not be read, or it is not a regular file.
    """
    if not stat.S_ISREG(path.stat(follow_symlinks=follow).st_mode):  # merely opening a device can have effects
        raise _not_regular(path)
    descriptor = os.open(path, _READ | (0 if follow else os.O_NOFOLLOW))
    file = cast(BinaryIO, os.fdopen(descriptor, "rb"))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # it was replaced meanwhile
        file.close()
        raise _not_regular(path)
    return file


def read_regular(path: Path, most_bytes: int | None = None, *, follow: bool = True) -> bytes:
    """Read a regular file, opened by `open_regular`.

    Raises:
        OSError: As there, or it has more than `most_bytes`.
    """
    with open_regular(path, follow=follow) as file:
        content = file.read() if most_bytes is None else file.read(most_bytes + 1)
    if most_bytes is not None and len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return content


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file", str(path))
