"""The one way in which ffm writes files: completely or not at all, never through a link, readable by the right users.

Until all content has reached the disk, it is next to its destination under an unpredictable name. A killed writer
leaves that file or folder behind; `remove_leftovers` removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

PRIVATE = 0o600
"""Mode of recordings and documents, which contain addresses, stacks and the program's command line."""

SHARED = 0o666
"""Mode of what the user asked to be written somewhere, as far as the umask allows."""

LEFTOVER = re.compile(r"\.ffm-[0-9a-f]{16}\.partial")

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def whole_file(path: Path, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Open a file to write to; it replaces `path` when the block ends without an error.

    A link at `path` is replaced, not followed. The content is on the disk before it gets its name, so a power failure
    leaves no file with a name but without its content.

    Raises:
        OSError: It cannot be written; `filename` is `path`. Nothing of it remains.
    """
    partial = path.with_name(_partial_name())
    try:
        with os.fdopen(os.open(partial, _NEW, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            raise _naming(path, error) from error
        raise


def write_whole(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file at once. Raises `OSError` like `whole_file`."""
    with whole_file(path, mode) as file:
        file.write(content)


@contextmanager
def whole_files(folder: Path, *names: str) -> Iterator[Path]:
    """Yield a folder in which to write files that belong together.

    When the block ends without an error, they replace those in `folder`, in the order of `names`; otherwise those are
    as before. Only a process that is killed between two of the replacements leaves a mixture.

    Raises:
        OSError: One cannot be written; `filename` is where it should be in `folder`.
    """
    partial = folder / _partial_name()
    try:
        partial.mkdir(0o700)
        yield partial
        for name in names:
            (partial / name).replace(folder / name)
    except OSError as error:
        if error.filename is not None and Path(error.filename).parent == partial:
            raise _naming(folder / Path(error.filename).name, error) from error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _partial_name() -> str:
    return f".ffm-{secrets.token_hex(8)}.partial"


@contextmanager
def named_output(path: Path) -> Iterator[BinaryIO]:
    """Open the file that the user named for output: completely or not at all, like `whole_file`.

    Devices and pipes (`/dev/null`) are written to directly. A link to a file is refused: following it may overwrite
    what somebody else chose, and replacing it may break `/dev/stdout`.

    Raises:
        OSError: It cannot be written, or is a link to a file; `filename` is `path`.
    """
    if _is_device(path):
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "wb") as file:
                yield file
        except OSError as error:
            raise _naming(path, error) from error
        return
    if path.is_symlink():
        raise FileExistsError(None, "it is a symbolic link; name the file itself", str(path))
    with whole_file(path, SHARED) as file:
        yield file


def fresh_file(path: Path) -> BinaryIO:
    """Open a file, such as a log, that grows while others may read it: newly created, not through a link, unbuffered.

    Raises:
        OSError: It cannot be created.
    """
    path.unlink(missing_ok=True)
    return cast(BinaryIO, os.fdopen(os.open(path, _NEW, PRIVATE), "wb", buffering=0))


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder. No other writer may be active there."""
    for path in folder.iterdir():
        if not LEFTOVER.fullmatch(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


def _naming(path: Path, error: OSError) -> OSError:
    """Return the same error for the file that the user knows."""
    if error.errno is None:
        return OSError(error.errno, str(error), str(path))
    return OSError(error.errno, os.strerror(error.errno), str(path))
