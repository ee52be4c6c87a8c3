"""The parts of a driver's ELF file that are needed to find functions: exports, code, relocated slots, build-id.

Addresses are virtual addresses of the file. They equal offsets from the loaded module's base because the first segment
of a shared library is at 0. Source: System V ABI, AMD64 supplement.
"""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from ffm.errors import FfmError

R_X86_64_64 = 1
R_X86_64_GLOB_DAT = 6
R_X86_64_JUMP_SLOT = 7
R_X86_64_RELATIVE = 8
_EXECUTABLE = 1
# Instructions that a function entry can start with. Source: Intel SDM volume 2, ENDBR64 and JMP.
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
_JUMP_THROUGH_SLOT = b"\xff\x25"

PADDING = 8
"""Zeros after the bytes of a code segment."""

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_STT_FUNC = 2
_RELA = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])


class DriverFileError(FfmError):
    """The driver's file cannot be read as a shared library for this machine."""

    help = "Name NVIDIA's driver for x86-64, `libcuda.so.1`."


@dataclass(frozen=True, slots=True)
class Code:
    """One executable segment."""

    start: int
    padded: NDArray[np.uint8]
    """The bytes of the segment, then `PADDING` zeros, so that its last instructions need no special case."""

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The bytes of the segment."""
        return self.padded[:-PADDING]

    @property
    def end(self) -> int:
        """Address after the last byte."""
        return self.start + len(self.padded) - PADDING


@dataclass(frozen=True, slots=True)
class Library:
    """What was read from the file."""

    path: Path
    build_id: str
    """Hexadecimal; empty if the file has none."""
    exports: dict[str, int]
    """Exported functions and their addresses."""
    code: tuple[Code, ...]
    slots: NDArray[np.int64]
    """Addresses of pointers that the loader fills with addresses inside the library, sorted."""
    slot_targets: NDArray[np.int64]
    """The address written to each of them; same length as `slots`."""
    unwind_index: int
    """Address of `.eh_frame_hdr`; 0 if there is none."""
    image: NDArray[np.uint8]
    """The file as loaded, read-only data included, indexed by address."""

    def behind_slots(self) -> dict[str, int]:
        """Return, for each export that starts with a jump through a slot, the address in that slot.

        Such an entry cannot be patched while the library is being loaded: following the jump would read the slot before
        the loader has filled it.
        """
        targets = dict(zip(self.slots.tolist(), self.slot_targets.tolist(), strict=True))
        found: dict[str, int] = {}
        for name, entry in self.exports.items():
            place = entry + (len(_ENDBR64) if bytes(self.image[entry : entry + 4]) == _ENDBR64 else 0)
            if bytes(self.image[place : place + 2]) != _JUMP_THROUGH_SLOT:
                continue
            distance = int(self.image[place + 2 : place + 6].view("<i4")[0])
            target = targets.get(place + 6 + distance)
            if target is not None:
                found[name] = target
        return found

    def is_code(self, addresses: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of `addresses` are in an executable segment; same shape."""
        inside = np.zeros(addresses.shape, dtype=np.bool_)
        for code in self.code:
            inside |= (addresses >= code.start) & (addresses < code.end)
        return inside


def read_library(path: Path) -> Library:
    """Read the library at `path`; read it again only after it has changed.

    Raises `DriverFileError` if the file is missing or not an x86-64 library.
    """
    try:
        status = path.stat()
        return _read_once(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, ValueError, ELFError) as error:
        raise DriverFileError(f"{path} cannot be read as a shared library: {error}.") from error


@functools.lru_cache(maxsize=2)
def _read_once(path: Path, _state: tuple[int, ...]) -> Library:
    """Read the library at `path` in this state. A process uses one driver, at most two; they are large."""
    return _read(path, path.read_bytes())


def _read(path: Path, content: bytes) -> Library:
    elf = ELFFile(io.BytesIO(content))
    if elf["e_machine"] != "EM_X86_64" or elf["e_type"] != "ET_DYN":
        raise DriverFileError(f"{path} is not an x86-64 shared library.")
    image = _image(elf, np.frombuffer(content, dtype=np.uint8))
    code: list[Code] = []
    unwind_index = 0
    build_id = ""
    dynamic: Any = None
    for segment in elf.iter_segments():
        kind = segment["p_type"]
        if kind == "PT_LOAD" and segment["p_flags"] & _EXECUTABLE:
            start = segment["p_vaddr"]
            loaded = image[start : start + segment["p_filesz"]]
            code.append(Code(start, np.concatenate((loaded, np.zeros(PADDING, dtype=np.uint8)))))
        elif kind == "PT_GNU_EH_FRAME":
            unwind_index = segment["p_vaddr"]
        elif kind == "PT_NOTE":
            build_id = _build_id(segment) or build_id
        elif kind == "PT_DYNAMIC":
            dynamic = segment
    if dynamic is None:
        raise DriverFileError(f"{path} has no dynamic segment.")
    entries = {tag.entry.d_tag: tag.entry.d_val for tag in dynamic.iter_tags()}
    first = entries["DT_SYMTAB"]
    symbols = image[first : first + dynamic.num_symbols() * _SYMBOL.itemsize].view(_SYMBOL)
    functions = symbols[((symbols["info"] & 15) == _STT_FUNC) & (symbols["section"] != 0)]
    exports = {
        _text(image, entries["DT_STRTAB"] + int(name)): int(value)
        for name, value in zip(functions["name"], functions["value"], strict=True)
    }
    slots, targets = _slots(entries, symbols["value"].astype(np.int64), image)
    return Library(path, build_id, exports, tuple(code), slots, targets, unwind_index, image)


def _build_id(segment: Any) -> str:
    """Return the build-id in a segment of notes, or an empty text."""
    ids = [note["n_desc"] for note in segment.iter_notes() if note["n_type"] == "NT_GNU_BUILD_ID"]
    return str(ids[0]) if ids else ""


def _image(elf: ELFFile, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the file's bytes arranged by virtual address, with zeros between and after the segments."""
    segments = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
    image = np.zeros(max(segment["p_vaddr"] + segment["p_memsz"] for segment in segments), dtype=np.uint8)
    for segment in segments:
        start, size, offset = segment["p_vaddr"], segment["p_filesz"], segment["p_offset"]
        image[start : start + size] = content[offset : offset + size]
    return image


def _text(image: NDArray[np.uint8], start: int) -> str:
    """Return the zero-terminated text at `start`."""
    return image[start : start + 512].tobytes().split(b"\0", 1)[0].decode()


def _slots(
    entries: dict[str, int], symbols: NDArray[np.int64], image: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the addresses that relocations fill with addresses of this library, and those addresses.

    `entries` is the dynamic section by tag, `symbols` the value of each dynamic symbol.
    """
    slots: list[NDArray[np.int64]] = []
    targets: list[NDArray[np.int64]] = []
    for table, size in (("DT_RELA", "DT_RELASZ"), ("DT_JMPREL", "DT_PLTRELSZ")):
        if table not in entries or not entries.get(size, 0):
            continue
        rows = image[entries[table] : entries[table] + entries[size]].view(_RELA)
        kinds = (rows["info"] & 0xFFFFFFFF).astype(np.int64)
        relative = kinds == R_X86_64_RELATIVE
        slots.append(rows["offset"][relative].astype(np.int64))
        targets.append(rows["addend"][relative])
        named = np.isin(kinds, (R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT))
        if named.any():
            numbers = (rows["info"][named] >> 32).astype(np.int64)
            values = symbols[np.minimum(numbers, len(symbols) - 1)]
            own = (values != 0) & (numbers < len(symbols))
            slots.append(rows["offset"][named][own].astype(np.int64))
            targets.append((values + rows["addend"][named])[own])
    if "DT_RELR" in entries:
        packed = image[entries["DT_RELR"] : entries["DT_RELR"] + entries["DT_RELRSZ"]].view("<u8")
        places = _unpack_relative(packed)
        slots.append(places)
        targets.append(np.array([image[place : place + 8].view("<i8")[0] for place in places], dtype=np.int64))
    if not slots:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    all_slots, all_targets = np.concatenate(slots), np.concatenate(targets)
    order = np.argsort(all_slots, kind="stable")
    return all_slots[order], all_targets[order]


def _unpack_relative(packed: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the slots of a `DT_RELR` table: even words are addresses, odd words are bitmaps of the next 63 words."""
    places: list[int] = []
    following = 0
    for word in packed.tolist():
        if word & 1:
            places += [following + 8 * bit for bit in range(63) if word >> (bit + 1) & 1]
            following += 63 * 8
        else:
            places.append(word)
            following = word + 8
    return np.array(places, dtype=np.int64)
