"""Compressed columnar files beside the analysis: Arrow IPC in batches, whose schema says how many rows there are.

Columns that take turns from few values, or change little, take a tenth of their bytes; reading them costs less than
computing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ffm.results.columnar.arrow_batches import Batches
from ffm.results.columnar.columns import Columns, Table
from ffm.results.columnar.tables import mapped_file, whole_arrow_file
from ffm.results.documents.analysis import Analysis

BATCH_ROWS = 1 << 18
"""Rows written at once: bounds the extra memory that compression needs."""


def write_compressed(columns: Columns, table: Table, metadata: Mapping[str | bytes, str | bytes], path: Path) -> None:
    """Write a table's columns, completely or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    types = {name: column.type for name, column in table.columns.items()}
    rows = len(columns[next(iter(types))])
    described: dict[str | bytes, str | bytes] = {**metadata, "rows": str(rows)}
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name, kind in types.items()], metadata=described)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with whole_arrow_file(path) as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for begin in range(0, rows, BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            arrays = [pa.array(columns[name][part].astype(kind, copy=False)) for name, kind in types.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def compressed_batches(path: Path, checksum: str | None) -> Batches:
    """Return the batches of a file beside the analysis; if a checksum is given, check that the file is unchanged.

    Raises:
        DocumentError: It is missing or edited.
        ValueError, pa.ArrowException, OSError: As `Batches`.
    """
    return Batches(mapped_file(path, Analysis, checksum), compressed_rows=BATCH_ROWS)


def read_columns(batches: Batches, table: Table) -> Columns:
    """Copy batch by batch into whole columns, so that memory never holds a second copy of the file.

    Raises:
        ValueError: The file has other columns or rows.
    """
    kinds = {name: np.dtype(column.type) for name, column in table.columns.items()}
    schema = batches.schema
    if len(schema) != len(kinds) or {field.name: field.type for field in schema} != _arrow_types(kinds):
        raise ValueError("other columns")
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


def _arrow_types(kinds: Mapping[str, np.dtype[Any]]) -> dict[str, Any]:
    """Return Arrow's types for columns."""
    return {name: pa.from_numpy_dtype(kind) for name, kind in kinds.items()}
