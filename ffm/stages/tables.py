"""Columnar files: one Arrow table each, uncompressed, so that a reader maps it instead of loading it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

from ffm.stages.errors import DocumentError
from ffm.whole_file import whole_file

Columns = dict[str, NDArray[Any]]
"""Columns of equal length by name."""


def write_table(columns: Columns, path: Path) -> None:
    """Write columns as an Arrow file, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    with whole_arrow_file(path) as file:
        feather.write_feather(pa.table(columns), file, compression="uncompressed")


@contextmanager
def whole_arrow_file(path: Path) -> Iterator[Any]:
    """Open a file for Arrow to write to, whole or not at all (`ffm.whole_file`).

    Arrow would copy every column before it gives it to a Python file. It opens the file anew, by its descriptor: by
    its name it would follow whatever lies there by then.
    """
    with whole_file(path) as file, pa.OSFile(f"/proc/self/fd/{file.fileno()}", "wb") as sink:
        yield sink


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
