"""Compressed columnar files beside the analysis: Arrow IPC in batches, whose schema says how many rows there are.

Columns with few different values, or with values that change little, shrink to a tenth; reading them costs less than
computing them. 64-bit numbers are stored in 32 bits if all values of their column fit, and LZ4 compresses them: zstd
would take three times as long for the two files of a run, which would be a quarter smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ffm.model.grouping import parts
from ffm.results.columnar.arrow_batches import Batches
from ffm.results.columnar.columns import Columns, Table
from ffm.results.columnar.tables import mapped_file, whole_arrow_file
from ffm.results.documents.analysis import Analysis

BATCH_ROWS = 1 << 18
"""Rows written at once: bounds the extra memory that compression needs."""

SHORT = np.iinfo(np.int32)
"""What numbers of 64 bits are stored as, if possible."""


@dataclass(frozen=True, slots=True)
class Relative:
    """A column stored as the difference to what is expected of it, part by part: small numbers take fewer bytes."""

    column: NDArray[Any]
    expected: Callable[[slice], NDArray[Any]]

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        difference: NDArray[Any] = self.column[part].astype(np.int64, copy=False) - self.expected(part)
        return difference


def write_compressed(
    columns: Mapping[str, NDArray[Any] | Relative],
    table: Table,
    metadata: Mapping[str | bytes, str | bytes],
    path: Path,
) -> None:
    """Write a table's columns, completely or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    types = {name: _stored_type(columns[name], np.dtype(column.type)) for name, column in table.columns.items()}
    rows = len(columns[next(iter(types))])
    described: dict[str | bytes, str | bytes] = {**metadata, "rows": str(rows)}
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name, kind in types.items()], metadata=described)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with whole_arrow_file(path) as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for begin in range(0, rows, BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            arrays = [pa.array(columns[name][part].astype(kind, copy=False)) for name, kind in types.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _stored_type(column: NDArray[Any] | Relative, kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which a column is stored: a shorter one if all of its numbers fit."""
    if kind != np.int64:
        return kind
    for part in parts(len(column)):
        values = column[part]
        if values.min() < SHORT.min or values.max() > SHORT.max:
            return kind
    return SHORT.dtype


def compressed_batches(path: Path, checksum: str | None) -> Batches:
    """Return the batches of a file beside the analysis; if a checksum is given, check that the file is unchanged.

    Raises:
        DocumentError: It is missing or edited.
        ValueError, pa.ArrowException, OSError: As `Batches`.
    """
    return Batches(mapped_file(path, Analysis, checksum), compressed_rows=BATCH_ROWS)


def read_columns(batches: Batches, table: Table) -> Columns:
    """Copy batch by batch into whole columns, so that memory never holds a second copy of the file. Differences stay
    differences (`Relative`).

    Raises:
        ValueError: The file has other columns or rows.
    """
    kinds = {name: np.dtype(column.type) for name, column in table.columns.items()}
    schema = batches.schema
    stored = {field.name: field.type for field in schema}
    if len(schema) != len(kinds) or stored.keys() != kinds.keys():
        raise ValueError("other columns")
    if any(kind not in _arrow_types(kinds[name]) for name, kind in stored.items()):
        raise ValueError("other types")
    rows = batches.rows
    if int(schema.metadata[b"rows"]) != rows:
        raise ValueError("other rows")
    columns = {name: np.empty(rows, kind) for name, kind in kinds.items()}
    begin = 0
    for batch in batches:
        batch.validate(full=True)
        for name, column in columns.items():
            part = batch.column(name)
            if part.null_count:
                raise ValueError("other values")
            column[begin : begin + batch.num_rows] = part.to_numpy()
        begin += batch.num_rows
    return columns


def _arrow_types(kind: np.dtype[Any]) -> list[Any]:
    """Return Arrow's types for a column: its own and, of 64-bit numbers, the shorter one."""
    return [pa.from_numpy_dtype(one) for one in ((kind, SHORT.dtype) if kind == np.int64 else (kind,))]
