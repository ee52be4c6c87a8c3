"""A folder for what ffm remembers between runs. Its content is trusted, so it must belong to this user.

It is the user's cache folder. If that is not writable, for example without a home, it is a folder in the temporary
folder, where others may have created something with the same name. If neither works, there is none, and everything is
determined again each time.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import platformdirs

from ffm.whole_file import write_whole


def private_cache() -> Path | None:
    """Return a folder that belongs to this user, and that nobody else can write to; None if there is none."""
    folders = (
        Path(platformdirs.user_cache_dir("ffm")),
        Path(tempfile.gettempdir()) / f"ffm-cache-{os.getuid()}",
    )
    return next((folder for folder in folders if _is_private(folder)), None)


def remember(folder: Path | None, name: str, content: bytes) -> None:
    """Store a file in a cache folder, if there is one; if the disk is full, it is just not remembered."""
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, content)
    except OSError:
        return


def _is_private(folder: Path) -> bool:
    """Create a folder if necessary, and return whether only we can write to it or replace it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        parent, own = _status(folder.parent, follow=True), _status(folder, follow=False)
    except OSError:
        return False
    sticky = bool(parent.st_mode & stat.S_ISVTX)
    safe_place = parent.st_uid in (0, os.geteuid()) and (sticky or not parent.st_mode & stat.S_IWOTH)
    ours = own.st_uid == os.geteuid() and not own.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return safe_place and ours and os.access(folder, os.W_OK | os.X_OK)


def _status(folder: Path, *, follow: bool) -> os.stat_result:
    """Return the status of a folder. Raises `OSError` if it is not one, or is a link that is not to be followed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
