"""Pauses Python's search for reference cycles while very many objects are created that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not search for cycles until the context ends. Documents have none, and the search looks at all of their
    objects again and again as these become more: with many stacks, that takes half of the time that reading one does.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()
