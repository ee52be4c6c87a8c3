"""The parts of a recording's file: chunks of rows of one length, which are tables, and of records of any length."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.errors import CauseError
from ffm.instrument.recording.checks import LARGEST
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.packing import unpack
from ffm.instrument.recording.packing_kernels import unpack_records
from ffm.model.compiled import compiled
from ffm.model.side_by_side import side_by_side

Table = NDArray[Any]

Chunk = tuple[Any, NDArray[np.uint8]]
"""The header of a chunk, and the bytes of its complete records; if they are packed, all bytes after the header."""


class DamageError(CauseError):
    """What is wrong with a recording, as a phrase."""


TABLES = {
    "operations": ("ffm_operation", "FFM_CHUNK_OPERATIONS"),
    "contents": ("ffm_content", "FFM_CHUNK_CONTENTS"),
    "parts": ("ffm_part", "FFM_CHUNK_PARTS"),
    "accesses": ("ffm_access", "FFM_CHUNK_ACCESSES"),
    "extents": ("ffm_extent", "FFM_CHUNK_EXTENTS"),
    "gpu_times": ("ffm_gpu_time", "FFM_CHUNK_GPU_TIMES"),
    "host_blocks": ("ffm_host_block", "FFM_CHUNK_HOST_BLOCKS"),
    "host_releases": ("ffm_host_release", "FFM_CHUNK_HOST_RELEASES"),
    "host_uses": ("ffm_host_use", "FFM_CHUNK_HOST_USES"),
    "stretches": ("ffm_stretch", "FFM_CHUNK_STRETCHES"),
    "resumptions": ("ffm_resumption", "FFM_CHUNK_RESUMPTIONS"),
    "lives": ("ffm_life", "FFM_CHUNK_LIVES"),
    "lock_waits": ("ffm_lock_wait", "FFM_CHUNK_LOCK_WAITS"),
    "processor_times": ("ffm_processor_time", "FFM_CHUNK_PROCESSOR_TIMES"),
    "contexts": ("ffm_context", "FFM_CHUNK_CONTEXTS"),
    "joined": ("ffm_joined", "FFM_CHUNK_JOINED"),
    "given": ("ffm_given", "FFM_CHUNK_GIVEN"),
}
"""The tables of a recording: the structure of their rows, and the kind of chunk that contains them."""

MANY_ROWS = 200_000
"""Of more rows, compiled code saves more time than it takes to load it, which is about 0.1 s."""

PACKED = {"operations", "contents", "parts", "accesses", "extents", "gpu_times"}
"""Those whose rows are packed."""

PACKED_KINDS = {constant(TABLES[name][1]) for name in PACKED}


def read_chunks(data: NDArray[np.uint8], offset: int, end: int) -> list[Chunk]:
    """Return the chunks from a position of a file on; `end` is the writer's. One that was never written ends the file.

    Raises:
        DamageError: A chunk does not lie within the file.
    """
    if end > len(data):
        raise DamageError(f"of its {end} bytes {len(data)} are here")
    layout = record_type("ffm_chunk")
    found: list[Chunk] = []
    while offset + layout.itemsize <= end:
        header = data[offset : offset + layout.itemsize].view(layout)[0]
        capacity = int(header["capacity"])
        if capacity == 0:
            break
        start, used = offset + layout.itemsize, int(header["used"])
        if not layout.itemsize <= capacity <= end - offset or used > capacity - layout.itemsize:
            raise DamageError(f"the chunk at byte {offset} is larger than its place")
        packed = int(header["kind"]) in PACKED_KINDS
        found.append((header, data[start : offset + capacity if packed else start + used]))
        offset += capacity
    return found


def read_table(chunks: Iterable[Chunk], name: str) -> Table:
    """Concatenate all rows of one of `TABLES`, with their thread and, for operations, their index within it.

    Raises:
        DamageError: A chunk does not hold whole rows.
        PackingError: Packed rows do not lie within their chunk.
    """
    structure, kind = TABLES[name]
    packed, numbered = name in PACKED, name == "operations"
    layout = record_type(structure)
    extra = {"thread": "<u4"} | ({"number": "<u8"} if numbered else {})
    whole = np.dtype([("record", f"V{layout.itemsize}"), *extra.items()])
    assert layout.fields is not None and whole.fields is not None
    of_record = [(name, *layout.fields[name][:2]) for name in layout.names or ()]
    names, formats, offsets = zip(*of_record, *((name, *whole.fields[name][:2]) for name in extra), strict=True)
    wide = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": whole.itemsize})
    chosen = [(header, rows) for header, rows in chunks if header["kind"] == constant(kind)]
    if any(header["first"] >= LARGEST or (not packed and len(rows) % layout.itemsize) for header, rows in chosen):
        raise DamageError(f"a chunk of {structure} does not hold whole records")
    lengths = [int(header["used"]) // (1 if packed else layout.itemsize) for header, _ in chosen]
    table = np.empty(sum(lengths), whole)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    if many := packed and len(table) > MANY_ROWS:
        compiled(unpack_records)  # once, before threads ask for it
    parts = [table[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    def fill(part: Table, header: Any, content: NDArray[np.uint8]) -> None:
        rows = unpack(content, len(part), structure, many=many) if packed else content.view(layout)
        part["record"] = rows.view(f"V{layout.itemsize}")
        part["thread"] = header["thread"]
        if numbered:
            part["number"] = int(header["first"]) + np.arange(len(part), dtype=np.uint64)

    passes = [functools.partial(fill, part, *chunk) for part, chunk in zip(parts, chosen, strict=True)]
    side_by_side(passes, len(table))
    return table.view(wide)


def read_rows(chunks: Iterable[Chunk], kind: str, structure: str) -> Table:
    """Concatenate all records of a kind of chunks that have nothing behind them and are not packed.

    Raises:
        DamageError: A chunk does not hold whole records.
    """
    layout = record_type(structure)
    parts = [rows for header, rows in chunks if header["kind"] == constant(kind)]
    if any(len(rows) % layout.itemsize for rows in parts):
        raise DamageError(f"a chunk of {structure} does not hold whole records")
    return np.concatenate([np.zeros(0, layout), *(rows.view(layout) for rows in parts)])


def read_records(
    chunks: Iterable[Chunk], kind: str, structure: str, more: Callable[[Any], int]
) -> Iterator[tuple[Any, Any, NDArray[np.uint8]]]:
    """Return the records of a kind of chunks as (header of the chunk, record, the bytes that follow the record).

    `more` tells from a record how many bytes follow it; then it is padded to a multiple of eight.

    Raises:
        DamageError: A record does not lie within its chunk.
    """
    layout, cut = record_type(structure), DamageError(f"a record of {structure} is cut")
    for header, content in chunks:
        if header["kind"] != constant(kind):
            continue
        offset = 0
        while offset < len(content):
            begin = offset + layout.itemsize
            if begin > len(content):
                raise cut
            record = content[offset:begin].view(layout)[0]
            end = begin + more(record)
            if end > len(content):
                raise cut
            yield header, record, content[begin:end]
            offset = (end + 7) & ~7
