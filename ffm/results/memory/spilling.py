"""Columns of very long runs in files, from which the system reads them again where there is too little memory.

The passes of the analysis go through columns from beginning to end, so what does not fit only has to be read. A column
contains the same numbers wherever it is kept.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ffm.results.memory.free_memory import free_bytes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)

ROW_BYTES = 270
"""What the analysis takes for an operation at its peak, in memory alone: 178 bytes were measured of a run of one thread
(docs/benchmarks/cost.md), and other runs have columns that it lacks: of first uses, queries and places.
"""

SHARE = 0.5
"""Of the free memory that the analysis takes, unless told otherwise, before columns go to files."""


def rows_in_memory(memory_bytes: int | None = None) -> int:
    """Return how many operations the analysis keeps in so much memory; by default, in its share of what is free."""
    return int((SHARE * free_bytes() if memory_bytes is None else memory_bytes) / ROW_BYTES)


@dataclass(frozen=True, slots=True)
class Spilling:
    """Moves columns into files of a folder.

    Args:
        folder: where the files are; they have no names, and vanish with the columns.
        most_rows: longer columns go there.
    """

    folder: Path
    most_rows: int

    def __call__(self, record: Record) -> Record:
        """Return a record (a dataclass) with its long columns in files. Those given are to be forgotten."""
        columns = {field.name: getattr(record, field.name) for field in fields(record)}
        moved = {name: self.column(column) for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(record, **moved)

    def column(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column in a file if it is long; if the disk has no room for it, as it is."""
        if len(column) <= self.most_rows:
            return column
        try:
            with tempfile.TemporaryFile(dir=self.folder, prefix=".column-") as file:
                os.posix_fallocate(file.fileno(), 0, column.nbytes)
                mapped = np.memmap(file, column.dtype, "r+", shape=column.shape)
        except OSError:
            return column
        mapped[:] = column
        return np.asarray(mapped).view(np.ndarray)
