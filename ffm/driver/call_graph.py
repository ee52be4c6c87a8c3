"""Which functions of a driver library call, jump to or point at which others.

References are found by searching every byte of every function for the encodings of direct calls and jumps, and of
calls, jumps and loads through relocated slots. To be mistaken for one of them, other bytes would have to point by
accident exactly at the start of a function or at a slot, so disassembling would only cost time. Encodings: Intel SDM
volume 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.driver.functions import FunctionRanges, words
from ffm.driver.library import Code, Library


class Reference(IntEnum):
    """How one function refers to another."""

    CALL = 0
    JUMP = 1
    """The caller's frame is gone when the callee runs: a tail call, or a jump to a split-off cold part."""
    SLOT_CALL = 2
    SLOT_JUMP = 3
    SLOT_LOAD = 4
    """The address is loaded from a slot, and then called, jumped to or stored."""


_SHORT_JUMP = 0xEB
# First bytes of what assemblers use to fill gaps: nop, its long forms, int3.
_PADDING = (0x90, 0x66, 0x0F, 0x2E, 0xCC)

JUMPS = (Reference.JUMP, Reference.SLOT_JUMP)


@dataclass(frozen=True, slots=True)
class CallGraph:
    """References between functions, by function number; sorted by caller, then place."""

    functions: FunctionRanges
    callers: NDArray[np.int64]
    callees: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    """Values of `Reference`."""

    def references_of(self, function: int) -> slice:
        """Return the slice of rows with the references of `function`."""
        first, last = np.searchsorted(self.callers, (function, function + 1))
        return slice(int(first), int(last))

    def reachable(self, roots: set[int]) -> set[int]:
        """Return the functions that are reachable from `roots`, which are included."""
        reached = set(roots)
        waiting = list(roots)
        while waiting:
            for callee in self.callees[self.references_of(waiting.pop())].tolist():
                if callee not in reached:
                    reached.add(callee)
                    waiting.append(callee)
        return reached


def build_call_graph(library: Library, functions: FunctionRanges) -> CallGraph:
    """Return the references between `functions` of `library`."""
    targets = functions.starting_at(library.slot_targets)
    slots, slot_functions = library.slots[targets >= 0], targets[targets >= 0]
    places: list[NDArray[np.int64]] = []
    callees: list[NDArray[np.int64]] = []
    kinds: list[NDArray[np.uint8]] = []
    for code in library.code:
        for kind, found, callee in (
            *_direct(code, functions),
            *_through_slots(code, slots, slot_functions),
        ):
            places.append(found)
            callees.append(callee)
            kinds.append(np.full(len(found), kind, dtype=np.uint8))
    place = np.concatenate(places)
    caller = functions.containing(place)
    callee = np.concatenate(callees)
    keep = (caller >= 0) & (caller != callee)
    order = np.lexsort((place[keep], caller[keep]))
    return CallGraph(functions, caller[keep][order], callee[keep][order], np.concatenate(kinds)[keep][order])


_Found = tuple[Reference, NDArray[np.int64], NDArray[np.int64]]
"""Kind of the references, their addresses, the functions they refer to."""


def _direct(code: Code, functions: FunctionRanges) -> list[_Found]:
    """Return the direct calls and jumps in `code`, conditional jumps included."""
    data, following, _ = _shifted(code)
    found: list[_Found] = []
    for kind, matches, length in (
        (Reference.CALL, data == 0xE8, 5),
        (Reference.JUMP, data == 0xE9, 5),
        (Reference.JUMP, (data == 0x0F) & (following & 0xF0 == 0x80), 6),
    ):
        places = np.flatnonzero(matches)
        targets = _pointed_at(code, places, length)
        # If starts are guessed, a function that is only jumped to is unknown: it is part of the range before it.
        guessed = kind is Reference.JUMP and not functions.from_unwind_tables
        numbers = functions.containing(targets) if guessed else functions.starting_at(targets)
        found.append((kind, code.start + places[numbers >= 0], numbers[numbers >= 0]))
    return [*found, _short_tail_jumps(code, functions)]


def _short_tail_jumps(code: Code, functions: FunctionRanges) -> _Found:
    """Return the jumps with a one-byte distance that end a function.

    Elsewhere, a single byte points at the start of the next function by accident too often.
    """
    if functions.from_unwind_tables:
        ends = functions.ends[(functions.ends > code.start + 2) & (functions.ends <= code.end)]
        places = ends - code.start - 2
        places = places[code.bytes[places] == _SHORT_JUMP]
        resolve = functions.starting_at
    else:
        # The guessed range of a function includes the padding after it.
        data, _, after = _shifted(code)
        places = np.flatnonzero((data == _SHORT_JUMP) & np.isin(after, _PADDING))
        resolve = functions.containing
    numbers = resolve(code.start + places + 2 + code.padded[places + 1].astype(np.int8))
    return Reference.JUMP, (code.start + places)[numbers >= 0], numbers[numbers >= 0]


def _through_slots(code: Code, slots: NDArray[np.int64], slot_functions: NDArray[np.int64]) -> list[_Found]:
    """Return the calls, jumps and loads in `code` that name a slot relative to the program counter."""
    if not len(slots):
        return []
    data, following, after = _shifted(code)
    found: list[_Found] = []
    for kind, matches, length in (
        (Reference.SLOT_CALL, (data == 0xFF) & (following == 0x15), 6),
        (Reference.SLOT_JUMP, (data == 0xFF) & (following == 0x25), 6),
        # mov register, [rip + slot]: 48 or 4c, 8b, and an operand without base or index register.
        (Reference.SLOT_LOAD, (data & 0xFB == 0x48) & (following == 0x8B) & (after & 0xC7 == 0x05), 7),
    ):
        places = np.flatnonzero(matches)
        addresses = _pointed_at(code, places, length)
        numbers = np.minimum(np.searchsorted(slots, addresses), len(slots) - 1)
        hits = slots[numbers] == addresses
        found.append((kind, code.start + places[hits], slot_functions[numbers[hits]]))
    return found


def _shifted(code: Code) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the bytes of `code`, each together with the next byte and the one after that."""
    size = len(code.bytes)
    return code.padded[:size], code.padded[1 : size + 1], code.padded[2 : size + 2]


def _pointed_at(code: Code, places: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the addresses that instructions of `length` bytes, ending in a relative word, point at."""
    return code.start + places + length + words(code.padded, places + length - 4)
