"""Calls of one thread as recorded, by what differs from zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue

ADDRESSES = ("destination", "source", "stream", "handle")
FIELDS = ("wait", "after_wait", "waits", "bytes", *ADDRESSES, "flags", "result", "process", "thread", "stack", "number")


def columns_of(*calls: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of calls, one each microsecond. Each call names a `function` and the fields that differ from
    zero, but for its `stack` and `number`, which are its place.
    """
    rows = [
        {**dict.fromkeys(FIELDS, 0), "start": 1_000 * place, "duration": 100, "stack": place, "number": place, **call}
        for place, call in enumerate(calls)
    ]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "function"}
    columns["function"] = np.array([load_catalogue()[row["function"]].index for row in rows])
    return columns | {name: columns[name].astype(np.uint64) for name in ADDRESSES}
