"""What the program reads from its standard input: what `--stdin` names, or what ffm's own is redirected from."""

from __future__ import annotations

import filecmp
import os
import select
import stat
from collections.abc import Callable
from os.path import samestat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ffm.errors import FfmError

if TYPE_CHECKING:
    from ffm.results.folder.paths import ResultsFolder
    from ffm.results.stored import Results

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

COPY = Path("-")
"""What `--stdin` names for a copy of ffm's own standard input."""

MOST_BYTES = 1 << 30
"""The most that is copied. Anything larger should not be stored twice without the user's knowledge."""

CHUNK_BYTES = 1 << 20
PATIENCE_S = 0.2
"""How long what writes into a pipe may take to begin; it was started together with ffm."""

_STANDARD_INPUT = 0


def input_option(command: Decorated) -> Decorated:
    """`--stdin FILE`."""
    return click.option(
        "--stdin",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What the program reads from its standard input in each run, from the start of the file; `-` copies ffm's "
        "own into the results folder. [default: the file of `< FILE`, else nothing]",
    )(command)


def chosen_input(given: Path | None, folder: ResultsFolder) -> Path | None:
    """Return the file that each run reads, or None for nothing; a copy of ffm's own input goes to the folder.

    Raises:
        FfmError: The file or folder cannot be used, or ffm's own input has content that can be read only once.
        OSError: The copy cannot be written.
    """
    from ffm.instrument.session.standard_input import require_input

    file = _redirected() if given is None else given
    if file == COPY:
        folder.make()
        return _copied(folder.standard_input)
    if file is not None:
        require_input(file)
    return file


def measured_input(results: Results) -> Path | None:
    """Return the file that the measured runs read, if it still has the content that it had then.

    Raises:
        FfmError: It is gone, or has changed.
    """
    from ffm.instrument.session.standard_input import read_input
    from ffm.results.folder.paths import ResultsFolder

    run = results.document.run
    if run is None or run.stdin is None:
        return None
    for file in (Path(run.stdin.file), ResultsFolder(results.folder).standard_input):
        if file.is_file() and read_input(file).sha256 == run.stdin.sha256:
            return file
    raise FfmError(
        f"the program read {run.stdin.file} from its standard input when it was measured, and that file is gone or has "
        "changed. Name the file to read with --stdin FILE, or measure again."
    )


def _redirected() -> Path | None:
    """Return the file from which ffm's standard input is redirected; None if there is nothing in it.

    Raises:
        FfmError: There is something in it that only one run could read.
    """
    try:
        mode = os.fstat(_STANDARD_INPUT).st_mode
    except OSError:
        return None  # it is closed
    if stat.S_ISREG(mode):
        return _redirected_file()
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or not _has_content():
        return None
    raise FfmError(
        "standard input is a pipe with content, which only one run could read: use `--stdin -` to give each run a "
        "copy, or `< /dev/null` to give them nothing."
    )


def _redirected_file() -> Path | None:
    size = os.fstat(_STANDARD_INPUT).st_size
    position = os.lseek(_STANDARD_INPUT, 0, os.SEEK_CUR)
    if position >= size:
        return None
    path = Path(f"/proc/self/fd/{_STANDARD_INPUT}").readlink()
    if position == 0 and path.exists() and samestat(path.stat(), os.fstat(_STANDARD_INPUT)):
        return path
    why = "has been read in part, as by a loop of the shell" if position else "is a file that has no name any more"
    raise FfmError(
        f"standard input {why}: use `--stdin -` to give each run a copy of what is left of it, or `< /dev/null` to "
        "give them nothing."
    )


def _has_content() -> bool:
    """Return whether something can be read from a pipe; false at its end."""
    if not select.select([_STANDARD_INPUT], [], [], PATIENCE_S)[0]:
        return False
    poll = select.poll()
    poll.register(_STANDARD_INPUT, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))


def _copied(copy: Path) -> Path:
    """Copy what is left of ffm's standard input. An equal copy stays, so that what rests on it is up to date."""
    from ffm.whole_file import whole_file

    fresh = copy.with_name(f"{copy.name}.new")
    size = 0
    with whole_file(fresh) as file:
        while chunk := os.read(_STANDARD_INPUT, CHUNK_BYTES):
            size += len(chunk)
            if size > MOST_BYTES:
                raise FfmError(
                    f"standard input has more than {MOST_BYTES >> 30} GiB, of which no copy is made. Write it to a "
                    "file, and name that: --stdin FILE."
                )
            file.write(chunk)
    if copy.is_file() and not copy.is_symlink() and filecmp.cmp(fresh, copy, shallow=False):
        fresh.unlink()
    else:
        fresh.replace(copy)
    return copy
