"""A folder for what ffm remembers between runs. What lies there is believed, so it must be this user's own.

The user's cache folder; where that cannot be written, as without a home, one in the temporary folder, where others may
have put something of the same name; else none, and all is found out anew each time.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import platformdirs

from ffm.whole_file import write_whole


def private_cache() -> Path | None:
    """Return a folder that belongs to this user, and that nobody else can write to; None where there is none."""
    folders = (
        Path(platformdirs.user_cache_dir("ffm")),
        Path(tempfile.gettempdir()) / f"ffm-cache-{os.getuid()}",
    )
    return next((folder for folder in folders if _is_private(folder)), None)


def remember(folder: Path | None, name: str, content: bytes) -> None:
    """Keep a file in a folder of the cache, if there is one; a full disk only means that nothing is remembered."""
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, content)
    except OSError:
        return


def _is_private(folder: Path) -> bool:
    """Make a folder if need be, and say whether it is ours alone to write to."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return own and os.access(folder, os.W_OK | os.X_OK)
