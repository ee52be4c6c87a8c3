"""Code addresses to function, file and line; C++ demangling; Python frames."""

from ffm.symbols.locations import Location, SourceFrame
from ffm.symbols.symbolizer import Symbolizer

__all__ = ["Location", "SourceFrame", "Symbolizer"]
