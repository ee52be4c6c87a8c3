"""The parts into which a compiler split a function, in modules whose symbols name only the first part.

When optimizing with a profile, compilers move rarely executed code elsewhere (`.cold`). Stripped modules keep no name
for that part, but its location and size remain in `.eh_frame` (Linux Standard Base, `.eh_frame_hdr`), and the
function's own code jumps there.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

from ffm.regular_file import open_regular

_USUAL_ENCODINGS = b"\x01\x1b\x03\x3b"
"""Version 1, then encodings: pointer relative to its place, 4-byte count, sorted 4-byte offsets from the header."""

_CALL_FRAME_ADDRESS = (0x0C, 0x0E, 0x0F)
"""DW_CFA_def_cfa, DW_CFA_def_cfa_offset and DW_CFA_def_cfa_expression (DWARF 5, section 7.24)."""


def split_parts(path: Path, function: str) -> list[range]:
    """Return the link-time addresses of the parts of an exported function, the named one first.

    Empty if the module does not export it. Only the named part is found if the module has no `.eh_frame_hdr` of the
    usual kind.

    Raises:
        OSError: The file cannot be read.
    """
    with open_regular(path) as stream:
        elf = ELFFile(stream)
        dynamic: Any = elf.get_section_by_name(".dynsym")
        symbols = dynamic.get_symbol_by_name(function) if dynamic is not None else None
        if not symbols or not symbols[0]["st_size"]:
            return []
        start, size = int(symbols[0]["st_value"]), int(symbols[0]["st_size"])
        parts = [range(start, start + size)]
        image = _Image(elf)
        frames = _FrameTable(image, elf.get_section_by_name(".eh_frame_hdr"))
        for target in _jumps_out(image.read(start, size), parts[0]):
            part = frames.part_around(target)
            if part is not None and not any(target in known for known in parts):
                parts.append(part)
        return parts


class _Image:
    """The bytes of a module by link-time address."""

    def __init__(self, elf: Any) -> None:
        self._segments = [
            (int(segment["p_vaddr"]), segment.data()) for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]
        ]

    def read(self, address: int, size: int) -> bytes:
        for start, data in self._segments:
            if start <= address < start + len(data):
                return bytes(data[address - start : address - start + size])
        return b""


def _jumps_out(code: bytes, part: range) -> list[int]:
    """Return the targets outside a part of the direct jumps in it."""
    import capstone  # for all architectures, which takes longer than most stages need for the rest of their work

    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.skipdata = True
    targets: dict[int, None] = {}
    for _, _, mnemonic, operand in decoder.disasm_lite(code, part.start):
        if mnemonic.startswith("j") and operand.startswith("0x"):
            target = int(operand, 16)
            if target not in part:
                targets[target] = None
    return list(targets)


class _FrameTable:
    """What `.eh_frame` describes, found through its sorted index."""

    def __init__(self, image: _Image, header: Any) -> None:
        self._image = image
        self._starts: list[int] = []
        self._descriptions: list[int] = []
        if header is None or not (content := header.data()).startswith(_USUAL_ENCODINGS):
            return
        base = int(header["sh_addr"])
        (count,) = struct.unpack_from("<I", content, 8)
        table = np.frombuffer(content, "<i4", 2 * count, 12).astype(np.int64).reshape(-1, 2) + base
        self._starts, self._descriptions = table[:, 0].tolist(), table[:, 1].tolist()

    def part_around(self, address: int) -> range | None:
        """Return the part of a function around an address, if it is entered only by jumps.

        At a function's start the call frame is where the calling convention puts it, so its description need not
        mention it. A part that is jumped to starts with the frame that its function had set up.
        """
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        # Length, distance to the common part, start, size, then the (empty) augmentation and the instructions.
        description = self._image.read(self._descriptions[index], 64)
        _, _, _, size = struct.unpack_from("<IIiI", description)
        instructions = description[17 + description[16] :]
        start = self._starts[index]
        if address >= start + size or not instructions or instructions[0] not in _CALL_FRAME_ADDRESS:
            return None
        return range(start, start + size)
