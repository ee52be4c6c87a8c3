"""The package symbolic as a reader of debug information: inlined and real functions with their files and lines.

It is installed with ffm, and is used if llvm-symbolizer is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ffm.errors import CauseError
from ffm.symbols.demangle import demangle
from ffm.symbols.locations import SourceFrame


class DebugInformationError(CauseError):
    """The debug information of a module cannot be read; the message is one phrase."""


def look_up(module: Path, offsets: Sequence[int]) -> list[list[SourceFrame]]:
    """Look up code in one module with debug information, by its offset from the module's base.

    Returns:
        For each offset the frames there, innermost inlined function first; empty if nothing is known.

    Raises:
        DebugInformationError: The file, or its debug information, is damaged.
    """
    from symbolic.debuginfo import Archive  # 75 MB, so loaded only if needed
    from symbolic.exceptions import SymbolicError

    try:
        archive = Archive.open(str(module))
        lines = next(archive.iter_objects()).make_symcache()
        found = [lines.lookup(offset) for offset in offsets]
    except (SymbolicError, StopIteration) as error:
        raise DebugInformationError(str(error).partition("\n")[0] or "there is no module in it") from error
    return [
        [SourceFrame(demangle(place.symbol or ""), place.full_path or "", place.line) for place in frames]
        for frames in found
    ]
