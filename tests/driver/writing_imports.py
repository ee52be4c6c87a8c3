"""Loads a driver, calls it, and prints what its imports of functions that write lead to: `writing_imports.py LIBRARY`.

A line for each: the function, and the name of the file that it leads to.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

WRITE = {"write", "fwrite", "fputs", "fputc", "_IO_putc", "puts", "vfprintf", "printf", "fprintf"}


def slots(path: str) -> list[tuple[str, int]]:
    """Return the imported functions that write, and where in the file their addresses are put."""
    with Path(path).open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        tables = [section for section in elf.iter_sections() if isinstance(section, RelocationSection)]
        names = {number: symbol.name for number, symbol in enumerate(symbols.iter_symbols())}
        return [
            (names[entry["r_info_sym"]], entry["r_offset"])
            for table in tables
            for entry in table.iter_relocations()
            if names.get(entry["r_info_sym"]) in WRITE
        ]


def mappings() -> list[tuple[int, int, str]]:
    """Return the process's mappings of files: start, end, path."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *rest = line.split(maxsplit=5)
        start, end = (int(word, 16) for word in span.split("-"))
        found.append((start, end, rest[4] if len(rest) > 4 else ""))
    return found


def main(path: str) -> None:
    ctypes.CDLL(path).cuInit(0)
    mapped = mappings()
    base = min(start for start, _, file in mapped if Path(file).name == Path(path).name)
    for name, offset in slots(path):
        leads_to = ctypes.c_uint64.from_address(base + offset).value
        file = next(file for start, end, file in mapped if start <= leads_to < end)
        print(name, Path(file).name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
