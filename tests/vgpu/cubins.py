"""Cubins and PTX as nvcc 13.0 makes them, without code: only the description of kernels and variables."""

from __future__ import annotations

import struct

SYMBOLS, STRINGS, NOTHING_IN_FILE, NV_INFO, PROGRAM = 2, 3, 8, 0x70000000, 1
OBJECT, FUNCTION = 1, 2
KERNEL = 0x10
PARAMETER = 0x17

PTX = b"""// Generated
.version 9.0
.target sm_80
.address_size 64
.global .align 4 .b8 counter[40]; /* zero */
.const .align 8 .f64 weights[3] = {1.0, 2.0, 3.0};
.visible .entry scale(
\t.param .u64 .ptr .align 1 scale_param_0, // data
\t.param .u32 scale_param_1,
\t.param .align 8 .b8 scale_param_2[24],
\t.param .u8 scale_param_3
)
.maxntid 128, 1, 1
{
\t.reg .b32 %r<3>;
\t{ ret; }
}
.visible .entry empty() { ret; }
"""
SCALE = [(0, 8), (8, 4), (16, 24), (40, 1)]


def attribute(ordinal: int, offset: int, size: int) -> bytes:
    """Return the attribute that says where a kernel's parameter is."""
    return struct.pack("<BBHIHHI", 4, PARAMETER, 12, 0, ordinal, offset, size << 18 | 0x1F000)


def cubin(
    kernels: dict[str, list[tuple[int, int]]], variables: dict[str, int], *, described: bool = True, machine: int = 190
) -> bytes:
    """Return a cubin with kernels (offsets and sizes of their parameters, in reverse order) and variables (their
    sizes).

    If `described` is false, nothing says where parameters are."""
    names, symbols = bytearray(b"\0"), bytearray(24)
    sections: list[tuple[str, int, int, bytes]] = []
    for name, size in variables.items():
        symbols += struct.pack("<IBBHQQ", len(names), OBJECT, 0, 1, 0, size)
        names += name.encode() + b"\0"
    for name, parameters in {**kernels, "not_a_kernel": []}.items():
        symbols += struct.pack("<IBBHQQ", len(names), FUNCTION, KERNEL if name in kernels else 0, 1, 0, 128)
        names += name.encode() + b"\0"
        if name in kernels and described:
            told = [attribute(ordinal, *place) for ordinal, place in enumerate(parameters)]
            other = struct.pack("<BBH", 3, 0x1B, 0xFF) + struct.pack("<BBHI", 4, 0x36, 4, 8)
            sections.append((f".nv.info.{name}", NV_INFO, 0, other + b"".join(reversed(told)) + other))
    sections = [
        ("", 0, 0, b""),
        (".nv.global", NOTHING_IN_FILE, 0, b""),
        (".strtab", STRINGS, 0, bytes(names)),
        (".symtab", SYMBOLS, 2, bytes(symbols)),
        *sections,
    ]
    return _elf(sections, machine)


def _elf(sections: list[tuple[str, int, int, bytes]], machine: int) -> bytes:
    section_names = bytearray()
    body, headers = bytearray(), bytearray()
    sections = [*sections, (".shstrtab", STRINGS, 0, b"".join(name.encode() + b"\0" for name, *_ in sections) + b"x\0")]
    for name, kind, link, content in sections:
        headers += struct.pack(
            "<IIQQQQIIQQ", len(section_names), kind, 0, 0, 64 + len(body), len(content), link, 0, 1, 0
        )
        section_names += name.encode() + b"\0"
        body += content
    identity = b"\x7fELF\x02\x01\x01\x41" + bytes(8)
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 64 + len(body), 0x5A, 64, 56, 0, 64, len(sections), len(sections) - 1
    )
    return header + bytes(body) + bytes(headers)


def container(*entries: tuple[int, int, int, bytes, int]) -> bytes:
    """Return a container of (kind, architecture, flags, code, plain size) each; the plain size is 0 if the code is not
    compressed.
    """
    body = b""
    for kind, architecture, flags, code, plain in entries:
        padded = code + bytes(-len(code) % 8)
        compressed = len(code) if plain else 0
        body += struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(padded), compressed, 0, 8, 1, architecture)
        body += struct.pack("<IIQQQ", 0, 0, flags, 0, plain) + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
