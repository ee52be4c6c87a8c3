"""Text from outside, made harmless for a terminal: function names, paths and arguments can hold any character.

Control characters, among them escape sequences, and characters that change the direction or the look of what follows
are shown by their codes, as in `\\x1b`.
"""

from __future__ import annotations


def plain(text: str) -> str:
    """Show everything in a text that is not printable by its code. A line break is no exception."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode()
        for letter in text
    )


def plain_lines(text: str) -> str:
    """The same for a text of several lines; its line breaks stay."""
    return "\n".join(plain(line) for line in text.split("\n"))
