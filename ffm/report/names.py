"""Names short enough for a screen or a log: functions of C++, places, paths."""

from __future__ import annotations

import re
from pathlib import Path

from ffm.model.groups.names import base_name

_DOTS_BEFORE, _DOTS_BEHIND = re.compile(r"\.{1,3}\Z"), re.compile(r"\A\.{1,3}")
"""Dots next to the cut, which brings dots of its own."""
SHORTEST_CALL = 6
"""Columns for a call in front of its place: three letters, `cud...`. With fewer, places are left out."""


def shorten(name: str, width: int) -> str:
    """Shorten a function's name to a number of columns.

    The least informative parts go first: return type, parameters and template arguments, then the middle. The beginning
    (namespace) and the end (the function itself) stay.
    """
    return name if len(name) <= width else cut_middle(base_name(name), width)


def cut_middle(text: str, width: int) -> str:
    """Shorten a text to a number of columns, at least five, by replacing its middle with `...`."""
    if len(text) <= width:
        return text
    room = max(width, 5) - 3
    front = room // 2
    begin, end = text[:front], text[len(text) - (room - front) :]
    return f"{_DOTS_BEFORE.sub('', begin)}...{_DOTS_BEHIND.sub('', end)}"


def cut_before_place(text: str, width: int) -> str:
    """Shorten `cudaDeviceSynchronize cg.cu:66 from als.cu:184*` to a number of columns.

    The places stay as long as a few letters of the call fit before them, and then the first one, which makes the call.
    """
    if len(text) <= width:
        return text
    call, _, places = text.partition(" ")
    first, behind, _ = places.partition(" from ")
    mark = "*" if behind and text.endswith("*") else ""
    for shown in (places, first + mark):
        room = width - len(shown) - 1
        if room >= SHORTEST_CALL:
            return f"{call[: room - 3]}... {shown}" if len(call) > room else f"{call} {shown}"
    return cut_middle(text, width)


def cut_behind_place(text: str, width: int) -> str:
    """Shorten `solver.cu:57 cudaFree, cudaMemcpy` to a number of columns: file and line stay as long as they fit."""
    if len(text) <= width:
        return text
    place, _, calls = text.partition(" ")
    room = width - len(place) - 1
    if len(place) > width:
        return cut_middle(place, width)
    return f"{place} {calls[: room - 3]}..." if room > 5 else place


def below(file: str, root: Path) -> str:
    """Return a path below a folder as one that begins there; any other as it is."""
    path = Path(file)
    return str(path.relative_to(root)) if path.is_absolute() and path.is_relative_to(root) else file
