"""Keeps freed memory for the next columns, where there is enough of it.

Columns of a long run live for one step each. The C library returns large ones to the system at once, and the system has
to clear the pages of the next ones again, which takes as long as many of the steps themselves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TRIM_THRESHOLD, MAPPED_MOST = -1, -4
"""`M_TRIM_THRESHOLD` and `M_MMAP_MAX` of `malloc.h` (mallopt(3))."""

USUAL_TRIM, USUAL_MAPPED = 128 << 10, 65536
"""Their defaults."""

NEVER = (1 << 31) - 1


@contextmanager
def kept_memory(wanted: bool = True) -> Iterator[None]:
    """Let this process keep what it frees until the context ends, if that is wanted and the C library can."""
    library = _library() if wanted else None
    if library is None:
        yield
        return
    library.mallopt(MAPPED_MOST, 0)
    library.mallopt(TRIM_THRESHOLD, NEVER)
    try:
        yield
    finally:
        library.mallopt(MAPPED_MOST, USUAL_MAPPED)
        library.mallopt(TRIM_THRESHOLD, USUAL_TRIM)
        library.malloc_trim(0)


def _library() -> Any:
    """Return the C library; None if it has no such settings (only GNU's has)."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
