"""Reads the recording that the collector wrote for one process, up to its last complete record."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ffm.driver.catalogue import load_catalogue
from ffm.errors import RecordingError
from ffm.instrument.recording.checks import LARGEST, flaw
from ffm.instrument.recording.chunks import TABLES, Chunk, DamageError, Table, read_chunks, read_table
from ffm.instrument.recording.layout import MAGIC, constant, record_type
from ffm.instrument.recording.names import RecordedKernel, RecordedModule, read_kernels, read_modules
from ffm.instrument.recording.packing import PackingError
from ffm.instrument.recording.samples import Samples, decode_samples
from ffm.instrument.recording.stacks import RecordedStacks, read_python_functions, read_stacks
from ffm.regular_file import open_regular

MOST_MEMORY = 1 << 47
"""Bytes that a process can address."""


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
    lock_waits: Table
    """`ffm_lock_wait` rows: which thread waited until another one let something go."""
    processor_times: Table
    """`ffm_processor_time` rows: how long threads had a processor, and waited for one."""
    contexts: Table
    """`ffm_context` rows: the device of each context."""
    joined: Table
    """`ffm_joined` rows: which device memory leads to which."""
    given: Table
    """`ffm_given` rows: the device memory that lists of parameters name."""
    kernels: list[RecordedKernel]
    samples: Samples
    """Where threads worked between the operations."""
    stacks: RecordedStacks
    modules: list[RecordedModule]
    python_version: str
    """Version of the Python interpreter in the process, such as `3.12.1`; empty if there was none."""
    python_readable: bool
    """Whether its frames could be read."""
    ordinary_memory: bool
    """Whether a kernel received what may be the address of ordinary memory, from which point nothing was watched."""
    ordinary_kernel: str
    """The kernel's name, or the start of a long one; empty if it is not known."""
    ordinary_offset: int
    """Bytes from the start of its parameters, where that is, if its cause is `FFM_ORDINARY_USES` or `..._NO_CODE`."""
    ordinary_cause: int
    """`FFM_ORDINARY_...`; 0 if there was none."""


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
        chunks = read_chunks(data, header_bytes, int(header["file_bytes"]))
        if header["kept"]:  # later chunks take the places of earlier ones
            chunks.sort(key=lambda chunk: int(chunk[0]["first"]))
        return _decoded(path, header, chunks)
    except (DamageError, PackingError) as damage:
        raise RecordingError(f"{path} was edited or truncated: {damage}.") from damage


def _decoded(path: Path, header: Any, chunks: list[Chunk]) -> Recording:
    tables = {name: read_table(chunks, name) for name in TABLES}
    _forget_impossible(tables["operations"])
    kept, dropped = min(int(header["kept"]), LARGEST), min(int(header["dropped"]), LARGEST)
    if kept:
        recorded = len(tables["operations"])
        tables["operations"] = _last(tables["operations"], kept, min(int(header["finished"]), LARGEST))
        dropped += recorded - len(tables["operations"])
    threads = int(header["threads"])
    modules, functions = read_modules(chunks), read_python_functions(chunks)
    try:
        stacks = read_stacks(chunks, functions, threads=threads)
        samples = decode_samples(chunks, functions, modules=len(modules), threads=threads)
        _check(tables, stacks, modules, threads=threads)
    except DamageError:
        if not header["lost"]:
            raise
        # The run is refused because of what is lost; what is left may name it.
        stacks = read_stacks([], functions, threads=threads)
        samples = decode_samples([], functions, modules=len(modules), threads=threads)
    return Recording(
        path=path,
        process_id=int(header["process_id"]),
        parent_id=int(header["parent_id"]),
        rank=None if header["rank"] < 0 else int(header["rank"]),
        executable=header["executable"].decode(errors="replace"),
        opened=int(header["opened"]),
        threads=threads,
        lost=int(header["lost"]),
        finished=min(int(header["finished"]), LARGEST),
        unfinished=min(int(header["unfinished"]), LARGEST),
        kept=kept,
        dropped=dropped,
        fault_cost=min(int(header["fault_cost"]), LARGEST),
        **tables,
        kernels=read_kernels(chunks),
        samples=samples.among(tables["operations"]) if kept else samples,
        stacks=stacks,
        modules=modules,
        python_version=_python_version(int(header["python_version"])),
        python_readable=bool(header["python_readable"]),
        ordinary_memory=bool(header["ordinary_memory"]),
        ordinary_kernel=header["ordinary_kernel"].decode(errors="replace"),
        ordinary_offset=int(header["ordinary_offset"]),
        ordinary_cause=int(header["ordinary_cause"]),
    )


def _last(operations: Table, nanoseconds: int, finished: int) -> Table:
    """Return the operations that began in the last nanoseconds before a recording was finished, or before its end."""
    if not len(operations):
        return operations
    end = finished or int((operations["start"] + operations["duration"]).max())
    return operations[operations["start"].astype(np.int64) >= end - nanoseconds]


def _forget_impossible(operations: Table) -> None:
    """Set the bytes to 0 of calls that the driver refused because no memory is that large; programs pass any number."""
    refused = np.flatnonzero(operations["result"])
    operations["bytes"][refused[operations["bytes"][refused] >= MOST_MEMORY]] = 0


def _check(tables: dict[str, Table], stacks: RecordedStacks, modules: list[RecordedModule], *, threads: int) -> None:
    if found := flaw(tables, stacks=len(stacks), threads=threads):
        raise DamageError(found)
    named = (module for module, _ in stacks.places if module is not None)
    if (highest := max(named, default=-1)) >= len(modules):
        raise DamageError(f"a stack names the module {highest} of {len(modules)}")


def _python_version(version: int) -> str:
    """Return `3.12.1` for the PY_VERSION_HEX 0x030C01F0; a preview shows its level, as in `3.15.0-0xa2`."""
    if version == 0:
        return ""
    level = "" if version & 0xF0 == 0xF0 else f"-{version & 0xFF:#x}"
    return f"{version >> 24}.{version >> 16 & 0xFF}.{version >> 8 & 0xFF}{level}"
