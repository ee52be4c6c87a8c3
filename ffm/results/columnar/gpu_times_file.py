"""The columnar file of the GPU's times: stage 5 infers them once, and the views that replay the run read them.

It is compressed, because the three timelines agree on most rows, and only some views need them. What the others say is
relative to the likely one: mostly nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ffm.model.device import DeviceWork
from ffm.model.gpu_times.fitting import visiting_order
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.model.timeline import Timeline
from ffm.results.columnar.columns import LONGEST, Column, ColumnError, Table
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import StoredError, edited

GPU_TIMES_FILE = "gpu-times.arrow"
VERSION = b"5"

LIKELY = "likely"
TIMELINES = (LIKELY, "slow", "fast")
FASTEST = "fastest"
"""In files of runs that prove nothing."""

_COLUMNS = {
    "gpu": Column(np.int64, least=0, most=LONGEST),
    "left": Column(np.int64, least=-LONGEST, most=LONGEST),
    "latency": Column(np.int64, least=-LONGEST, most=LONGEST),
}


def _table(timelines: tuple[str, ...]) -> Table:
    return Table({f"{name}_{column}": kind for name in timelines for column, kind in _COLUMNS.items()})


class _Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is not stored by row; the counts are those of each timeline."""

    explained: list[int]
    waited: list[int]
    pause: list[int]
    latency_ns: int
    waking_ns: int


def save_gpu_times(inference: Inference | None, path: Path) -> None:
    """Write the GPU's times, completely or not at all; none if no trace shows any.

    Raises:
        OSError: The file cannot be written.
    """
    from ffm.results.columnar.compressed_tables import Relative, write_compressed

    found = {name: getattr(inference, name) for name in (*TIMELINES, FASTEST) if getattr(inference, name, None)}
    columns: dict[str, Any] = {}
    if inference is not None:
        likely = inference.likely
        columns = {f"{LIKELY}_{column}": getattr(likely, column) for column in _COLUMNS}
        columns |= {
            f"{name}_{column}": Relative(getattr(times, column), getattr(likely, column).__getitem__)
            for name, times in found.items()
            if name != LIKELY
            for column in _COLUMNS
        }
    names = tuple(found) or TIMELINES
    table = _table(names)
    if inference is None:
        columns = {name: np.empty(0, np.int64) for name in table.columns}
    totals = _Totals(
        explained=[times.explained for times in found.values()],
        waited=[times.waited for times in found.values()],
        pause=[times.pause for times in found.values()],
        latency_ns=0 if inference is None else inference.latency_ns,
        waking_ns=0 if inference is None else inference.waking_ns,
    )
    metadata: dict[str | bytes, str | bytes] = {"ffm.gpu_times": VERSION, "ffm.totals": msgspec.json.encode(totals)}
    write_compressed(columns, table, metadata, path)


def load_gpu_times(document: Analysis, folder: Path, timeline: Timeline, work: DeviceWork) -> Inference:
    """Read the GPU's times of a timeline.

    Raises:
        DocumentError: The file is missing, edited or truncated, of another version, or of another timeline.
    """
    import pyarrow as pa

    from ffm.results.columnar.arrow_batches import BatchError
    from ffm.results.columnar.compressed_tables import compressed_batches, read_columns

    path = folder / document.gpu_times
    names = TIMELINES if document.proves else (*TIMELINES, FASTEST)
    table = _table(names)
    try:
        batches = compressed_batches(path, document.checksums.get("gpu_times", ""))
        metadata = batches.schema.metadata or {}
        if metadata.get(b"ffm.gpu_times") != VERSION:
            raise StoredError(
                f"{path} does not hold GPU times of version {VERSION.decode()} of this ffm.", Analysis, path.parent
            )
        totals = msgspec.json.decode(metadata[b"ffm.totals"], type=_Totals)
        columns = read_columns(batches, table)
    except (pa.ArrowException, BatchError, OSError, KeyError, ValueError) as error:
        raise edited(Analysis, path) from error
    counts = {len(each) for each in (totals.explained, totals.waited, totals.pause)}
    if counts != {len(names)} or len(columns["likely_gpu"]) != len(timeline):
        raise edited(Analysis, path)
    for name in names[1:]:
        for column in _COLUMNS:
            columns[f"{name}_{column}"] += columns[f"{LIKELY}_{column}"]
    try:
        table.check(columns, {})
    except ColumnError as error:
        raise StoredError(f"{path} is not as this ffm writes it: {error}.", Analysis, path.parent) from error
    times = {
        name: GpuTimes(
            **{column: columns[f"{name}_{column}"] for column in _COLUMNS},
            explained=totals.explained[number],
            waited=totals.waited[number],
            pause=totals.pause[number],
        )
        for number, name in enumerate(names)
    }
    order = visiting_order(timeline, work)
    return Inference(
        order=order,
        likely=times[LIKELY],
        slow=times["slow"],
        fast=times["fast"],
        latency_ns=totals.latency_ns,
        waking_ns=totals.waking_ns,
        fastest=times.get(FASTEST),
    ).of_one_type()
