"""The columnar file of the model's timeline: Arrow IPC, compressed, with each row's line of a sequence beside
it.

Arrow IPC rather than Parquet: it opens in a third of the time, which the viewing commands feel.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.stages.errors import DocumentError

VERSION = b"3"
BATCH_ROWS = 1 << 20
"""Rows written at once: bounds the memory that compression needs beside the columns."""

_TYPES: dict[str, type[np.generic]] = {
    "thread": np.int32,
    "start": np.int64,
    "duration": np.int64,
    "wait": np.int64,
    "gap": np.int64,
    "site": np.int32,
    "kind": np.uint8,
    "problem": np.uint8,
    "first_use": np.int64,
    "occurrences": np.int64,
    "line": np.int32,
}

_WORK_TYPES: dict[str, type[np.generic]] = {
    "action": np.uint8,
    "stream": np.int32,
    "event": np.int32,
    "partner": np.int32,
    "copied": np.int64,
    "measured": np.int64,
}
"""Columns of `DeviceWork`, in files of measured runs."""

_WORK_TABLES = ("process_of_thread", "legacy", "stream_process")
"""Its small tables, which lie in the file's metadata."""


def save_timeline(
    timeline: Timeline, path: Path, line: NDArray[np.int32] | None = None, work: DeviceWork | None = None
) -> None:
    """Write a timeline, whole or not at all, with the rows' lines (`ffm.model.sequences.Membership`), if
    there are any, and with what they do on the GPU, where that is known.

    Without lines no row belongs to a sequence.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa

    from ffm.stages.tables import whole_arrow_file

    columns = {field.name: getattr(timeline, field.name) for field in fields(Timeline)}
    columns["line"] = np.full(len(timeline), -1, np.int32) if line is None else line
    types = dict(_TYPES)
    metadata: dict[str | bytes, str | bytes] = {"ffm.timeline": VERSION, "rows": str(len(timeline))}
    if work is not None:
        types |= _WORK_TYPES
        columns |= {name: getattr(work, name) for name in _WORK_TYPES}
        tables = {name: getattr(work, name).tolist() for name in _WORK_TABLES}
        metadata["ffm.work"] = json.dumps(tables | {"events": work.events})
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name, kind in types.items()], metadata=metadata)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with whole_arrow_file(path) as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for begin in range(0, len(timeline), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            arrays = [pa.array(columns[name][part].astype(kind, copy=False)) for name, kind in types.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def load_timeline(path: Path) -> tuple[Timeline, NDArray[np.int32]]:
    """Read a timeline and its rows' lines. Columns are contiguous and may be written to.

    Raises:
        DocumentError: missing, truncated, or of another kind or version.
    """
    timeline, line, _ = load_results_timeline(path)
    return timeline, line


def load_results_timeline(path: Path) -> tuple[Timeline, NDArray[np.int32], DeviceWork | None]:
    """Read a timeline, its rows' lines, and what they do on the GPU: None in files of imported results.

    Raises:
        DocumentError: missing, truncated, or of another kind or version.
    """
    import pyarrow as pa

    again = "Run `ffm stage analysis` (or `ffm import`) again to make it anew."
    try:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
            metadata = reader.schema.metadata or {}
            if metadata.get(b"ffm.timeline") != VERSION:
                raise DocumentError(f"{path} is not a timeline of version {VERSION.decode()} of this ffm. {again}")
            rows = int(metadata[b"rows"])
            columns = _read_columns(reader, rows, _TYPES | (_WORK_TYPES if b"ffm.work" in metadata else {}))
            tables = json.loads(metadata[b"ffm.work"]) if b"ffm.work" in metadata else None
    except FileNotFoundError:
        raise DocumentError(f"{path} does not exist. {again}") from None
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise DocumentError(f"{path} cannot be read ({error}): it is truncated or damaged. {again}") from error
    line = columns["line"]
    timeline = Timeline(**{field.name: columns[field.name] for field in fields(Timeline)})
    if tables is None:
        return timeline, line, None
    given: dict[str, Any] = {name: columns[name] for name in _WORK_TYPES}
    given |= {name: np.array(tables[name], np.int32) for name in _WORK_TABLES}
    work = DeviceWork(**given, events=int(tables["events"]))
    return timeline, line, work


def _read_columns(reader: Any, rows: int, types: dict[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    """Copy batch by batch into whole columns, so that no second copy of the file is ever in memory."""
    columns = {name: np.empty(rows, kind) for name, kind in types.items()}
    begin = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        for name, column in columns.items():
            column[begin : begin + batch.num_rows] = batch.column(name).to_numpy(zero_copy_only=False)
        begin += batch.num_rows
    return columns
