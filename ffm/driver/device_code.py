"""Which GPUs a program or library contains code for, read from its file.

nvcc puts containers ("fat binaries") into a section. Each contains the device code of one source, for one or more
architectures: machine code (cubin) for GPUs of the same generation, and PTX, which the driver compiles for any later
GPU when it loads it. The layout of the containers is undocumented; it was derived from files that nvcc 13.0 produced.
"""

from __future__ import annotations

import functools
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ffm.regular_file import open_regular

SECTION = ".nv_fatbin"
CONTAINER_MAGIC = 0xBA55ED50
CONTAINER_HEADER = struct.Struct("<IHHQ")
"""Magic, version, size of this header, size of the content."""
ENTRY = struct.Struct("<H2xIQI8xI8xQ8xQ")
"""Kind, size of this header, size of the code, its size if it is compressed, architecture, flags, and its size if it
were not compressed.
"""
PTX, CUBIN = 1, 2


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The device code of one source. Architectures are 10 * major + minor, such as 90."""

    machine: tuple[int, ...]
    """Architectures with machine code."""
    portable: tuple[int, ...]
    """Architectures of its PTX."""

    def compiled_for(self, capability: int) -> bool:
        """Whether the driver must compile it for a GPU of this compute capability."""
        ready = any(code // 10 == capability // 10 and code <= capability for code in self.machine)
        return not ready and any(code <= capability for code in self.portable)


def device_code(path: Path) -> list[DeviceCode]:
    """Return the device code in the program or library at `path`, source by source; empty if it has none.

    A file that cannot be read, or is not an ELF file, has none. The file is read again only after it has changed.
    """
    try:
        status = path.stat()
        return list(_read_once(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)))
    except (OSError, ValueError, ELFError, struct.error):
        return []


@functools.lru_cache(maxsize=4096)
def _read_once(path: Path, _state: tuple[int, ...]) -> tuple[DeviceCode, ...]:
    """Read the device code of the file at `path` in this state."""
    with open_regular(path) as file:
        section = ELFFile(file).get_section_by_name(SECTION)
        if section is None:
            return ()
        first, size = section["sh_offset"], section["sh_size"]
        # Mapped, not read: libraries with a gigabyte of code are common, and only the headers are needed.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return tuple(_containers(content, first, min(first + size, len(content))))


def _containers(data: mmap.mmap, place: int, end: int) -> list[DeviceCode]:
    found: list[DeviceCode] = []
    while place + CONTAINER_HEADER.size <= end:
        magic, _, header, size = CONTAINER_HEADER.unpack_from(data, place)
        if magic != CONTAINER_MAGIC:
            place += 8  # containers are padded to a multiple of eight bytes
            continue
        code = _entries(data, place + header, min(place + header + size, end))
        if code.machine or code.portable:
            found.append(code)
        place += header + size
    return found


def _entries(data: mmap.mmap, place: int, end: int) -> DeviceCode:
    machine: set[int] = set()
    portable: set[int] = set()
    while place + ENTRY.size <= end:
        kind, header, size, _, architecture, _, _ = ENTRY.unpack_from(data, place)
        if kind == CUBIN:
            machine.add(architecture)
        elif kind == PTX:
            portable.add(architecture)
        if header < ENTRY.size:
            break  # unknown layout
        place += header + size
    return DeviceCode(tuple(sorted(machine)), tuple(sorted(portable)))
