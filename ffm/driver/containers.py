"""Containers of device code ("fat binaries"), as nvcc puts them into programs and libraries.

Each contains the device code of one source, for one or more architectures: machine code (cubin) for GPUs of the same
generation, and PTX, which the driver compiles for any later GPU when it loads it. The layout is undocumented; it was
derived from files that nvcc 13.0 produced.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

SECTION = ".nv_fatbin"
"""Where files have them."""

MAGIC = 0xBA55ED50
HEADER = struct.Struct("<IHHQ")
"""Magic, version, size of this header, size of the content."""

PTX, CUBIN = 1, 2

_ENTRY = struct.Struct("<H2xIQI8xI8xQ8xQ")
"""Kind, size of this header, size of the code, its size if it is compressed, architecture, flags, and its size if it
were not compressed.
"""
_ZSTANDARD, _LZ4 = 0x8000, 0x2000
_VARIANT = 20
"""From this bit on, the flags say that code is for one architecture or family of them alone."""

_LARGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class Entry:
    """The device code of a source for one architecture."""

    kind: int
    """`PTX`, `CUBIN`, or another number."""
    architecture: int
    """10 * major + minor, such as 90."""
    flags: int
    header: int
    """Bytes of what describes it."""
    begin: int
    """Where its code begins in the container's data."""
    size: int
    packed: int
    plain: int

    @property
    def known(self) -> bool:
        """Whether its header has at least the fields that are known; what follows it cannot be found otherwise."""
        return self.header >= _ENTRY.size

    @property
    def variant(self) -> tuple[int, int]:
        """What it is compiled for: the architecture, and whether it is for that or its family alone."""
        return self.architecture, self.flags >> _VARIANT

    def code(self, data: bytes | mmap.mmap) -> bytes:
        """Return its code, unpacked.

        Raises:
            ValueError: It is larger than 256 MiB.
            pyarrow.ArrowException: It is damaged.
        """
        import pyarrow  # takes long to load, and most code is only counted

        code = data[self.begin : self.begin + self.size]
        if not self.flags & (_ZSTANDARD | _LZ4):
            return code
        if self.plain > _LARGEST:
            raise ValueError
        codec = pyarrow.Codec("zstd" if self.flags & _ZSTANDARD else "lz4_raw")
        return bytes(codec.decompress(code[: self.packed], self.plain, asbytes=True))


def containers(data: bytes | mmap.mmap, place: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the content of each container begins and ends."""
    while place + HEADER.size <= end:
        magic, _, header, size = HEADER.unpack_from(data, place)
        if magic != MAGIC:
            place += 8  # containers are padded to a multiple of eight bytes
            continue
        yield place + header, min(place + header + size, end)
        place += header + size


def entries(data: bytes | mmap.mmap, place: int, end: int) -> Iterator[Entry]:
    """Yield what a container's content consists of, up to the first entry whose header is not known."""
    while place + _ENTRY.size <= end:
        kind, header, size, packed, architecture, flags, plain = _ENTRY.unpack_from(data, place)
        entry = Entry(kind, architecture, flags, header, place + header, size, packed, plain)
        yield entry
        if not entry.known:
            return
        place += header + size
