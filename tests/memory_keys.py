"""Whether memory protection keys (pkeys(7)) can be had here."""

from __future__ import annotations

import ctypes


def has_memory_keys() -> bool:
    """Return whether the processor has them, and the kernel gives them to this process."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "pkey_alloc"):
        return False
    key = int(library.pkey_alloc(0, 0))
    return key > 0 and library.pkey_free(key) == 0
