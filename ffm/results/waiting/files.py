"""The columnar files of what a run waits for: the graph's columns, the critical path, and where threads met.

Stage 5 finds these once, and the views read them: of a long run, finding them takes longer than everything that a view
does with them. Uncompressed, because a view reads them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.timeline import Timeline
from ffm.model.waiting.graph import Graph, Reason
from ffm.model.waiting.meetings import Meetings
from ffm.model.waiting.path import Stretches, StretchKind
from ffm.results.columnar.columns import LONGEST, Column, Columns, Table, number_of
from ffm.results.columnar.tables import stored_table, write_table
from ffm.results.documents.document import Document
from ffm.results.documents.files import edited

GRAPH_FILE = "graph.arrow"
STRETCHES_FILE = "path.arrow"
MEETINGS_FILE = "meetings.arrow"


def _moment() -> Column:
    """Return a column of times on the timeline's clock, which begins with the first call: work may be earlier."""
    return Column(np.int64, least=-LONGEST, most=LONGEST)


def _goes_back(columns: Columns) -> bool:
    """Return whether what GPU work came after ended before it: then no row waits for itself."""
    rows = np.flatnonzero(columns["gpu_after"] >= 0)
    end = columns["gpu_end"]
    return bool((end[columns["gpu_after"][rows]] < end[rows]).all())


def _is_dense(numbers: NDArray[np.int64]) -> bool:
    """Return whether numbers ascend from 0, and none is left out."""
    return not len(numbers) or (numbers[0] == 0 and bool((np.diff(numbers) >> 1 == 0).all()))


GRAPH = Table(
    {
        "gpu_begin": _moment(),
        "gpu_end": _moment(),
        "gpu_after": number_of("rows", none=True),
        "gpu_reason": Column(np.uint8, most=max(Reason)),
        "cause": number_of("rows", none=True),
        "waited": Column(np.int64, least=0, most=LONGEST, adds_up=True),
    },
    {
        "does GPU work begin before it ends": lambda columns: bool((columns["gpu_begin"] <= columns["gpu_end"]).all()),
        "does GPU work end after what it came after": _goes_back,
    },
)

STRETCHES = Table(
    {
        "kind": Column(np.uint8, most=max(StretchKind)),
        "thread": number_of("threads", none=True),
        "row": number_of("rows", none=True),
        "begin": _moment(),
        "end": _moment(),
    },
    {
        "is a stretch of one thread or one row": lambda columns: bool(
            ((columns["thread"] >= 0) == (columns["kind"] == StretchKind.ON_HOST)).all()
            and ((columns["row"] >= 0) == (columns["kind"] != StretchKind.ON_HOST)).all()
        ),
        "does the path have neither hole nor overlap": lambda columns: bool(
            (columns["begin"] <= columns["end"]).all() and (columns["begin"][1:] == columns["end"][:-1]).all()
        ),
    },
)

MEETINGS = Table(
    {
        "number": Column(np.int64, least=0),
        "thread": Column(np.int64, least=0, below="threads"),
        "since": _moment(),
        "came": _moment(),
    },
    {
        "does a meeting follow the one before": lambda columns: _is_dense(columns["number"]),
        "does a thread leave one meeting before it comes to the next": lambda columns: bool(
            (columns["since"] <= columns["came"]).all()
        ),
    },
)


@dataclass(frozen=True, slots=True)
class WaitingFiles:
    """Writes what a run waits for into a results folder, each file completely or not at all."""

    folder: Path

    def write(self, graph: Graph, stretches: Stretches, meetings: Meetings) -> None:
        """Write the graph of a timeline, its critical path, and where threads met.

        Raises:
            OSError: A file cannot be written.
        """
        host, where = stretches.kind == StretchKind.ON_HOST, stretches.where
        path = {
            "kind": stretches.kind,
            "thread": np.where(host, where, np.int32(-1)),
            "row": np.where(host, np.int32(-1), where),
            "begin": stretches.begin,
            "end": stretches.end,
        }
        for table, columns, name in (
            (GRAPH, _columns_of(graph), GRAPH_FILE),
            (STRETCHES, path, STRETCHES_FILE),
            (MEETINGS, _columns_of(meetings), MEETINGS_FILE),
        ):
            typed = {key: columns[key].astype(column.type, copy=False) for key, column in table.columns.items()}
            write_table(typed, self.folder / name)

    def write_nothing(self) -> None:
        """Write the files of a run of which no single operations are known."""
        nothing = np.zeros(0, np.int64)
        nowhere = np.zeros(0, np.int32)
        graph = Graph(nothing, nothing, nowhere, np.zeros(0, np.uint8), nowhere, nothing)
        self.write(graph, Stretches.nothing(), Meetings.none())


def read_graph(document: Document, folder: Path, rows: int) -> Graph:
    """Read the graph of a timeline with so many rows.

    Raises:
        DocumentError: The file is missing, edited or truncated, or is of another timeline.
    """
    columns = stored_table(document, "graph", GRAPH, folder)
    if len(columns["cause"]) != rows:
        raise edited(type(document), folder / GRAPH_FILE)
    return Graph(**{one.name: _own(columns[one.name]) for one in fields(Graph)})


def read_stretches(document: Document, folder: Path, timeline: Timeline, work: DeviceWork) -> Stretches:
    """Read the critical path of a timeline.

    Raises:
        DocumentError: As for `read_graph`.
    """
    counts = {"rows": len(timeline), "threads": len(work.process_of_thread)}
    columns = stored_table(document, "stretches", STRETCHES, folder, counts)
    where = np.maximum(columns["thread"], columns["row"])
    kind, begin, end = (_own(columns[name]) for name in ("kind", "begin", "end"))
    return Stretches.of(timeline, work, kind, where, begin, end)


def read_meetings(document: Document, folder: Path, threads: int) -> Meetings:
    """Read where threads met.

    Raises:
        DocumentError: As for `read_graph`.
    """
    columns = stored_table(document, "meetings", MEETINGS, folder, {"threads": threads})
    return Meetings(**{one.name: _own(columns[one.name]) for one in fields(Meetings)})


def _columns_of(record: Graph | Meetings) -> Columns:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _own(column: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a mapped column: kernels are compiled for columns that can be written to."""
    return column.copy()
