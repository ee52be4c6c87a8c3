"""A temporary directory for Frida's helper, so that it can be ended and leaves nothing behind.

Frida writes its helper, 10 MB, into the temporary directory and runs it there in the background. It lives for half a
minute after its last use, and its file stays. So each process of ffm gives Frida a temporary directory of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path
from typing import Any

import frida

PREFIX = "ffm-frida-"
OWNER = "owner"
"""A file that the process of ffm keeps locked: the kernel releases the lock even if the process is killed."""

LIMIT = 5.0
"""Seconds that Frida may take to detach from its processes: a stopped process never answers."""

_lock = threading.Lock()
_home: Path | None = None
_owner: int = -1
_outer: str | None = None
_leaving = threading.Event()
_closing: threading.Thread | None = None
"""Shuts Frida down when told to. It starts early, because Python 3.12 and newer start no thread while they end."""


def local_device() -> Any:
    """Return Frida's device for this machine, with a home of its own."""
    _settle()
    return frida.get_local_device()


def home() -> Path:
    """Return this process's folder for what must not stay behind, even if ffm is killed: a later ffm removes it."""
    _settle()
    assert _home is not None
    return _home


def outer_environment() -> dict[str, str]:
    """Return this process's environment as it was before Frida had a home: for programs."""
    environment = dict(os.environ)
    if _home is not None and environment.get("TMPDIR") == str(_home):
        del environment["TMPDIR"]
        if _outer is not None:
            environment["TMPDIR"] = _outer
    return environment


def _settle() -> None:
    global _home, _owner, _outer, _closing
    with _lock:
        if _home is not None:
            return
        sweep(Path(tempfile.gettempdir()))
        home = Path(tempfile.mkdtemp(prefix=PREFIX))
        _owner = _locked_file(home / OWNER)
        _outer = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(home)
        _home = home
        _closing = threading.Thread(target=_shut_down_when_leaving, daemon=True)
        _closing.start()
        atexit.register(_leave)


def _locked_file(path: Path) -> int:
    """Create a file that is locked before others can see it by this name; return its descriptor."""
    early = path.with_suffix(".early")
    descriptor = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    early.rename(path)
    return descriptor


def _shut_down_when_leaving() -> None:
    _leaving.wait()
    frida.shutdown()


def _leave() -> None:
    """Shut Frida down, end its helper, and remove its files."""
    assert _home is not None
    assert _closing is not None
    _leaving.set()
    _closing.join(LIMIT)
    remove(_home)
    _closing.join(LIMIT)


def sweep(folder: Path) -> None:
    """Remove the homes in a folder whose processes of ffm were killed."""
    for home in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # just removed by another, or its owner lives
            if home.lstat().st_uid != os.geteuid():
                continue
            owner = os.open(home / OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(home)
            finally:
                os.close(owner)


def remove(home: Path) -> None:
    """End what runs from a home, and remove it."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if (process / "exe").readlink().is_relative_to(home):
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
