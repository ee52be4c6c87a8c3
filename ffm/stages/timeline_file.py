"""The columnar file of the model's timeline: Arrow IPC, compressed, with each row's line of a sequence beside
it.

Arrow IPC rather than Parquet: it opens in a third of the time, which the viewing commands feel.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.timeline import Timeline
from ffm.stages.errors import DocumentError

VERSION = b"1"
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


def save_timeline(timeline: Timeline, path: Path, line: NDArray[np.int32] | None = None) -> None:
    """Write a timeline, whole or not at all, with the rows' lines (`ffm.model.sequences.Membership`), if
    there are any.

    Without lines no row belongs to a sequence.
    """
    import pyarrow as pa

    columns = {field.name: getattr(timeline, field.name) for field in fields(Timeline)}
    columns["line"] = np.full(len(timeline), -1, np.int32) if line is None else line
    schema = pa.schema(
        [(name, pa.from_numpy_dtype(kind)) for name, kind in _TYPES.items()],
        metadata={"ffm.timeline": VERSION, "rows": str(len(timeline))},
    )
    partial = path.with_name(path.name + ".partial")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for begin in range(0, len(timeline), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            arrays = [pa.array(columns[name][part].astype(kind, copy=False)) for name, kind in _TYPES.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    partial.replace(path)


def load_timeline(path: Path) -> tuple[Timeline, NDArray[np.int32]]:
    """Read a timeline and its rows' lines. Columns are contiguous and may be written to.

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
            columns = _read_columns(reader, int(metadata[b"rows"]))
    except FileNotFoundError:
        raise DocumentError(f"{path} does not exist. {again}") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DocumentError(f"{path} cannot be read ({error}): it is truncated or damaged. {again}") from error
    line = columns.pop("line")
    return Timeline(**columns), line


def _read_columns(reader: Any, rows: int) -> dict[str, NDArray[Any]]:
    """Copy batch by batch into whole columns, so that no second copy of the file is ever in memory."""
    columns = {name: np.empty(rows, kind) for name, kind in _TYPES.items()}
    begin = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        for name, column in columns.items():
            column[begin : begin + batch.num_rows] = batch.column(name).to_numpy(zero_copy_only=False)
        begin += batch.num_rows
    return columns
