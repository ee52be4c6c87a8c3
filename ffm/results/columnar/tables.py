"""Columnar files: one Arrow table each, uncompressed, so that a reader maps it instead of loading it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

from ffm.regular_file import open_regular
from ffm.results.columnar.arrow_batches import BatchError, Batches
from ffm.results.columnar.columns import ColumnError, Columns, Table
from ffm.results.documents.document import Document
from ffm.results.documents.files import StoredError, edited
from ffm.results.sealing import digest
from ffm.whole_file import whole_file


def write_table(columns: Columns, path: Path) -> None:
    """Write columns as an Arrow file, completely or not at all.

    All rows are one batch: a reader maps the columns of a single batch, but would have to copy those of several.

    Raises:
        OSError: The file cannot be written.
    """
    table = pa.table(columns)
    with whole_arrow_file(path) as file:
        feather.write_feather(table, file, compression="uncompressed", chunksize=max(table.num_rows, 1))


@contextmanager
def whole_arrow_file(path: Path) -> Iterator[Any]:
    """Open a file for Arrow to write to, completely or not at all (`ffm.whole_file`).

    Given a Python file, Arrow would copy every column first. So it opens the file again by its descriptor; by name it
    would open whatever is there by then.
    """
    with whole_file(path) as file, pa.OSFile(f"/proc/self/fd/{file.fileno()}", "wb") as sink:
        yield sink


class MappedColumns(Columns):
    """Columns of a mapped file."""

    def __init__(self, columns: Columns, content: mmap.mmap | bytes) -> None:
        super().__init__(columns)
        self._content = content

    def release(self) -> None:
        """Release their memory; what is used again is read again."""
        release(self._content)


def stored_table(
    document: Document, name: str, table: Table, folder: Path, counts: Mapping[str, int] | None = None
) -> MappedColumns:
    """Map the columns of a document's table, and check that they are unchanged and valid; `counts` is as for
    `Table.check`, where the document alone does not show it.

    Raises:
        DocumentError: The file is missing, edited or truncated, or does not contain such a table.
    """
    path = folder / getattr(document, name)
    content = mapped_file(path, type(document), document.checksums.get(name, ""))
    columns = _mapped_columns(path, type(document), content)
    try:
        table.check(columns, {**counts_of(document), **(counts or {})})
    except ColumnError as error:
        raise StoredError(f"{path} is not as this ffm writes it: {error}.", type(document), path.parent) from error
    release(content)
    return MappedColumns(columns, content)


def counts_of(document: Document) -> dict[str, int]:
    """Return how many targets there are for the references in a document's tables."""
    return {"stacks": len(document.stacks)}


def read_table(path: Path) -> Columns:
    """Map the columns of an Arrow file, whatever they are.

    Raises:
        DocumentError: The file is missing or damaged.
    """
    return _mapped_columns(path, Document, mapped_file(path, Document, None))


def release(content: mmap.mmap | bytes) -> None:
    """Release the memory of a mapped file; what is used again is read again."""
    if isinstance(content, mmap.mmap):
        content.madvise(mmap.MADV_DONTNEED)


def _mapped_columns(path: Path, kind: type[Document], content: mmap.mmap | bytes) -> Columns:
    try:
        batches = Batches(content)
        table = pa.Table.from_batches(batches, batches.schema)
        table.validate(full=True)
    except (pa.ArrowException, BatchError, OSError, ValueError) as error:
        raise edited(kind, path) from error
    if any(column.null_count for column in table.columns):
        raise edited(kind, path)
    return {name: _column(table.column(name), content) for name in dict.fromkeys(table.column_names)}


def _column(column: Any, content: mmap.mmap | bytes) -> NDArray[Any]:
    """Return a column of a file as an array. One of a single batch refers to the content, and may be written to if that
    is mapped: Numba compiles kernels once more for arrays that may not.
    """
    if column.num_chunks != 1 or not len(column) or pa.types.is_boolean(column.type):  # truth values are packed
        return np.asarray(column)
    values = column.chunk(0).buffers()[1]
    begin = values.address - pa.py_buffer(content).address
    return np.frombuffer(content, column.type.to_pandas_dtype(), len(column), begin)


def mapped_file(path: Path, kind: type[Document], checksum: str | None) -> mmap.mmap | bytes:
    """Map a file next to a document of some kind and, if a checksum is given, check that it is unchanged.

    Raises:
        DocumentError: It is missing, cannot be read, or is a different file than the document names.
    """
    try:
        with open_regular(path) as file:
            empty = not os.fstat(file.fileno()).st_size
            # Writing to it would change this process's memory, and not the file.
            content = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise StoredError(f"{path} does not exist.", kind, path.parent) from None
    except OSError as error:
        raise StoredError(f"{path} cannot be read: {error.strerror}.", kind, path.parent) from error
    if checksum is not None and digest(content) != checksum:
        raise edited(kind, path)
    return content
