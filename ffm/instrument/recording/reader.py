"""Reads the recording that the collector wrote for one process, up to its last complete record."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.errors import CauseError, RecordingError
from ffm.instrument.recording.checks import LARGEST, flaw
from ffm.instrument.recording.layout import constant, record_type
from ffm.instrument.recording.packing import PackingError, unpack
from ffm.instrument.recording.samples import Samples, decode_samples
from ffm.model.side_by_side import side_by_side
from ffm.regular_file import open_regular

Table = NDArray[Any]

MAGIC = b"FFMTRACE"

MOST_MEMORY = 1 << 47
"""Bytes that a process can address."""


@dataclass(frozen=True, slots=True)
class RecordedModule:
    """A mapped file. `base` is its lowest mapped address."""

    path: str
    build_id: str
    base: int


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """The name of what a handle launches, from `time` until the handle has another one."""

    time: int
    handle: int
    name: str


@dataclass(frozen=True, slots=True)
class RecordedPythonFrame:
    """An active Python function: file, qualified name, line, and column (from 1, or 0 if unknown).

    At an `entry` the interpreter called itself: its evaluation function has a native frame for the Python frames up to
    this one. An entry whose function was not on the stack has no name.
    """

    function: str
    file: str
    line: int
    column: int
    entry: bool


@dataclass(frozen=True, slots=True)
class RecordedStack:
    """A call stack, innermost frame first: (module number or None, offset from its base or address)."""

    key: str
    frames: list[tuple[int | None, int]]
    python: list[RecordedPythonFrame] = field(default_factory=list)
    truncated: bool = False
    """Whether its outer end was cut off because it was deeper than can be recorded."""


MISSING_STACK = RecordedStack(key="0" * 32, frames=[], truncated=True)
"""Placeholder for a stack that was not completely written."""


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
    finished: int
    """When ffm ended the recording while the process ran on; 0 if it lasts to the process's end."""
    unfinished: int
    """Calls that had begun by then and returned later, which are not recorded."""
    kept: int
    """Nanoseconds before its end of which everything is recorded; 0 for all of it."""
    dropped: int
    """Operations that were recorded before that."""
    fault_cost: int
    """Nanoseconds from an access to a watched page to the watch's handler; 0 if nothing was watched."""
    operations: Table
    """`ffm_operation` rows, plus the columns `thread` and `number` (index within its thread)."""
    contents: Table
    """`ffm_content` rows, plus the column `thread` that recorded them."""
    parts: Table
    """`ffm_part` rows, plus the column `thread`."""
    accesses: Table
    extents: Table
    """`ffm_extent` rows: how much of each download was watched, and how much of that was touched."""
    gpu_times: Table
    """`ffm_gpu_time` rows."""
    host_blocks: Table
    """`ffm_host_block` rows, and likewise `ffm_host_release` and `ffm_host_use`."""
    host_releases: Table
    host_uses: Table
    stretches: Table
    """`ffm_stretch` rows: when the run was measured, if only a portion of it was."""
    resumptions: Table
    """`ffm_resumption` rows, plus the column `thread`: how many calls were not recorded before an operation."""
    lives: Table
    """`ffm_life` rows: who started and joined which thread."""
    contexts: Table
    """`ffm_context` rows: the device of each context."""
    kernels: list[RecordedKernel]
    samples: Samples[RecordedPythonFrame]
    """Where threads worked between the operations."""
    stacks: list[RecordedStack]
    modules: list[RecordedModule]
    python_version: str
    """Version of the Python interpreter in the process, such as `3.12.1`; empty if there was none."""
    python_readable: bool
    """Whether its frames could be read."""
    ordinary_memory: bool
    """Whether a kernel received what may be the address of ordinary memory, from which point nothing was watched."""


def read_recordings(folder: Path) -> list[Recording]:
    """Read all recordings in a folder: processes without a rank first, then by rank, and by start time within these.

    So a process has the same index in every run of the program, although ranks start in any order. Those that never
    began (`unbegun_recordings`) are not among them.

    Raises:
        InstrumentError: A file is not a recording, or is of another version or catalogue.
    """
    recordings = [read_recording(path) for path in folder.glob("recording-*.ffm") if not _unbegun(path)]

    def place(recording: Recording) -> tuple[int, int]:
        return (-1 if recording.rank is None else recording.rank, recording.opened)

    return sorted(recordings, key=place)


def unbegun_recordings(folder: Path) -> list[Path]:
    """Return the files of processes that ended, or found the disk full, before they had written their header.

    Such a process has not called the driver: its recording begins before its driver is hooked, or as it is forked.
    """
    return [path for path in folder.glob("recording-*.ffm") if _unbegun(path)]


def _unbegun(path: Path) -> bool:
    """Whether a file has no chunk, and the magic number, which is written last, is not there."""
    try:
        with open_regular(path) as file:
            small = os.fstat(file.fileno()).st_size <= constant("FFM_HEADER_BYTES")
            return small and not any(file.read(len(MAGIC)))
    except OSError:
        return False  # `read_recording` says why


def read_recording(path: Path) -> Recording:
    """Read one recording.

    Raises:
        RecordingError: The file is not a recording, is of another version, or was edited or truncated.
    """
    header_bytes, layout = constant("FFM_HEADER_BYTES"), record_type("ffm_header")
    try:
        with open_regular(path) as file:
            start = file.read(header_bytes)  # before it is mapped: the writer may be active
            data = np.memmap(file, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read as a recording ({error}).") from error
    if len(start) < header_bytes or start[: len(MAGIC)] != MAGIC:
        raise RecordingError(f"{path} is not a recording of ffm.")
    header = np.frombuffer(start, layout, count=1)[0]
    if header["version"] != constant("FFM_VERSION"):
        raise RecordingError(f"{path} has version {header['version']}, but this ffm reads {constant('FFM_VERSION')}.")
    if header["catalogue_digest"].decode(errors="replace") != load_catalogue().digest:
        raise RecordingError(
            f"{path} was recorded with another table of driver functions. Rebuild ffm with `make setup`."
        )
    try:
        chunks = _chunks(data, header_bytes, int(header["file_bytes"]))
        if header["kept"]:  # later chunks take the places of earlier ones
            chunks.sort(key=lambda chunk: int(chunk[0]["first"]))
        return _decoded(path, header, chunks)
    except (_DamageError, PackingError) as damage:
        raise RecordingError(f"{path} was edited or truncated: {damage}.") from damage


class _DamageError(CauseError):
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
    "contexts": ("ffm_context", "FFM_CHUNK_CONTEXTS"),
}
"""The tables of a recording: the structure of their rows, and the kind of chunk that contains them."""

PACKED = {"operations", "contents", "parts", "accesses", "extents", "gpu_times"}
"""Those whose rows are packed."""

PACKED_KINDS = {constant(TABLES[name][1]) for name in PACKED}


def _decoded(path: Path, header: Any, chunks: list[Chunk]) -> Recording:
    tables = {
        name: _table(chunks, structure, kind, packed=name in PACKED, numbered=name == "operations")
        for name, (structure, kind) in TABLES.items()
    }
    _forget_impossible(tables["operations"])
    kept, dropped = min(int(header["kept"]), LARGEST), min(int(header["dropped"]), LARGEST)
    if kept:
        recorded = len(tables["operations"])
        tables["operations"] = _last(tables["operations"], kept, min(int(header["finished"]), LARGEST))
        dropped += recorded - len(tables["operations"])
    modules = _modules(chunks)
    stacks = _stacks(chunks, threads=int(header["threads"]))
    if not header["lost"]:  # otherwise the run is refused, and missing things may still be named
        _check(tables, stacks, modules, threads=int(header["threads"]))
    return Recording(
        path=path,
        process_id=int(header["process_id"]),
        parent_id=int(header["parent_id"]),
        rank=None if header["rank"] < 0 else int(header["rank"]),
        executable=header["executable"].decode(errors="replace"),
        opened=int(header["opened"]),
        threads=int(header["threads"]),
        lost=int(header["lost"]),
        finished=min(int(header["finished"]), LARGEST),
        unfinished=min(int(header["unfinished"]), LARGEST),
        kept=kept,
        dropped=dropped,
        fault_cost=min(int(header["fault_cost"]), LARGEST),
        **tables,
        kernels=_kernels(chunks),
        samples=_samples(chunks, modules=len(modules), threads=int(header["threads"]))
        if not kept
        else _samples(chunks, modules=len(modules), threads=int(header["threads"])).among(tables["operations"]),
        stacks=stacks,
        modules=modules,
        python_version=_python_version(int(header["python_version"])),
        python_readable=bool(header["python_readable"]),
        ordinary_memory=bool(header["ordinary_memory"]),
    )


def _last(operations: Table, nanoseconds: int, finished: int) -> Table:
    """Return the operations that began in the last nanoseconds before a recording was finished, or before its end."""
    if not len(operations):
        return operations
    end = finished or int((operations["start"] + operations["duration"]).max())
    return operations[operations["start"].astype(np.int64) >= end - nanoseconds]


def _forget_impossible(operations: Table) -> None:
    """Set the bytes of calls to 0 that the driver refused because no memory has so many; programs pass any number."""
    operations["bytes"][(operations["result"] != 0) & (operations["bytes"] >= MOST_MEMORY)] = 0


def _check(
    tables: dict[str, Table], stacks: list[RecordedStack], modules: list[RecordedModule], *, threads: int
) -> None:
    if found := flaw(tables, stacks=len(stacks), threads=threads):
        raise _DamageError(found)
    named = (module for stack in stacks for module, _ in stack.frames if module is not None)
    if (highest := max(named, default=-1)) >= len(modules):
        raise _DamageError(f"a stack names the module {highest} of {len(modules)}")


Chunk = tuple[Any, NDArray[np.uint8]]


def _chunks(data: NDArray[np.uint8], offset: int, end: int) -> list[Chunk]:
    """Return each chunk as (header, bytes of its complete records; if they are packed, all after the header).

    A chunk that was never written ends the file.

    `end` is the writer's position.
    """
    if end > len(data):
        raise _DamageError(f"of its {end} bytes {len(data)} are here")
    layout = record_type("ffm_chunk")
    found: list[Chunk] = []
    while offset + layout.itemsize <= end:
        header = data[offset : offset + layout.itemsize].view(layout)[0]
        capacity = int(header["capacity"])
        if capacity == 0:
            break
        start, used = offset + layout.itemsize, int(header["used"])
        if not layout.itemsize <= capacity <= end - offset or used > capacity - layout.itemsize:
            raise _DamageError(f"the chunk at byte {offset} is larger than its place")
        packed = int(header["kind"]) in PACKED_KINDS
        found.append((header, data[start : offset + capacity if packed else start + used]))
        offset += capacity
    return found


def _table(chunks: list[Chunk], structure: str, kind: str, *, packed: bool, numbered: bool) -> Table:
    """Concatenate all rows of a kind, with their thread and, if `numbered`, their index within it."""
    layout = record_type(structure)
    extra = {"thread": "<u4"} | ({"number": "<u8"} if numbered else {})
    whole = np.dtype([("record", f"V{layout.itemsize}"), *extra.items()])
    assert layout.fields is not None and whole.fields is not None
    of_record = [(name, *layout.fields[name][:2]) for name in layout.names or ()]
    names, formats, offsets = zip(*of_record, *((name, *whole.fields[name][:2]) for name in extra), strict=True)
    wide = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": whole.itemsize})
    chosen = [(header, rows) for header, rows in chunks if header["kind"] == constant(kind)]
    if any(header["first"] >= LARGEST or (not packed and len(rows) % layout.itemsize) for header, rows in chosen):
        raise _DamageError(f"a chunk of {structure} does not hold whole records")
    lengths = [int(header["used"]) // (1 if packed else layout.itemsize) for header, _ in chosen]
    table = np.empty(sum(lengths), whole)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    parts = [table[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    def fill(part: Table, header: Any, content: NDArray[np.uint8]) -> None:
        rows = unpack(content, len(part), structure) if packed else content.view(layout)
        part["record"] = rows.view(f"V{layout.itemsize}")
        part["thread"] = header["thread"]
        if numbered:
            part["number"] = int(header["first"]) + np.arange(len(part), dtype=np.uint64)

    passes = [functools.partial(fill, part, *chunk) for part, chunk in zip(parts, chosen, strict=True)]
    side_by_side(passes, len(table))
    return table.view(wide)


def _stacks(chunks: list[Chunk], *, threads: int) -> list[RecordedStack]:
    """Return all stacks by their number. A thread that was killed may omit one that it was about to write."""
    head, frame = record_type("ffm_stack"), record_type("ffm_frame")
    python_frame = record_type("ffm_python_frame")
    none = constant("FFM_NO_MODULE")
    functions = _python_functions(chunks)
    numbered: dict[int, RecordedStack] = {}
    places: dict[tuple[int, int], tuple[int | None, int]] = {}  # stacks have most of their frames in common
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_STACKS"):
            continue
        offset = 0
        while offset < len(content):
            stack = _record(content, offset, head)
            offset += head.itemsize
            end = offset + int(stack["frames"]) * frame.itemsize
            python_end = end + int(stack["python_frames"]) * python_frame.itemsize
            if python_end > len(content):
                raise _DamageError(f"the stack {stack['number']} is cut")
            frames = content[offset:end].view(frame)
            numbered[int(stack["number"])] = RecordedStack(
                key=bytes(stack["key"]).hex(),
                frames=[
                    places.setdefault(place, (None, place[1]) if place[0] == none else place)
                    for place in zip(frames["module"].tolist(), frames["offset"].tolist(), strict=True)
                ],
                python=[_python_frame(row, functions) for row in content[end:python_end].view(python_frame)],
                truncated=bool(stack["truncated"]),
            )
            offset = python_end
    count = max(numbered, default=-1) + 1
    if count > len(numbered) + threads:
        raise _DamageError(f"of {count} stacks it holds {len(numbered)}")
    return [numbered.get(number, MISSING_STACK) for number in range(count)]


def _samples(chunks: list[Chunk], *, modules: int, threads: int) -> Samples[RecordedPythonFrame]:
    functions = _python_functions(chunks)
    try:
        return decode_samples(chunks, lambda row: _python_frame(row, functions), modules=modules, threads=threads)
    except ValueError as error:
        raise _DamageError(str(error)) from error


def _record(content: NDArray[np.uint8], offset: int, layout: np.dtype[Any]) -> Any:
    """Return the record at a position in a chunk; its length is in the record itself."""
    if offset + layout.itemsize > len(content):
        raise _DamageError("a chunk does not hold whole records")
    return content[offset : offset + layout.itemsize].view(layout)[0]


def _python_frame(row: Any, functions: dict[int, tuple[str, str]]) -> RecordedPythonFrame:
    file, function = functions.get(int(row["code"]), ("", ""))
    entry = bool(row["flags"] & constant("FFM_PYTHON_ENTRY"))
    return RecordedPythonFrame(function, file, int(row["line"]), int(row["column"]), entry)


def _python_functions(chunks: list[Chunk]) -> dict[int, tuple[str, str]]:
    """Return (file, qualified name) of each Python function, by its number."""
    head = record_type("ffm_python_code")
    functions: dict[int, tuple[str, str]] = {}
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_PYTHON_CODES"):
            continue
        offset = 0
        while offset < len(content):
            code = _record(content, offset, head)
            offset += head.itemsize
            split = offset + int(code["file_bytes"])
            end = split + int(code["name_bytes"])
            functions[int(code["number"])] = (
                bytes(content[offset:split]).decode(errors="replace"),
                bytes(content[split:end]).decode(errors="replace"),
            )
            offset += (end - offset + 7) & ~7
    return functions


def _kernels(chunks: list[Chunk]) -> list[RecordedKernel]:
    head = record_type("ffm_kernel_name")
    kernels: list[RecordedKernel] = []
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_KERNELS"):
            continue
        offset = 0
        while offset < len(content):
            kernel = _record(content, offset, head)
            offset += head.itemsize
            end = offset + int(kernel["bytes"])
            if end > len(content) or kernel["time"] >= LARGEST:
                raise _DamageError("the name of a kernel is cut")
            name = bytes(content[offset:end]).decode(errors="replace")
            kernels.append(RecordedKernel(int(kernel["time"]), int(kernel["handle"]), name))
            offset = (end + 7) & ~7
    return kernels


def _python_version(version: int) -> str:
    """Return `3.12.1` for the PY_VERSION_HEX 0x030C01F0; a preview shows its level, as in `3.15.0-0xa2`."""
    if version == 0:
        return ""
    level = "" if version & 0xF0 == 0xF0 else f"-{version & 0xFF:#x}"
    return f"{version >> 24}.{version >> 16 & 0xFF}.{version >> 8 & 0xFF}{level}"


def _modules(chunks: list[Chunk]) -> list[RecordedModule]:
    head = record_type("ffm_module")
    modules: list[RecordedModule] = []
    for header, content in chunks:
        if header["kind"] != constant("FFM_CHUNK_MODULES"):
            continue
        offset = 0
        while offset < len(content):
            module = _record(content, offset, head)
            offset += head.itemsize
            length = int(module["path_bytes"])
            path = bytes(content[offset : offset + length]).decode(errors="replace")
            build_id = bytes(module["build_id"][: int(module["build_id_bytes"])]).hex()
            modules.append(RecordedModule(path, build_id, int(module["base"])))
            offset += (length + 7) & ~7
    return modules
