"""Reads packed records one after the other, in the subset of Python that Numba compiles. Nothing is compiled here.

For many records this takes an eighth of the time of `packing.py` alone, which visits all of them for each word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inner

Columns = NDArray[Any]


def unpack_records(
    written: Columns, controls: Columns, slots: int, sizes: int, operations: bool, records: Columns
) -> bool:
    """Fill in the words of some records; return whether they lie within what was written (`layout.h` says how).

    Args:
        written: the bytes of the differences.
        controls: the records' controls, as 64-bit numbers.
        slots: how many slots there are.
        sizes: the bit of a control where the sizes begin.
        operations: whether the records are operations, whose words begin with start, duration and wait.
        records: receives the words, shape (records, words).
    """
    words = records.shape[1]
    last = np.zeros((slots, words), np.int64)
    place = 0
    moment = 0
    for number in range(len(controls)):
        slot, codes = controls[number] % slots, controls[number] >> sizes
        for word in range(words):
            code = codes >> 2 * word & 3
            if code:
                if place + (1 << code) > len(written):
                    return False
                last[slot, word] += difference(written, place, code)
                place += 1 << code
            records[number, word] = last[slot, word]
        last[slot, 0] = 0
        moment += records[number, 0]
        records[number, 0] = moment
        if operations:  # each counts from the end of the one before
            records[number, 1] += records[number, 2]
            moment += records[number, 1]
    return True


@inner
def difference(written: Columns, place: int, code: int) -> Any:
    """Return the difference that is written at a place in 2, 4 or 8 bytes, for code 1, 2 or 3."""
    folded = np.uint64(0)
    for byte in range(1 << code):
        folded |= np.uint64(written[place + byte]) << np.uint64(8 * byte)
    return np.int64(folded >> np.uint64(1)) ^ -np.int64(folded & np.uint64(1))
