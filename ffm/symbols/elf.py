"""What ELF files contain about themselves: build-id, link-time base, and symbol tables."""

from __future__ import annotations

import functools
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection
from elftools.elf.segments import NoteSegment
from numpy.typing import NDArray

from ffm.regular_file import open_regular


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A module on disk. `base` is the link-time address that corresponds to offset 0 of the loaded module."""

    path: Path
    build_id: str
    base: int
    has_lines: bool
    """Whether it has debug information with files and lines."""


def read_elf(path: Path) -> ElfFile:
    """Read a module's build-id and base; read it again only after the file has changed.

    Raises:
        OSError: The file cannot be opened.
        ValueError: It is not an ELF file.
    """
    status = path.stat()
    return _read_once(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))


@functools.lru_cache(maxsize=4096)
def _read_once(path: Path, _state: tuple[int, ...]) -> ElfFile:
    """Read the module at `path` in this state."""
    with open_regular(path) as stream:
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


_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("address", "<u8"), ("size", "<u8")]
)
"""`Elf64_Sym` of the System V ABI."""
_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_LOCAL = 0
_UNDEFINED = 0


class SymbolTable:
    """The functions of a module by link-time address, from `.symtab` and `.dynsym`.

    If several names share an address, an exported one wins over a local one, because callers know the function by that.
    Libraries with hundreds of thousands of symbols are common, so names are read only on request.
    """

    def __init__(self, path: Path) -> None:
        with open_regular(path) as stream:
            tables, self._strings = _tables(_open(path, stream))
        symbols = np.concatenate([*tables, np.empty(0, _SYMBOL)])
        sections = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        kind, binding = symbols["info"] & 15, symbols["info"] >> 4
        functions = np.isin(kind, (_FUNCTION, _INDIRECT_FUNCTION))
        chosen = functions & (symbols["section"] != _UNDEFINED) & (symbols["name"] != 0)
        symbols, sections, binding = symbols[chosen], sections[chosen], binding[chosen]
        worse = np.where(symbols["size"] > 0, 0, 2) + (binding == _LOCAL)
        order = np.lexsort((np.arange(len(symbols)), worse, symbols["address"]))
        _, first = np.unique(symbols["address"][order], return_index=True)
        self._symbols = symbols[order][first]
        self._sections = sections[order][first]

    def name_at(self, address: int) -> str | None:
        """Return the mangled name of the function that contains a link-time address, or None.

        A symbol without a size (assembly) extends to the next symbol.
        """
        index = int(np.searchsorted(self._symbols["address"], np.uint64(address), side="right")) - 1
        if index < 0:
            return None
        function = self._symbols[index]
        if function["size"] and address >= int(function["address"]) + int(function["size"]):
            return None
        names: bytes = self._strings[self._sections[index]]
        start = int(function["name"])
        return names[start : names.index(b"\0", start)].decode(errors="replace")


def _tables(elf: Any) -> tuple[list[NDArray[Any]], list[bytes]]:
    """Return the symbol tables, each with its names."""
    sections = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    if elf.elfclass != 64 or not elf.little_endian:
        return [], []
    tables = [np.frombuffer(section.data(), _SYMBOL) for section in sections]
    return tables, [elf.get_section(section["sh_link"]).data() for section in sections]
