"""How far recordings have got while the program is still running, and how to end them before it ends."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ffm.instrument.recording.layout import MAGIC, constant, record_type
from ffm.instrument.recording.packing import CONTROL, first_number

LARGEST_WORD = 8
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one process has recorded so far. Times are CLOCK_MONOTONIC nanoseconds."""

    place: tuple[int, int]
    """Its rank and when its recording began, by which recordings are sorted."""
    operations: int
    first: int
    """When the first recorded driver call began; 0 if there is none yet."""


def progress_of(folder: Path) -> list[Progress]:
    """Return how far each recording in a folder is, in the order in which they are read after the run."""
    found = [progress for path in folder.glob("recording-*.ffm") if (progress := _progress(path)) is not None]
    return sorted(found, key=lambda progress: progress.place)


def finish_recordings(folder: Path, now: int) -> None:
    """End the recordings in a folder at a time; one that has ended stays as it is.

    Their writers see it in the mapped header, and record nothing from then on.
    """
    layout = record_type("ffm_header")
    assert layout.fields is not None
    offset = int(layout.fields["finished"][1])
    for path in folder.glob("recording-*.ffm"):
        with suppress(OSError, ValueError), path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size >= layout.itemsize and file.read(len(MAGIC)) == MAGIC:
                with mmap.mmap(file.fileno(), constant("FFM_HEADER_BYTES")) as header:
                    place = np.frombuffer(header, "<u8", 1, offset)
                    place[0] = place[0] or now
                    del place  # the mapping cannot be closed while something refers to it


def _progress(path: Path) -> Progress | None:
    """Return how far a recording is; None if it has not begun, or has vanished."""
    header_type = record_type("ffm_header")
    try:
        with path.open("rb") as file:
            start = file.read(header_type.itemsize)
            if len(start) < header_type.itemsize or start[: len(MAGIC)] != MAGIC:
                return None
            header = np.frombuffer(start, header_type, 1)[0]
            chunks = list(_chunks_of_operations(file.fileno(), int(header["file_bytes"])))
    except OSError:
        return None
    rank = -1 if header["rank"] < 0 else int(header["rank"])
    return Progress(
        place=(rank, int(header["opened"])),
        operations=sum(count for count, _ in chunks),
        first=min((began for _, began in chunks), default=0),
    )


def _chunks_of_operations(file: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield, for each chunk that contains operations, how many, and when the first one began."""
    chunk_type = record_type("ffm_chunk")
    offset = constant("FFM_HEADER_BYTES")
    while offset + chunk_type.itemsize <= end:
        read = os.pread(file, chunk_type.itemsize + LARGEST_WORD, offset)
        if len(read) < chunk_type.itemsize:
            return
        chunk = np.frombuffer(read, chunk_type, 1)[0]
        capacity, count = int(chunk["capacity"]), int(chunk["used"])
        if chunk["kind"] == constant("FFM_CHUNK_OPERATIONS") and count:
            control = os.pread(file, CONTROL.itemsize, offset + capacity - CONTROL.itemsize)
            yield count, first_number(int.from_bytes(control, "little"), read[chunk_type.itemsize :])
        if capacity == 0:
            return
        offset += capacity
