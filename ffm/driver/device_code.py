"""Which GPUs a program or library contains code for, read from its file."""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ffm.driver.containers import CUBIN, PTX, SECTION, containers, entries
from ffm.regular_file import open_regular


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
            return tuple(_sources_in(content, first, min(first + size, len(content))))


def _sources_in(data: mmap.mmap, place: int, end: int) -> Iterator[DeviceCode]:
    for begin, behind in containers(data, place, end):
        found = list(entries(data, begin, behind))
        machine, portable = ({one.architecture for one in found if one.kind == kind} for kind in (CUBIN, PTX))
        if machine or portable:
            yield DeviceCode(tuple(sorted(machine)), tuple(sorted(portable)))
