"""What a long computation is doing, for whatever displays its progress."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]
"""Called with each step when it begins, in a few words such as "joining the runs"."""


def untold(step: str) -> None:
    """Tell nobody."""
