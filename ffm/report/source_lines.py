"""Lines of source files that results name: what to change, as it stands in the file.

Results may be somebody else's, and name any file. So lines come only from regular files below the working directory
that are not hidden. For results that this user measured, they also come from the files that the debug information of
the measured program names.
"""

from __future__ import annotations

import functools
from pathlib import Path

from ffm.regular_file import read_regular

LARGEST_SOURCE = 16 << 20
"""Bytes; the largest generated sources have about half."""

LONGEST_LINE = 200


class SourceLines:
    """Reads lines, each file once. `own` is whether this user measured the results that name the files."""

    def __init__(self, *, own: bool = False) -> None:
        self._own = own
        self._below = Path.cwd().resolve()
        self._lines = functools.lru_cache(maxsize=32)(self._read)

    def line(self, file: str, line: int) -> str:
        """Return a line of a source file without its indentation; empty if there is none, or it may not be shown."""
        if not file or line < 1:
            return ""
        lines = self._lines(file)
        return lines[line - 1].strip()[:LONGEST_LINE] if line <= len(lines) else ""

    def _read(self, file: str) -> list[str]:
        try:
            path = Path(file).resolve(strict=True)
            if not self._own and not self._is_below(path):
                return []
            return read_regular(path, LARGEST_SOURCE, follow=False).decode(errors="replace").splitlines()
        except (OSError, ValueError, RuntimeError):
            return []

    def _is_below(self, path: Path) -> bool:
        if len(self._below.parts) == 1 or not path.is_relative_to(self._below):
            return False
        return not any(part.startswith(".") for part in path.relative_to(self._below).parts)
