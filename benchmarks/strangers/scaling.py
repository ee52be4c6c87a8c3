"""Smaller arguments for programs that are made for a GPU and run on CPU cores."""

from __future__ import annotations

import re

SIZES = (1000, 64, 32)
"""Numbers above this are taken for sizes that can be reduced: from level 2 on, once more from level 3 on, and so on."""

EXPONENTS = range(20, 32)
"""Numbers that are taken for logarithms of sizes: from level 3 on, they become smaller by LESS with each level."""

LESS = 4

LAST_LEVEL = len(SIZES) + 1

_NUMBER = re.compile(r"(?<![\w./])(\d+)(?![\w./])")


def scaled(arguments: list[str], level: int) -> list[str]:
    """Return arguments that make less work; level 0 leaves them as they are.

    The last number usually counts repetitions: it becomes smaller by 10 with each level. The others, if they are large,
    do by 10 or 16 with each level from the second on: powers of two stay such, because kernels rely on them.
    """
    places = [place for place, word in enumerate(arguments) if _NUMBER.search(word)]
    return [_scaled(word, level, last=places[-1:] == [place]) for place, word in enumerate(arguments)]


def _scaled(word: str, level: int, *, last: bool) -> str:
    return _NUMBER.sub(lambda found: str(_smaller(int(found[1]), level, last=last)), word)


def _smaller(value: int, level: int, *, last: bool) -> int:
    if last and value <= 100_000 and value & (value - 1):
        return min(value, max(value // int(10**level), 2))
    if value in EXPONENTS:
        return value - LESS * max(level - 2, 0)
    for least in SIZES[: max(level - 1, 0)]:
        if value > least:
            value //= 10 if value & (value - 1) else 16
    return value
