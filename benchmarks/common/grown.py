"""Results as those of a much longer run: the tables of all measuring stages, repeated.

What a program does over and over, its calls show over and over: the operations of a measured run follow themselves, as
often as asked, at later times and as later occurrences. So analysis can be measured at sizes at which programs run for
hours. Rows that are no operations, such as those of host memory, stay as they are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import read_table, write_table
from ffm.results.documents.document import Document
from ffm.results.documents.files import read_owned, write_document
from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
from ffm.results.documents.run import Run
from ffm.results.folder.paths import ResultsFolder

STAGES: dict[str, type[Document]] = {"baseline": Baseline, "tracing": Tracing, "memory": Memory, "sync-use": SyncUse}
PAUSE_NS = 1_000
"""At least this is between the end of a repetition and the start of the next."""

LATER = {"occurrence": "stack", "synchronization_occurrence": "synchronization_stack"}
"""Columns that count operations, and the column of the stacks whose operations they count."""


def grow(source: Path, target: Path, times: int) -> int:
    """Write the documents of stages 1 to 4 as of a run that is `times` as long; return its number of operations.

    The run has one thread; other runs are refused.
    """
    events = read_table(source / "tracing-events.arrow")
    if events["thread"].any() or events["process"].any():
        raise ValueError("only runs of one thread can be repeated")
    # The analysis takes the probes' time out before each operation: that of the first must fit in between.
    pause = PAUSE_NS + int(events["probe"].max())
    period = int((events["start"] + events["duration"]).max() - events["start"].min()) + pause
    target.mkdir(parents=True)
    for stage, kind in STAGES.items():
        document, _ = read_owned(kind, ResultsFolder(source).document(stage))
        for name in document.tables:
            path = source / getattr(document, name)
            with tempfile.TemporaryDirectory(dir=target) as scratch:
                columns = repeated(read_table(path), len(document.stacks), times, period, scratch)
                write_table(columns, target / path.name)
        if document.run is None:
            raise ValueError(f"{stage} describes no run")
        run = longer(document.run, times, period / 1e9)
        write_document(msgspec.structs.replace(document, run=run), ResultsFolder(target).document(stage), own=True)
    return len(events["start"]) * times


def longer(run: Run, times: int, period_s: float) -> Run:
    """Return a run that is `times` as long, in which its waits come again after each period."""
    span = run.waiting_span_s
    return msgspec.structs.replace(
        run,
        wall_s=run.wall_s * times,
        user_s=run.user_s * times,
        system_s=run.system_s * times,
        waiting_span_s=None if span is None else span + period_s * (times - 1),
        processes=[msgspec.structs.replace(one, operations=one.operations * times) for one in run.processes],
    )


def repeated(columns: Columns, stacks: int, times: int, period: int, scratch: str) -> Columns:
    """Return a table's rows `times` over, in files of a scratch folder, so that no size has to fit into memory."""
    rows = len(next(iter(columns.values())))
    if rows == 0 or "occurrence" not in columns:
        return columns
    return {
        name: long_column(column, times, steps_of(name, columns, stacks, period), Path(scratch) / name)
        for name, column in columns.items()
    }


def steps_of(name: str, columns: Columns, stacks: int, period: int) -> NDArray[np.int64] | int:
    """Return by how much a column's values grow from each repetition to the next."""
    if name == "start":
        return period
    if name == "number":
        return len(columns[name])
    if name in LATER:
        each = np.zeros(stacks + 1, np.int64)
        np.maximum.at(each, columns[LATER[name]], columns[name] + 1)
        return each[columns[LATER[name]]]
    return 0


def long_column(column: NDArray[Any], times: int, step: NDArray[np.int64] | int, path: Path) -> NDArray[Any]:
    """Repeat a column, its values greater by `step` each time."""
    rows = len(column)
    whole = np.memmap(path, column.dtype, "w+", shape=(rows * times,))
    for time in range(times):
        whole[time * rows : (time + 1) * rows] = column + (np.asarray(step) * time).astype(column.dtype)
    return whole
