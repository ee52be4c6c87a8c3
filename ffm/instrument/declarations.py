"""Reads constants and sizes of structures from the C declarations that the native code is compiled with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cffi


@cache
def declarations_in(header: Path) -> cffi.FFI:
    """Parse a header, which may hold nothing but declarations."""
    parser = cffi.FFI()
    parser.cdef(header.read_text())
    return parser


def constant_in(header: Path, name: str) -> int:
    """Return the value of an enumerator in a header. Raises `AttributeError` if it has none of that name."""
    return int(getattr(declarations_in(header).dlopen(None), name))
