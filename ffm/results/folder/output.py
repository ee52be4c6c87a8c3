"""What a measured program wrote to its standard output and error, for sentences about its end."""

from __future__ import annotations

import os
from pathlib import Path

from ffm.plain_text import plain

LONGEST = 200
"""Letters of a last line that are shown."""


def where_output(log: Path) -> str:
    """Return a sentence that says where a program's output is, and how it ends: mostly that is what went wrong.

    The output may be large, so only its end is read.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 16 * LONGEST, 0))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return f"Its output is in {log}."
    if not lines:
        return f"It wrote nothing (its output would be in {log})."
    words = (line for line in reversed(lines) if any(map(str.isalnum, line)))  # a ruled line says nothing
    last = next(words, lines[-1]).strip()
    shown = last if len(last) <= LONGEST else f"{last[:LONGEST]}…"
    return f'Its output is in {log}, and ends with "{plain(shown)}".'
