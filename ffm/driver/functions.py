"""Where the functions of a driver library start and end.

`.eh_frame` describes every function and every split-off cold part of one (Linux Standard Base, `.eh_frame` and
`.eh_frame_hdr`). Without it, functions are assumed to start at exports, at the targets of relocated slots and at call
targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.library import Code, Library

# Encodings of .eh_frame_hdr that linkers write: pointer relative to its own place, 4-byte count, sorted
# table of 4-byte offsets from the header. Source: LSB, "DWARF Extensions", DW_EH_PE_*.
_HEADER = (1, 0x1B, 0x03, 0x3B)
# Call frame instructions (DWARF 5, 7.24) that move the frame. If one comes first in a range, the range does not start
# with the frame of a function just entered.
_MOVES_FRAME = (0x0C, 0x0D, 0x0E, 0x0F)
_SAVES_REGISTER = 0x80
_CALL = 0xE8
_PADDING = (0xC3, 0xCC, 0x90, 0x00)


@dataclass(frozen=True, slots=True)
class FunctionRanges:
    """Ranges [start, end) of functions, sorted and disjoint; both arrays have the same length."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    continues: NDArray[np.bool_]
    """Whether a range starts in the middle of a frame: a split-off part that is jumped to, not called."""
    from_unwind_tables: bool
    """Otherwise the ranges are guessed from call targets."""

    def __len__(self) -> int:
        return len(self.starts)

    def containing(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the function that contains each address, or -1; same shape."""
        places = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (places >= 0) & (addresses < self.ends[np.maximum(places, 0)])
        return np.where(inside, places, -1)

    def starting_at(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the function that starts at each address, or -1; same shape."""
        places = np.minimum(np.searchsorted(self.starts, addresses), len(self.starts) - 1)
        return np.where(self.starts[places] == addresses, places, -1)


def function_ranges(library: Library) -> FunctionRanges:
    """Return the functions of `library`."""
    tables = _from_unwind_tables(library)
    return tables if tables is not None else _from_targets(library)


def _from_unwind_tables(library: Library) -> FunctionRanges | None:
    """Return what `.eh_frame` describes, or None if there is no table or it is of an unknown kind."""
    header = library.unwind_index
    image = library.image
    if not header or tuple(image[header : header + 4]) != _HEADER:
        return None
    count = int(image[header + 8 : header + 12].view("<u4")[0])
    table = image[header + 12 : header + 12 + 8 * count].view("<i4").reshape(count, 2).astype(np.int64) + header
    starts, descriptions = table[:, 0], table[:, 1]
    # A description consists of length, distance to the common part, start (relative to its own address) and size, 4
    # bytes each.
    if not np.array_equal(descriptions + 8 + words(image, descriptions + 8), starts):
        return None
    sizes = words(image, descriptions + 12)
    # Then come the length of further data, that data, and the call frame instructions.
    first = image[descriptions + 17 + image[descriptions + 16]]
    continues = np.isin(first, _MOVES_FRAME) | (first & 0xC0 == _SAVES_REGISTER)
    order = np.argsort(starts, kind="stable")
    starts, sizes, continues = starts[order], sizes[order], continues[order]
    keep = (sizes > 0) & library.is_code(starts)
    starts, ends = starts[keep], (starts + sizes)[keep]
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return FunctionRanges(starts, ends, continues[keep], True) if len(starts) else None


def _from_targets(library: Library) -> FunctionRanges:
    """Return functions that start at exports, slot targets and call targets, each reaching to the next."""
    known = np.concatenate((np.array(list(library.exports.values()), dtype=np.int64), library.slot_targets))
    parts = [known[library.is_code(known)]]
    ends = [np.array([code.end for code in library.code], dtype=np.int64)]
    for code in library.code:
        targets = _call_targets(code)
        before = library.image[targets - 1]
        # Bytes that only look like a call rarely point just after the end of a function, or to an aligned address.
        parts.append(targets[np.isin(before, _PADDING) | (targets % 16 == 0)])
    starts = np.unique(np.concatenate(parts))
    borders = np.unique(np.concatenate((starts, *ends)))
    ends_of = borders[np.searchsorted(borders, starts, side="right")]
    return FunctionRanges(starts, ends_of, np.zeros(len(starts), dtype=np.bool_), False)


def _call_targets(code: Code) -> NDArray[np.int64]:
    """Return the targets inside `code` of everything in it that looks like a direct call."""
    places = np.flatnonzero(code.bytes == _CALL)
    targets = code.start + places + 5 + words(code.padded, places + 1)
    return targets[(targets > code.start) & (targets < code.end)]


def words(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the signed 4-byte little-endian words at `places` of `data`; same length as `places`."""
    rows = data[places[:, None] + np.arange(4)]
    return np.ascontiguousarray(rows).view("<i4").reshape(-1).astype(np.int64)
