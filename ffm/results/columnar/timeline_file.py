"""The columnar file of the model's timeline: compressed Arrow IPC, including each row's line of a sequence.

Arrow IPC instead of Parquet, because it opens in a third of the time, from which the viewing commands benefit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.model.device import (
    MOST_DEVICES,
    Action,
    DeviceWork,
    Direction,
    Encounters,
    Fills,
    LockWaits,
    Role,
    ThreadLives,
)
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.columnar.columns import (
    LONGEST,
    MANY,
    Column,
    ColumnError,
    Columns,
    Table,
    duration,
    number_of,
    size,
    time,
)
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.fields import Number
from ffm.results.documents.files import StoredError, edited

VERSION = b"14"

_COLUMNS = {
    "thread": number_of("threads"),
    "start": time(),
    "duration": duration(),
    "wait": duration(),
    "gap": duration(),
    "site": number_of("sites"),
    "kind": Column(np.uint8, most=max(Kind)),
    "problem": Column(np.uint8, most=sum(Problem)),
    "first_use": time(),
    "occurrences": size(),
    "line": number_of("lines", none=True),
}

_RULES = {
    "is a wait within its call": lambda columns: bool((columns["wait"] <= columns["duration"]).all()),
    "does a thread's time go forward": lambda columns: _is_in_order(columns["thread"], columns["start"]),
}

_WORK_COLUMNS = {
    "action": Column(np.uint8, most=max(Action)),
    "stream": number_of("streams", none=True),
    "event": number_of("events", none=True),
    "partner": number_of("rows", none=True),
    "copied": size(),
    "measured": duration(least=-1),
    "arriving": duration(),
    "began": Column(np.int64, least=-1, most=LONGEST),
    "awaits": number_of("rows", none=True),
    "direction": Column(np.uint8, most=max(Direction)),
    "asked": Column(np.int32, least=-1, most=0x7FFFFFFF),
    "after_wait": Column(np.int32, least=0),
    "fills": Column(np.uint8, most=max(Fills)),
}
"""Columns of `DeviceWork`, in files of measured runs."""

_ABSENT = {"arriving": 0, "began": -1, "awaits": -1, "direction": 0, "asked": -1, "after_wait": 0, "fills": 0}
"""Those that `DeviceWork` may lack, because only events, recordings or some profilers show them, and what stands for
them then.
"""

_USUAL = {"first_use": 0, "occurrences": 1}
"""Those that may be empty, and what stands for all rows then.
"""

TIMELINE = Table(_COLUMNS, _RULES)
TIMELINE_WITH_WORK = Table(_COLUMNS | _WORK_COLUMNS, _RULES)

_WORK_TABLES = ("process_of_thread", "legacy", "stream_process")
"""Its small tables, which are stored in the file's metadata.
"""


def save_timeline(
    timeline: Timeline, path: Path, line: NDArray[np.int32] | None = None, work: DeviceWork | None = None
) -> None:
    """Write a timeline, completely or not at all, with what its rows do on the GPU if that is known.

    `line` holds the rows' lines of sequences (`ffm.model.groups.sequences.Membership`), if there are any.

    Without lines no row belongs to a sequence.

    Raises:
        OSError: The file cannot be written.
    """
    from ffm.results.columnar.compressed_tables import Relative, write_compressed

    columns: dict[str, Any] = {field.name: getattr(timeline, field.name) for field in fields(Timeline)}
    columns["start"] = Relative(timeline.start, lambda part: _ends_before(timeline, part))
    columns["line"] = np.full(len(timeline), -1, np.int32) if line is None else line
    rows = (len(timeline),)
    columns |= {name: np.broadcast_to(one, rows) for name, one in _USUAL.items() if not len(columns[name])}
    table = TIMELINE if work is None else TIMELINE_WITH_WORK
    metadata: dict[str | bytes, str | bytes] = {"ffm.timeline": VERSION}
    if work is not None:
        columns |= {name: getattr(work, name) for name in _WORK_COLUMNS}
        columns |= {name: np.broadcast_to(none, rows) for name, none in _ABSENT.items() if columns[name] is None}
        tables = {name: getattr(work, name).tolist() for name in _WORK_TABLES}
        tables["stream_device"] = None if work.stream_device is None else work.stream_device.tolist()
        for name, table_of in (("lives", work.lives), ("locks", work.locks), ("encounters", work.encounters)):
            tables[name] = (
                None
                if table_of is None
                else {one.name: getattr(table_of, one.name).tolist() for one in fields(table_of)}
            )
        tables["delayed"] = None if work.delayed is None else work.delayed.tolist()
        tables["independent"] = None if work.independent is None else work.independent.tolist()
        metadata["ffm.work"] = json.dumps(tables | {"events": work.events})
    write_compressed(columns, table, metadata, path)


def load_results_timeline(
    path: Path, checksum: str | None = None, counts: Mapping[str, int] | None = None
) -> tuple[Timeline, NDArray[np.int32], DeviceWork | None]:
    """Read a timeline, its rows' lines, and what they do on the GPU, which is None in files of imported results.

    Args:
        path: the file.
        checksum: of the whole file, as in its document; if not given, it is not checked.
        counts: how many `sites` there are, and `lines` of sequences; if not given, the rows decide.

    Raises:
        DocumentError: It is missing, edited or truncated, of another version, or not a valid timeline.
    """
    import pyarrow as pa

    from ffm.results.columnar.arrow_batches import BatchError
    from ffm.results.columnar.compressed_tables import compressed_batches, read_columns

    try:
        batches = compressed_batches(path, checksum)
        metadata = batches.schema.metadata or {}
        if metadata.get(b"ffm.timeline") != VERSION:
            raise StoredError(
                f"{path} is not a timeline of version {VERSION.decode()} of this ffm.", Analysis, path.parent
            )
        described = msgspec.json.decode(metadata[b"ffm.work"], type=_Work) if b"ffm.work" in metadata else None
        table = TIMELINE if described is None else TIMELINE_WITH_WORK
        columns = read_columns(batches, table)
        _add_ends_before(columns)
    except (pa.ArrowException, BatchError, OSError, KeyError, ValueError) as error:
        raise edited(Analysis, path) from error
    try:
        table.check(columns, _counts(columns, described, counts))
    except ColumnError as error:
        raise StoredError(f"{path} is not as this ffm writes it: {error}.", Analysis, path.parent) from error
    line = columns["line"]
    timeline = Timeline(**{field.name: columns[field.name] for field in fields(Timeline)})
    if described is None:
        return timeline, line, None
    given: dict[str, Any] = {name: columns[name] for name in _WORK_COLUMNS}
    given |= {name: None for name, none in _ABSENT.items() if columns[name].max(initial=none) == none}
    given |= {name: np.array(getattr(described, name), np.int32) for name in _WORK_TABLES}
    device = None if described.stream_device is None else np.array(described.stream_device, np.int32)
    apart = None if described.independent is None else np.array(described.independent, np.bool_)
    found = DeviceWork(
        **given,
        events=described.events,
        stream_device=device,
        independent=apart,
        delayed=None if described.delayed is None else np.array(described.delayed, np.int64),
        lives=None if described.lives is None else described.lives.table(),
        locks=None if described.locks is None else described.locks.table(),
        encounters=None if described.encounters is None else described.encounters.table(),
    )
    return timeline, line, found


class _Lives(msgspec.Struct, frozen=True, kw_only=True):
    """`ThreadLives`, as stored there."""

    before: list[Annotated[int, msgspec.Meta(ge=-1, le=LONGEST)]]
    parent: list[Annotated[int, msgspec.Meta(ge=-1, le=0x7FFFFFFF)]]
    started: list[Annotated[int, msgspec.Meta(ge=-1, le=LONGEST)]]
    joined: list[Annotated[int, msgspec.Meta(ge=-1, le=LONGEST)]]

    def check(self, rows: int, threads: int) -> None:
        """Raise `ColumnError` if a number refers to nothing."""
        if {len(self.before), len(self.parent), len(self.started), len(self.joined)} != {threads}:
            raise ColumnError("it does not say of each thread who started it")
        if max(self.parent, default=-1) >= threads:
            raise ColumnError("a thread was started by one that does not exist")
        above = np.array([*self.parent, -1])
        for _ in range(threads.bit_length()):
            above = above[above]
        if (above >= 0).any():
            raise ColumnError("threads have started each other")
        if max(self.started, default=-1) > rows or max(self.joined, default=-1) >= rows:
            raise ColumnError("a thread was started or joined at a row that does not exist")
        if any((parent >= 0) != (started >= 0) for parent, started in zip(self.parent, self.started, strict=True)):
            raise ColumnError("it does not say where a thread was started")

    def table(self) -> ThreadLives:
        """Return it as the model needs it."""
        return ThreadLives(
            before=np.array(self.before, np.int64),
            parent=np.array(self.parent, np.int32),
            started=np.array(self.started, np.int64),
            joined=np.array(self.joined, np.int64),
        )


class _Locks(msgspec.Struct, frozen=True, kw_only=True):
    """`LockWaits`, as stored there."""

    row: list[Number]
    after: list[Annotated[int, msgspec.Meta(ge=0, le=LONGEST)]]
    by: list[Number]
    released: list[Annotated[int, msgspec.Meta(ge=0, le=LONGEST)]]

    def check(self, rows: int) -> None:
        """Raise `ColumnError` if a number refers to nothing."""
        if len({len(self.row), len(self.after), len(self.by), len(self.released)}) > 1:
            raise ColumnError("it does not say of each wait for a lock when it ended")
        if max((*self.row, *self.by), default=-1) >= rows:
            raise ColumnError("a wait for a lock is after a row that does not exist")

    def table(self) -> LockWaits:
        """Return it as the model needs it."""
        return LockWaits(**{one.name: np.array(getattr(self, one.name), np.int64) for one in fields(LockWaits)})


class _Encounters(msgspec.Struct, frozen=True, kw_only=True):
    """`Encounters`, as stored there."""

    number: list[Number]
    row: list[Number]
    role: list[Annotated[int, msgspec.Meta(ge=0, le=sum(Role))]]

    def check(self, rows: int) -> None:
        """Raise `ColumnError` if a number refers to nothing."""
        if len({len(self.number), len(self.row), len(self.role)}) > 1:
            raise ColumnError("it does not say of each encounter what rows do there")
        if max(self.row, default=-1) >= rows:
            raise ColumnError("a row that does not exist meets others")
        if max(self.number, default=-1) >= len(self.number):
            raise ColumnError("it numbers more encounters than there are")

    def table(self) -> Encounters:
        """Return it as the model needs it."""
        return Encounters(np.array(self.number, np.int64), np.array(self.row, np.int64), np.array(self.role, np.uint8))


class _Work(msgspec.Struct, frozen=True, kw_only=True):
    """The small tables of `DeviceWork`, as stored in the file's metadata."""

    process_of_thread: list[Number]
    legacy: list[Annotated[int, msgspec.Meta(ge=-1, le=0x7FFFFFFF)]]
    stream_process: list[Number]
    events: Number
    stream_device: list[Annotated[int, msgspec.Meta(ge=0, le=MOST_DEVICES)]] | None = None
    independent: list[bool] | None = None
    delayed: list[Annotated[int, msgspec.Meta(ge=-1, le=LONGEST)]] | None = None
    lives: _Lives | None = None
    locks: _Locks | None = None
    encounters: _Encounters | None = None

    def check(self, rows: int) -> None:
        """Raise `ColumnError` if a number refers to nothing, or if there is more than the rows can refer to."""
        processes, streams = len(self.legacy), len(self.stream_process)
        if max((*self.process_of_thread, *self.stream_process), default=-1) >= processes:
            raise ColumnError("it names a process that it does not have")
        if max(self.legacy, default=-1) >= streams:
            raise ColumnError("it names a default stream that it does not have")
        if any(stream >= 0 and self.stream_process[stream] != own for own, stream in enumerate(self.legacy)):
            raise ColumnError("it names a default stream of another process")
        if self.stream_device is not None and len(self.stream_device) != streams:
            raise ColumnError("it does not name the device of each stream")
        if self.independent is not None and len(self.independent) != streams:
            raise ColumnError("it does not say of each stream whether it is ordered")
        if self.delayed is not None and len(self.delayed) != len(self.process_of_thread):
            raise ColumnError("it does not say of each thread how long it waited for a processor")
        if self.lives is not None:
            self.lives.check(rows, len(self.process_of_thread))
        if self.locks is not None:
            self.locks.check(rows)
        if self.encounters is not None:
            self.encounters.check(rows)
        if max(len(self.process_of_thread), streams, self.events) > rows + 1 or processes > MANY:
            raise ColumnError("it has more threads, streams or events than rows")


def _counts(columns: Columns, described: _Work | None, counts: Mapping[str, int] | None) -> dict[str, int]:
    """Return how many targets there are for the columns' references. Raises `ColumnError` if that is impossible."""
    rows = len(columns["start"])
    known = dict(counts or {})
    for name, column in (("sites", "site"), ("lines", "line")):
        known.setdefault(name, int(columns[column].max(initial=-1)) + 1)
    if described is None:
        return {**known, "threads": rows}
    described.check(rows)
    return {
        **known,
        "threads": len(described.process_of_thread),
        "streams": len(described.stream_process),
        "events": described.events,
    }


def _ends_before(timeline: Timeline, part: slice) -> NDArray[np.int64]:
    """Return, for some rows, when the gap after the row before ends: the file tells how much later they start. That is
    0 except where a thread begins, or calls overlap.
    """
    before = slice(max(part.start - 1, 0), min(part.stop, len(timeline)) - 1)
    ends = timeline.start[before] + timeline.duration[before] + timeline.gap[before]
    return ends if part.start else np.append(np.int64(0), ends)


def _add_ends_before(columns: Columns) -> None:
    """Make starts of the differences that the file tells, in place."""
    start = columns["start"]
    start[1:] += columns["duration"][:-1]
    start[1:] += columns["gap"][:-1]
    np.cumsum(start, out=start)


def _is_in_order(thread: NDArray[np.int32], start: NDArray[np.int64]) -> bool:
    """Return whether rows are sorted by thread, then by start."""
    same = thread[1:] == thread[:-1]
    return bool((thread[1:] >= thread[:-1]).all() and (~same | (start[1:] >= start[:-1])).all())
