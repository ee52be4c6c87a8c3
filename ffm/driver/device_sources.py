"""The PTX of device code that a program loads from its own file: what its kernels do, whatever GPU they run on."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from ffm.driver.containers import CUBIN, HEADER, MAGIC, PTX, SECTION, entries
from ffm.regular_file import open_regular

_WRAPPERS, _WRAPPER = ".nvFatBinSegment", struct.Struct("<IIQ")
"""The section with what nvcc registers containers by: magic, version, the container's address."""

_WRAPPER_BYTES = 24
"""With another address, which is of no use here."""

_ONE_CONTAINER = 1
"""The version of wrappers of code that is not linked with other code."""

_UNREADABLE = (OSError, ValueError, ELFError, struct.error, pyarrow.ArrowException)
"""What reading raises if a file is damaged, is gone, or is of another kind."""

_LARGEST = 1 << 28
_MOST_TO_UNPACK = 1 << 26
_RELOCATION = np.dtype([("place", "<u8"), ("kind", "<u8"), ("value", "<i8")])
_RELATIVE = 8
_PAGE = 4096


def device_sources(path: Path, offset: int) -> list[str] | None:
    """Return the PTX of the code at an address of a file, given in bytes from the first that is mapped.

    None if it is not known: the program may change what lies there, or it is machine code without PTX for the same
    architecture that would show what it does.
    """
    try:
        status = path.stat()
        return _known_sources(path, offset, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    except _UNREADABLE:
        return None


def sources_of_file(path: Path) -> Iterator[str]:
    """Yield the PTX of all code that a file registers when it is loaded, as nvcc lets programs do.

    What `device_sources` does not know is left out, and so is all of a file with more than 64 MiB of code, since
    unpacking that takes seconds.
    """
    try:
        with open_regular(path) as file:
            image = _Image(file)
            code = image.elf.get_section_by_name(SECTION)
            if image.wrappers is None or code is None or code["sh_size"] > _MOST_TO_UNPACK:
                return
            first = image.wrappers["sh_addr"] - image.first_address
            for place in range(first, first + image.wrappers["sh_size"], _WRAPPER_BYTES):
                with suppress(*_UNREADABLE):
                    yield from image.sources(place) or []
    except _UNREADABLE:
        return


@functools.lru_cache(maxsize=256)
def _known_sources(path: Path, offset: int, _state: tuple[int, ...]) -> list[str] | None:
    with open_regular(path) as file:
        return _Image(file).sources(offset)


class _Image:
    """A file with code, of which each part is read once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.elf = file, ELFFile(file)
        self.wrappers = self.elf.get_section_by_name(_WRAPPERS)
        self._mapped = list(self.elf.iter_segments("PT_LOAD"))

    @property
    def first_address(self) -> int:
        """The address of the first byte that is mapped, before the file is moved."""
        return int(min(segment["p_vaddr"] for segment in self._mapped) // _PAGE * _PAGE)

    def sources(self, offset: int) -> list[str] | None:
        """Return the PTX of the code at an address, as `device_sources` does."""
        address = offset + self.first_address
        wrappers = self.wrappers
        if wrappers is not None and 0 <= address - wrappers["sh_addr"] < wrappers["sh_size"]:
            _, version, stored = _WRAPPER.unpack_from(self._wrapper_bytes, address - wrappers["sh_addr"])
            if version != _ONE_CONTAINER:
                return None
            address = self._relocated(address + 8, stored)
        for segment in self._mapped:
            place = address - segment["p_vaddr"]
            if 0 <= place < segment["p_filesz"] and not segment["p_flags"] & 2:
                self._file.seek(segment["p_offset"] + place)
                return _read(self._file, min(segment["p_filesz"] - place, _LARGEST))
        return None

    def _relocated(self, place: int, stored: int) -> int:
        """Return the address that the dynamic linker writes to a place of the file."""
        if self._relocations is None:
            return stored
        mine = self._relocations[self._relocations["place"] == place]
        return int(mine["value"][0]) if len(mine) == 1 and mine["kind"][0] == _RELATIVE else stored

    @functools.cached_property
    def _wrapper_bytes(self) -> bytes:
        return b"" if self.wrappers is None else bytes(self.wrappers.data())

    @functools.cached_property
    def _relocations(self) -> NDArray[np.void] | None:
        section = self.elf.get_section_by_name(".rela.dyn")
        return None if section is None else np.frombuffer(section.data(), _RELOCATION)


def _read(file: BinaryIO, most_bytes: int) -> list[str] | None:
    """Return the sources of a container, or of PTX, that begins at the file's position and has at most `most_bytes`."""
    begin = file.read(min(HEADER.size, most_bytes))
    if int.from_bytes(begin[:4], "little") == MAGIC:
        _, _, header, size = HEADER.unpack(begin)
        return _of_container(begin + file.read(min(header + size, most_bytes) - len(begin)))
    code = begin + file.read(most_bytes - len(begin))
    text = code[: code.find(b"\0")]
    return [text.decode()] if b".version" in text and b".target" in text else None


def _of_container(code: bytes) -> list[str] | None:
    _, _, header, size = HEADER.unpack_from(code)
    machine, portable = set[tuple[int, int]](), dict[tuple[int, int], str]()
    for entry in entries(code, header, header + size):
        if entry.kind == CUBIN and entry.known:
            machine.add(entry.variant)
        elif entry.kind == PTX and entry.known:
            portable[entry.variant] = entry.code(code).rstrip(b"\0").decode()
        else:
            return None
    return list(portable.values()) if portable and machine <= portable.keys() else None
