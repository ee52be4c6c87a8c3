"""The input and output of a symbolizer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A code address, independent of where the module was loaded.

    `offset` counts bytes from the module's load base: the lowest address at which it was mapped. `build_id` is the
    hexadecimal one that was recorded with the address, or empty if the module had none. A return address is after its
    call, possibly in the next line or even in the next function, so it is looked up one byte earlier.
    """

    path: str
    build_id: str
    offset: int
    return_address: bool = False


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A demangled function at a place in the source; `file` is a normalized path, or empty with `line` 0 if unknown."""

    function: str
    file: str = ""
    line: int = 0
