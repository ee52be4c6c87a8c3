"""What a measured program reads from its standard input: a file, from its start in each run, or nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO
from typing import BinaryIO, cast

from ffm.errors import ProgramError, UnreadableError
from ffm.regular_file import open_regular


@dataclass(frozen=True, slots=True)
class InputFile:
    """The file that was a run's standard input, so that other runs can be given the same."""

    file: str
    """Its absolute path."""
    size: int
    """Bytes."""
    sha256: str
    """Of its content, in hexadecimal."""


def require_input(file: Path) -> None:
    """Refuse a file that runs cannot read from its start.

    Raises:
        ProgramError, UnreadableError: Says why, and what to do.
    """
    _opened(file).close()


def read_input(file: Path) -> InputFile:
    """Return what a file is as standard input. Reading it all also leaves it in memory for the run, as for later ones.

    Raises:
        ProgramError, UnreadableError: As `require_input`.
    """
    with _opened(file) as content:
        digest = hashlib.file_digest(cast(BufferedReader, content), "sha256")
        return InputFile(str(file.absolute()), content.tell(), digest.hexdigest())


@contextmanager
def standard_input(file: Path | None) -> Iterator[BinaryIO | int]:
    """Open what a run reads, as `subprocess` takes it: the file from its start, or nothing.

    Raises:
        ProgramError, UnreadableError: As `require_input`.
    """
    if file is None:
        yield subprocess.DEVNULL
        return
    with _opened(file) as content:
        os.set_blocking(content.fileno(), True)  # as a shell would pass it on
        yield content


def _opened(file: Path) -> BinaryIO:
    try:
        mode = file.stat().st_mode
        if S_ISDIR(mode):
            raise ProgramError(f"The standard input {file} is a folder. Name a file.")
        if S_ISFIFO(mode):
            raise ProgramError(
                f"The standard input {file} is a pipe, which only one run could read. Write its content to a file, and "
                "name that."
            )
        return open_regular(file)
    except FileNotFoundError:
        raise ProgramError(f"The standard input {file} does not exist. Name another file.") from None
    except OSError as error:
        raise UnreadableError(f"the standard input {file}", error) from error
