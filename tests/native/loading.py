"""Libraries of native code, loaded into the tests."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

LOADED_OFTEN = "-Dtls_model(model)="
"""Compile with this what is loaded several times: the static block for thread-local variables has room for few."""


def loaded_anew(library: Path) -> ctypes.CDLL:
    """Load a library with state of its own, however often this process has loaded it.

    The loader knows libraries by their files, and a file that is loaded must not be written again: each time it is
    another file, which nothing can name afterwards.
    """
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:
        copy.write(library.read_bytes())
        copy.flush()
        return ctypes.CDLL(copy.name)
