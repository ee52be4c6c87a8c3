"""Text from outside, made harmless for a terminal: function names, paths and arguments can hold any character.

Control characters, among them escape sequences, and characters that change the direction or the look of what follows
are shown by their codes, as in `\\x1b`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import msgspec

_ESCAPED = re.compile(rb"\\[bfnrtu]")
"""What JSON writes for control characters; letters are written as they are."""

Struct = TypeVar("Struct", bound="msgspec.Struct")


def plain(text: str) -> str:
    """Show everything in a text that is not printable by its code. A line break is no exception."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode()
        for letter in text
    )


def plain_lines(text: str) -> str:
    """The same for a text of several lines, which stay."""
    return "\n".join(plain(line) for line in text.split("\n"))


def plain_document(document: Struct) -> Struct:
    """Return a document with all of its texts made plain: itself, nearly always."""
    import msgspec

    encoded = msgspec.json.encode(document)
    if not _ESCAPED.search(encoded) and encoded.decode().isprintable():
        return document
    return msgspec.convert(_plain(msgspec.to_builtins(document)), type(document))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return value
