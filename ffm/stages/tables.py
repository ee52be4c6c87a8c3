"""Columnar files: one Arrow table each, uncompressed, so that a reader maps it instead of loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

from ffm.stages.documents import whole_file
from ffm.stages.errors import DocumentError

Columns = dict[str, NDArray[Any]]
"""Columns of equal length by name."""


def write_table(columns: Columns, path: Path) -> None:
    """Write columns as an Arrow file, whole or not at all.

    Raises:
        DocumentError: the file cannot be written.
    """
    with whole_file(path) as partial:
        feather.write_feather(pa.table(columns), partial, compression="uncompressed")


def read_table(path: Path) -> Columns:
    """Map the columns of an Arrow file.

    Raises:
        DocumentError: the file is missing or damaged.
    """
    try:
        table = feather.read_table(path, memory_map=True)
    except FileNotFoundError:
        raise DocumentError(f"{path} does not exist. Run the stage again that wrote it.") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DocumentError(
            f"{path} cannot be read ({error}): it is truncated or damaged. Run the stage again that wrote it."
        ) from error
    return {name: np.asarray(table.column(name)) for name in table.column_names}
