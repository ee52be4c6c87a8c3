"""Machine code as nvcc 13 lays it out, from instructions that tests choose. It cannot run."""

from __future__ import annotations

import struct

import pyarrow

ARCHITECTURE, FIRST_PARAMETER = 90, 0x210
EXIT = (0x794D, 0)

_PROGBITS, _SYMTAB, _STRTAB, _RELA, _REL, _ATTRIBUTES = 1, 2, 3, 4, 9, 0x70000000


def load(place: int, width: int, index: int = 0xFF, bank: int = 0, to: int = 0) -> tuple[int, int]:
    """Return LDC of 4 or 8 bytes at a place of a bank to a register, with another as index unless that is 0xFF."""
    return 0x7B82 | to << 16 | index << 24 | place << 38 | bank << 54, {4: 4, 8: 5}[width] << 9


def store(address: int, value: int) -> tuple[int, int]:
    """Return STG.E of a register to the address in a pair of registers."""
    return 0x7986 | address << 24 | value << 32, 0x000FE2000C101904


def calculate(operation: int, to: int, a: int, b: int, c: int) -> tuple[int, int]:
    """Return arithmetic on general registers, such as 0x010 (IADD3), 0x024 (IMAD), 0x027 (IMAD.HI) or 0x019 (SHF)."""
    return 0x7000 | 1 << 9 | operation | to << 16 | a << 24 | b << 32, c


def cubin(
    kernel: str,
    parameters: list[tuple[int, int]],
    instructions: list[tuple[int, int]],
    *,
    architecture: int = ARCHITECTURE,
    relocations: bytes = b"",
    named: str = "",
) -> bytes:
    """Return a cubin with one kernel, whose parameters are given by offset and size, in bytes. Bank 4 may name a
    function elsewhere.
    """
    name = kernel.encode()
    size = max(offset + own for offset, own in parameters)
    attributes = struct.pack("<BBHIHH", 4, 0x0A, 8, 1, FIRST_PARAMETER, size)
    for ordinal, (offset, own) in enumerate(parameters):
        attributes += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, ordinal, offset, own << 18 | 0x1F000)
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0x10, 5, 0, 16 * len(instructions))
    symbols += struct.pack("<IBBHQQ", len(name) + 2, 0x12, 0, 0, 0, 0)
    contents = [
        (b".shstrtab", _STRTAB, 0, 0, b""),
        (b".strtab", _STRTAB, 0, 0, b"\0" + name + b"\0" + named.encode() + b"\0"),
        (b".symtab", _SYMTAB, 2, 1, symbols),
        (b".nv.info." + name, _ATTRIBUTES, 3, 5, attributes),
        (b".text." + name, _PROGBITS, 3, 0, b"".join(struct.pack("<QQ", *word) for word in instructions)),
        (b".rela.text." + name, _RELA, 3, 5, relocations),
        (b".nv.constant4", _PROGBITS, 0, 0, bytes(8)),
        (b".rel.nv.constant4", _REL, 3, 7, struct.pack("<QQ", 0, 2 << 32 | 2) if named else b""),
    ]
    names = b"\0" + b"".join(one[0] + b"\0" for one in contents)
    contents[0] = (*contents[0][:4], names)
    rows, body, place = bytes(64), b"", 1
    for title, kind, link, info, content in contents:
        rows += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, 64 + len(body), len(content), link, info, 1, 0)
        body += content
        place += len(title) + 1
    identity = b"\x7fELF" + bytes([2, 1, 1, 65, 8]) + bytes(7)
    table = 64 + len(body)
    flags = 0x6000004 | architecture << 8
    header = struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, flags, 64, 0, 0, 64, 1 + len(contents), 1)
    return identity + header + body + rows


def container(codes: list[tuple[int, bytes, str]]) -> bytes:
    """Return a container as nvcc 13 lays it out, of machine code for architectures, compressed by `zstd`, `lz4_raw`,
    or not at all.
    """
    body = b""
    for architecture, code, compression in codes:
        packed = pyarrow.Codec(compression).compress(code, asbytes=True) if compression else code
        flags = {"": 0x11, "lz4_raw": 0x2011, "zstd": 0x8011}[compression]
        sizes = (len(packed), len(code)) if compression else (0, 0)
        padded = packed + bytes(-len(packed) % 8)
        body += struct.pack("<HHIQIIIIIIQQQ", 2, 0x101, 64, len(padded), sizes[0], 0, 0, architecture, 0, 0, flags, 0,
                            sizes[1])  # fmt: skip
        body += padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
