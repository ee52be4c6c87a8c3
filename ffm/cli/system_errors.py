"""What the operating system refused, in one sentence: which file, why, and what to do about it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import TextIO

_ROOM = "Make room, or choose another place (--results FOLDER, -o FILE)"
_PLACE = "Choose another place (--results FOLDER, -o FILE)"
_MAY = "Ask its owner for permission, or choose another place (--results FOLDER, -o FILE)"
_DEVICE = "The disk or the network behind it fails: choose another place, and see what the kernel says (dmesg)"

ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "Raise the limit (ulimit -f unlimited), or choose another file system",
    errno.EACCES: _MAY,
    errno.EPERM: _MAY,
    errno.EROFS: _PLACE,
    errno.ENOTDIR: _PLACE,
    errno.EISDIR: _PLACE,
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.ENOENT: "Create its folder first, or choose another place",
    errno.EMFILE: "Raise the limit (ulimit -n 4096)",
    errno.ENFILE: "The machine cannot open more files: end other programs",
    errno.EAGAIN: "Raise the limit on processes (ulimit -u), or end other programs",
    errno.ENOMEM: "Give it more memory, or end other programs",
    errno.EIO: _DEVICE,
    errno.ESTALE: _DEVICE,
}
"""What to do, by cause."""


def sentence(error: OSError) -> str:
    """Say what failed, why and, if the cause is known, what to do about it."""
    if error.filename is None and error.errno == errno.ENOENT and not _has_current_folder():
        return "the current folder does not exist any more. Change to another one, and name the program by its path."
    if error.filename is None and error.errno == errno.ENOENT and not _has_temporary_folder():
        return "no folder for temporary files can be written. Set TMPDIR to one that can."
    cause = error.strerror or "it failed"
    subject = _subject(error)
    advice = ADVICE.get(error.errno or 0)
    return f"{subject}: {cause}." + (f" {advice}." if advice else "")


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _has_temporary_folder() -> bool:
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True


def finish_output(stream: TextIO | None = None) -> OSError | None:
    """Write out what a stream, by default standard output, still contains; return why that failed.

    After a failure nothing more is written there, because Python would report it again at its end.
    """
    stream = stream or sys.stdout
    try:
        stream.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return error
    return None


def _subject(error: OSError) -> str:
    """Return the file or, without a name, standard output for errors that only occur with files: all others are
    named.
    """
    if error.filename is not None:
        name = error.filename.decode(errors="replace") if isinstance(error.filename, bytes) else str(error.filename)
        return f"{name} cannot be read or written"
    finish_output()
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return "standard output cannot be written"
    return "the operating system refused"
