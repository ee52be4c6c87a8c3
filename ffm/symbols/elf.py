"""What ELF files say of themselves: build-id, link-time base, and symbol tables."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection
from elftools.elf.segments import NoteSegment


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A module on disk. `base` is the link-time address that corresponds to offset 0 of the loaded module."""

    path: Path
    build_id: str
    base: int
    has_lines: bool
    """Whether it holds debug information that tells files and lines."""


def read_elf(path: Path) -> ElfFile:
    """Read a module's build-id and base.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is not an ELF file.
    """
    with path.open("rb") as stream:
        elf = _open(path, stream)
        starts = [segment["p_vaddr"] for segment in elf.iter_segments("PT_LOAD")]
        if not starts:
            raise ValueError(f"{path} has nothing to load")
        # The loader maps whole pages, so the lowest mapped address is the start of the first segment's page.
        has_lines = elf.get_section_by_name(".debug_line") is not None
        return ElfFile(path, _build_id(elf), min(starts) & ~(mmap.PAGESIZE - 1), has_lines)


def _open(path: Path, stream: Any) -> Any:
    try:
        return ELFFile(stream)
    except (ELFError, UnicodeDecodeError, AssertionError) as error:
        raise ValueError(f"{path} is not an ELF file") from error


def _build_id(elf: Any) -> str:
    for part in (*elf.iter_segments("PT_NOTE"), *elf.iter_sections("SHT_NOTE")):
        if isinstance(part, NoteSegment | NoteSection):
            for note in part.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


@dataclass(frozen=True, slots=True)
class _Function:
    address: int
    size: int
    name: str


class SymbolTable:
    """The functions of a module by link-time address, from `.symtab` and `.dynsym`.

    Where several names share an address, an exported one wins over a local one, as callers know it by that.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as stream:
            functions = _functions(_open(path, stream))
        self._functions = functions
        self._starts = [function.address for function in functions]

    def name_at(self, address: int) -> str | None:
        """The mangled name of the function that holds a link-time address, or None.

        A symbol without a size (assembly) reaches to the next symbol.
        """
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        function = self._functions[index]
        if function.size and address >= function.address + function.size:
            return None
        return function.name


def _functions(elf: Any) -> list[_Function]:
    """Functions sorted by address, one for each address."""
    best: dict[int, tuple[tuple[bool, bool], _Function]] = {}
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            kind, binding = symbol["st_info"]["type"], symbol["st_info"]["bind"]
            if kind not in ("STT_FUNC", "STT_LOOS") or symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
                continue  # STT_LOOS is GNU's indirect function
            function = _Function(symbol["st_value"], symbol["st_size"], symbol.name)
            rank = (function.size > 0, binding != "STB_LOCAL")
            known = best.get(function.address)
            if known is None or rank > known[0]:
                best[function.address] = (rank, function)
    return [best[address][1] for address in sorted(best)]
