"""Reports in the form of Nsight Systems' SQLite export, made up for tests, and where published ones are."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TRACES = Path(__file__).parents[2].parent / "shared" / "reference" / "real-gpu"


def needs_traces(test: Callable[..., None]) -> Callable[..., None]:
    """Skip a test where there are no published traces. So it counts for no coverage, which makes it twice as slow."""
    absent = pytest.mark.skipif(not TRACES.is_dir(), reason="published traces of real GPUs are not here")
    marked: Callable[..., None] = pytest.mark.no_cover(absent(test))
    return marked


PROCESS, THREAD, CONTEXT, DEFAULT, OTHER = 42, 43, 1, 7, 13
PAGEABLE, PINNED, DEVICE = 0, 1, 2
NONE = (1 << 32) - 1


@dataclass
class Report:
    """Calls and work of one thread, in microseconds; each call gets a correlation number."""

    calls: list[tuple[int, ...]] = field(default_factory=list)
    kernels: list[tuple[int, ...]] = field(default_factory=list)
    copies: list[tuple[int, ...]] = field(default_factory=list)
    waits: list[tuple[int, ...]] = field(default_factory=list)
    events: list[tuple[int, ...]] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    devices: dict[int, int] = field(default_factory=dict)
    """The device of each context's or process's kernels; without any, the report does not tell."""

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def call(self, name: str, start: int, end: int, *, thread: int = THREAD, process: int = PROCESS) -> int:
        number = len(self.calls) + 1
        row = (1000 * start, 1000 * end, process << 24 | thread, number, self.name(name))
        self.calls.append(row)
        return number

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        call: int,
        stream: int = DEFAULT,
        process: int = PROCESS,
        context: int = CONTEXT,
    ) -> None:
        row = (1000 * start, 1000 * end, context, stream, call, process << 24, self.name(name))
        self.kernels.append(row)

    def copy(self, start: int, end: int, call: int, count: int, source: int, destination: int) -> None:
        row = (1000 * start, 1000 * end, CONTEXT, DEFAULT, call, PROCESS << 24, count, source, destination)
        self.copies.append(row)

    def wait(self, call: int, stream: int = NONE, event: int = NONE, context: int = CONTEXT) -> None:
        self.waits.append((context, stream, call, PROCESS << 24, event))

    def event(self, call: int, stream: int, event: int) -> None:
        self.events.append((CONTEXT, stream, call, PROCESS << 24, event))

    def write(self, path: Path) -> Path:
        """Write the report; tables without rows are absent, as in real ones."""
        tables = {
            "CUPTI_ACTIVITY_KIND_RUNTIME": ("start, end, globalTid, correlationId, nameId", self.calls),
            "CUPTI_ACTIVITY_KIND_KERNEL": (
                "start, end, contextId, streamId, correlationId, globalPid, shortName",
                self.kernels,
            ),
            "CUPTI_ACTIVITY_KIND_MEMCPY": (
                "start, end, contextId, streamId, correlationId, globalPid, bytes, srcKind, dstKind",
                self.copies,
            ),
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
                "contextId, streamId, correlationId, globalPid, eventId",
                self.waits,
            ),
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ("contextId, streamId, correlationId, globalPid, eventId", self.events),
            "StringIds": ("id, value", [(number, text) for text, number in self.names.items()]),
        }
        if self.devices:
            columns, rows = tables["CUPTI_ACTIVITY_KIND_KERNEL"]
            told = [(*row, self.devices.get(row[2], self.devices.get(row[5] >> 24))) for row in rows]
            tables["CUPTI_ACTIVITY_KIND_KERNEL"] = (f"{columns}, deviceId", told)
        with sqlite3.connect(path) as database:
            for table, (columns, rows) in tables.items():
                if rows:
                    database.execute(f"create table {table} ({columns})")
                    marks = ", ".join("?" * (columns.count(",") + 1))
                    database.executemany(f"insert into {table} values ({marks})", rows)
        database.close()
        return path
