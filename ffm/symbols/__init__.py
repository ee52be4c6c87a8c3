"""From code addresses to functions, files and lines; C++ demangling; Python frames."""

from ffm.symbols.locations import Location, SourceFrame
from ffm.symbols.symbolizer import Symbolizer

__all__ = ["Location", "SourceFrame", "Symbolizer"]
