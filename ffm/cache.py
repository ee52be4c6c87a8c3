"""A folder for what ffm remembers between runs. Its content is trusted, so it must belong to this user.

It is the user's cache folder or, if that cannot be written, as without a home, one in the temporary folder, where
others may have created something with the same name; otherwise there is none, and everything is determined again each
time.
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
    """Create a folder if necessary, and return whether only we can write to it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return own and os.access(folder, os.W_OK | os.X_OK)
