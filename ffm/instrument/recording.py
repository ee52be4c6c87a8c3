"""Reads the recording that the collector left for one process, up to its last complete record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.errors import InstrumentError
from ffm.instrument.layout import constant, record_type

Table = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordedModule:
    """A mapped file. `base` is its lowest mapped address."""

    path: str
    build_id: str
    base: int


@dataclass(frozen=True, slots=True)
class RecordedStack:
    """A call stack, innermost frame first: (module number or None, offset from its base or address)."""

    key: str
    frames: list[tuple[int | None, int]]


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that one process recorded. Tables are structured arrays with the fields of `layout.h`."""

    path: Path
    process_id: int
    parent_id: int
    rank: int | None
    executable: str
    opened: int
    """CLOCK_MONOTONIC nanoseconds at which the recording began."""
    threads: int
    lost: int
    fault_cost: int
    """Nanoseconds from an access to a watched page to the watch's handler; 0 where nothing was watched."""
    operations: Table
    """`ffm_operation` rows with the columns `thread` and `number` (place within its thread) added."""
    contents: Table
    """`ffm_content` rows with the column `thread`, which recorded them, added."""
    parts: Table
    """`ffm_part` rows with the column `thread` added."""
    accesses: Table
    stacks: list[RecordedStack]
    modules: list[RecordedModule]


def read_recordings(folder: Path) -> list[Recording]:
    """Read all recordings in a folder, in order of their processes' start.

    Raises:
        InstrumentError: a file is no recording, or of another version or catalogue.
    """
    recordings = [read_recording(path) for path in folder.glob("recording-*.ffm")]
    return sorted(recordings, key=lambda recording: recording.opened)


def read_recording(path: Path) -> Recording:
    """Read one recording.

    Raises:
        InstrumentError: the file is no recording, is cut inside a chunk header, or of another version.
    """
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise InstrumentError(f"{path} cannot be read as a recording ({error}). Run the stage again.") from error
    header_bytes = constant("FFM_HEADER_BYTES")
    if len(data) < header_bytes or bytes(data[:8]) != b"FFMTRACE":
        raise InstrumentError(f"{path} is not a recording of ffm. Run the stage again.")
    header = data[: record_type("ffm_header").itemsize].view(record_type("ffm_header"))[0]
    if header["version"] != constant("FFM_VERSION"):
        raise InstrumentError(
            f"{path} has version {header['version']}; this ffm reads {constant('FFM_VERSION')}. Run the stage again."
        )
    if header["catalogue_digest"].decode() != load_catalogue().digest:
        raise InstrumentError(
            f"{path} was recorded with another table of driver functions. Rebuild with `make setup`, and run the "
            "stage again."
        )
    chunks = _chunks(data, header_bytes, min(int(header["file_bytes"]), len(data)))
    return Recording(
        path=path,
        process_id=int(header["process_id"]),
        parent_id=int(header["parent_id"]),
        rank=None if header["rank"] < 0 else int(header["rank"]),
        executable=header["executable"].decode(errors="replace"),
        opened=int(header["opened"]),
        threads=int(header["threads"]),
        lost=int(header["lost"]),
        fault_cost=int(header["fault_cost"]),
        operations=_table(chunks, "ffm_operation", "FFM_CHUNK_OPERATIONS", numbered=True),
        contents=_table(chunks, "ffm_content", "FFM_CHUNK_CONTENTS", numbered=False),
        parts=_table(chunks, "ffm_part", "FFM_CHUNK_PARTS", numbered=False),
        accesses=_table(chunks, "ffm_access", "FFM_CHUNK_ACCESSES", numbered=False),
        stacks=_stacks(chunks),
        modules=_modules(chunks),
    )


Chunk = tuple[Any, NDArray[np.uint8]]


def _chunks(data: NDArray[np.uint8], offset: int, end: int) -> list[Chunk]:
    """Each chunk as (header, bytes of its complete records). A chunk that was never written ends the file."""
    layout = record_type("ffm_chunk")
    found: list[Chunk] = []
    while offset + layout.itemsize <= end:
        header = data[offset : offset + layout.itemsize].view(layout)[0]
        capacity = int(header["capacity"])
        if capacity == 0:
            break
        start = offset + layout.itemsize
        found.append((header, data[start : start + int(header["used"])]))
        offset += capacity
    return found


def _table(chunks: list[Chunk], structure: str, kind: str, *, numbered: bool) -> Table:
    """Concatenate all rows of a kind, with their thread and, if wanted, their number within it."""
    layout = record_type(structure)
    extra = [("thread", "<u4")] + ([("number", "<u8")] if numbered else [])
    wide = np.dtype(
        {
            "names": [*(layout.names or ()), *(name for name, _ in extra)],
            "formats": [layout[name] for name in layout.names or ()] + [form for _, form in extra],
        }
    )
    wanted = [(header, rows.view(layout)) for header, rows in chunks if header["kind"] == constant(kind)]
    table = np.empty(sum(len(rows) for _, rows in wanted), wide)
    position = 0
    for header, rows in wanted:
        part = table[position : position + len(rows)]
        for name in layout.names or ():
            part[name] = rows[name]
        part["thread"] = header["thread"]
        if numbered:
            part["number"] = int(header["first"]) + np.arange(len(rows), dtype=np.uint64)
        position += len(rows)
    return table


def _stacks(chunks: list[Chunk]) -> list[RecordedStack]:
    head, frame = record_type("ffm_stack"), record_type("ffm_frame")
    none = constant("FFM_NO_MODULE")
    numbered: dict[int, RecordedStack] = {}
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_STACKS"):
            continue
        offset = 0
        while offset < len(content):
            stack = content[offset : offset + head.itemsize].view(head)[0]
            offset += head.itemsize
            end = offset + int(stack["frames"]) * frame.itemsize
            frames = content[offset:end].view(frame)
            numbered[int(stack["number"])] = RecordedStack(
                key=bytes(stack["key"]).hex(),
                frames=[
                    (None if module == none else int(module), int(place))
                    for module, place in zip(frames["module"], frames["offset"], strict=True)
                ],
            )
            offset = end
    return [numbered[number] for number in sorted(numbered)]


def _modules(chunks: list[Chunk]) -> list[RecordedModule]:
    head = record_type("ffm_module")
    modules: list[RecordedModule] = []
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_MODULES"):
            continue
        offset = 0
        while offset < len(content):
            module = content[offset : offset + head.itemsize].view(head)[0]
            offset += head.itemsize
            length = int(module["path_bytes"])
            path = bytes(content[offset : offset + length]).decode(errors="replace")
            build_id = bytes(module["build_id"][: int(module["build_id_bytes"])]).hex()
            modules.append(RecordedModule(path, build_id, int(module["base"])))
            offset += (length + 7) & ~7
    return modules
