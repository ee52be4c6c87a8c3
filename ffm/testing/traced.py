"""When the calls of a traced test began, by the clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.operations import EVENTS
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.folder.paths import ResultsFolder


def starts_of_calls(folder: Path) -> NDArray[np.int64]:
    """Return when each call of the results' timeline began, in nanoseconds of `CLOCK_MONOTONIC`; shape (n,).

    Raises:
        DocumentError: The traced run next to the results cannot be read.
    """
    tracing, _ = read_owned(Tracing, ResultsFolder(folder).document("tracing"))
    columns = stored_table(tracing, "events", EVENTS, folder)
    starts: NDArray[np.int64] = columns["start"]
    return starts
