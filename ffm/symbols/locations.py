"""What goes into a symbolizer and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A code address, independent of where the module was loaded.

    `offset` counts bytes from the module's load base: the lowest address at which it was mapped. `build_id`
    is the hexadecimal one recorded when the address was taken, or empty where the module had none. A return
    address stands behind the call it belongs to, possibly in the next line or even in the next function; it
    is therefore looked up one byte earlier.
    """

    path: str
    build_id: str
    offset: int
    return_address: bool = False


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """A function at a place in the source, demangled; `file` is empty and `line` 0 where unknown."""

    function: str
    file: str = ""
    line: int = 0
