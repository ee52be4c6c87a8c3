"""The compiled part of `ffm.sources.json_events`: finds the structure of JSON text, byte by byte.

Its tables are arrays, so that it is the same in plain Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

QUOTE, BACKSLASH = 34, 92
OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT = 91, 93, 123, 125

DEPTH, IN_STRING, ESCAPED, LAST = range(4)
"""Places in the state: how deep the text is nested, whether it is within a string, whether the next character of it is
escaped, and where the last complete element of the list ended (-1: none yet).
"""

AT_END, OPENED, CLOSED, TOO_DEEP = range(4)
"""Why `scan` stopped."""

MEMBER = 1
"""The depth of the document's members."""

DEEPEST = 500
"""Deeper text is refused. The events of a trace are nested less than 10 deep."""


def scan(text: NDArray[np.uint8], begin: int, inside: bool, state: NDArray[np.int64]) -> tuple[int, int]:
    """Read on from `begin` until a list opens that is a member of the document, or the one that is being read ends.

    Args:
        text: a part of the document.
        begin: the first byte that was not read before.
        inside: whether the text is within the list of interest.
        state: continued from call to call, in place.

    Returns:
        How much was read, and why it stopped.
    """
    depth, in_string, escaped, last = state[DEPTH], state[IN_STRING], state[ESCAPED], state[LAST]
    reason, at = AT_END, begin
    while at < len(text):
        byte = text[at]
        at += 1
        if in_string:
            if escaped:
                escaped = 0
            elif byte == BACKSLASH:
                escaped = 1
            elif byte == QUOTE:
                in_string = 0
        elif byte == QUOTE:
            in_string = 1
        elif byte in (OPEN_OBJECT, OPEN_ARRAY):
            depth += 1
            if depth > DEEPEST:
                reason = TOO_DEEP
                break
            if byte == OPEN_ARRAY and depth == MEMBER + 1 and not inside:
                reason = OPENED
                break
        elif byte in (CLOSE_OBJECT, CLOSE_ARRAY):
            depth -= 1
            if inside and depth == MEMBER + 1:
                last = at
            elif inside and depth <= MEMBER:
                reason = CLOSED
                break
    state[DEPTH], state[IN_STRING], state[ESCAPED], state[LAST] = depth, in_string, escaped, last
    return at, reason
