"""Reads reports of Nsight Systems, exported as SQLite (`nsys export --type sqlite`; schema 3.4 to 3.25).

The tables are described in NVIDIA's documentation of Nsight Systems, "Exporting to SQLite". Rows come in no order.
Correlation numbers, which tie the GPU's work to calls, are unique only within a process. Tables for events that did not
happen, or were not recorded, are absent.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ffm.errors import DocumentError, SourceError, UnreadableError
from ffm.sources.nesting import Spans, chains_of_calls
from ffm.sources.profile import (
    CUPTI_DEFAULT_STREAM,
    CUPTI_NONE,
    NO_STREAM,
    Calls,
    Chain,
    Place,
    Profile,
    Stream,
    Unlaunched,
    Waits,
    Work,
    outermost,
    plain_name,
)

CALLS, KERNELS, COPIES, SETS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("RUNTIME", "KERNEL", "MEMCPY", "MEMSET"))
WAITS, EVENTS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
CHAINS, STRINGS = "CUDA_CALLCHAINS", "StringIds"
CONTEXTS, STREAMS = "TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_STREAM"

RANGES = "NVTX_EVENTS"
_CHANGING = re.compile(r", (?:op_id|seq) = \d+.*", re.DOTALL)
"""What PyTorch appends to the names of its operators (`emit_nvtx`). It differs from call to call."""

PUSHED = 59
"""`eventType` of a range that was pushed and popped on one thread."""

NULL_STREAM = 3
"""Of `ENUM_CUPTI_STREAM_TYPE`."""

PLACES = {0: Place.PAGEABLE, 1: Place.PINNED, 2: Place.DEVICE, 3: Place.DEVICE, 4: Place.MANAGED, 5: Place.MANAGED}
"""By `ENUM_CUDA_MEM_KIND`."""

LONGEST_NS = 1 << 60

Rows = dict[str, NDArray[np.int64]]


def read_nsight(path: Path) -> Profile:
    """Read a report.

    Raises:
        DocumentError: The file is missing, is no SQLite database, is damaged, or contains no calls of CUDA.
    """
    try:
        if not path.is_file():
            raise DocumentError(f"{path} is not a file: name a report exported by `nsys export --type sqlite`.")
        with sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True) as database:
            return _Report(path, database).profile()
    except sqlite3.DatabaseError as error:
        raise DocumentError(
            f"{path} cannot be read as a report of Nsight Systems ({error}): export it again."
        ) from None
    except OSError as error:
        raise UnreadableError(str(path), error) from error


class _Report:
    """An open report."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path, self._database = path, database
        self._tables = {
            row[0] for row in database.execute("select name from sqlite_master where type in ('table', 'view')")
        }

    def profile(self) -> Profile:
        if CALLS not in self._tables or STRINGS not in self._tables:
            raise DocumentError(
                f"{self._path} contains no calls of CUDA: record them with `nsys profile --trace=cuda`, and export the "
                "report with `nsys export --type sqlite`."
            )
        rows = self._rows(CALLS, ("start", "end", "globalTid", "correlationId", "nameId"), ("callchainId",))
        if not len(rows["start"]):
            raise SourceError(f"{self._path} contains no calls of CUDA.")
        self._check_times(CALLS, rows)
        process, thread = rows["globalTid"] >> 24, rows["globalTid"] & 0xFFFFFF
        chosen, holder = outermost(process, thread, rows["start"], rows["end"])
        names, name = self._names(rows["nameId"][chosen])
        chains, chain = self._chains(rows["callchainId"][chosen])
        ranges = self._ranges()
        if ranges is not None:
            spans, texts = ranges
            around, found = chains_of_calls(spans, process[chosen], thread[chosen], rows["start"][chosen])
            chains, chain = _within(
                chains, chain, [Chain(tuple((texts[n], "", "", 0) for n in one)) for one in found], around
            )
        calls = Calls(process[chosen], thread[chosen], rows["start"][chosen], rows["end"][chosen], name, chain)
        by_correlation = _Lookup(process, rows["correlationId"], holder)
        streams = _Streams(self._legacy_streams(), self._devices)
        work, unlaunched = self._work(by_correlation, streams, names)
        return Profile(
            application=self._path.stem,
            recorded_by="Nsight Systems",
            names=names,
            calls=calls,
            work=work,
            waits=self._waits(by_correlation, streams),
            streams=streams.found,
            chains=chains,
            unlaunched=unlaunched,
            lines=bool(chains),
        )

    def _rows(self, table: str, needed: Sequence[str], further: Sequence[str] = ()) -> Rows:
        """Return columns of a table as whole numbers, -1 where a value is missing; `further` ones may be absent."""
        present = {row[1] for row in self._database.execute(f'pragma table_info("{table}")')}
        missing = [column for column in needed if column not in present]
        if missing:
            raise DocumentError(f"{self._path}: its table {table} has no column {missing[0]}: export the report again.")
        wanted = [column for column in (*needed, *further) if column in present]
        columns = ", ".join(f'"{column}"' for column in wanted)
        values = self._database.execute(f'select {columns} from "{table}"').fetchall()
        try:
            read = np.array([[-1 if value is None else value for value in row] for row in values], np.int64)
        except (TypeError, ValueError, OverflowError):
            raise SourceError(f"{self._path}: its table {table} holds something other than whole numbers.") from None
        read = read.reshape(-1, len(wanted))
        found = {column: read[:, place] for place, column in enumerate(wanted)}
        nothing = np.full(len(read), -1, np.int64)
        return {column: found.get(column, nothing) for column in (*needed, *further)}

    def _check_times(self, table: str, rows: Rows) -> None:
        start, end = rows["start"], rows["end"]
        if not ((start >= 0) & (start <= end) & (end < LONGEST_NS)).all():
            raise DocumentError(
                f"{self._path}: its table {table} has rows that end before they start: export it again."
            )

    def _names(self, numbers: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct names of calls, and the place of each call's name among them."""
        texts = self._strings(np.unique(numbers))
        names: dict[str, int] = {}
        place = {number: names.setdefault(plain_name(text), len(names)) for number, text in texts.items()}
        return list(names), np.array([place[number] for number in numbers.tolist()], np.int64)

    def _strings(self, numbers: NDArray[np.int64]) -> dict[int, str]:
        found: dict[int, str] = {}
        for number in numbers.tolist():
            row = self._database.execute(f"select value from {STRINGS} where id = ?", (number,)).fetchone()
            found[number] = str(row[0]) if row is not None else "unknown"
        return found

    def _chains(self, numbers: NDArray[np.int64]) -> tuple[list[Chain], NDArray[np.int64]]:
        """Return the call stacks, and the place of each call's among them; -1 where there is none."""
        if CHAINS not in self._tables or not (numbers >= 0).any():
            return [], np.full(len(numbers), -1, np.int64)
        rows = self._rows(CHAINS, ("id", "symbol", "module", "stackDepth"))
        order = np.lexsort((rows["stackDepth"], rows["id"]))
        texts = self._strings(np.unique(np.concatenate((rows["symbol"], rows["module"]))))
        frames: dict[int, list[tuple[str, str, str, int]]] = {}
        columns = (rows[name][order].tolist() for name in ("id", "symbol", "module"))
        for number, symbol, module in zip(*columns, strict=True):
            frames.setdefault(number, []).append((texts[symbol], texts[module], "", 0))
        chains: dict[Chain, int] = {}
        place = {number: chains.setdefault(Chain(tuple(one)), len(chains)) for number, one in frames.items()}
        return list(chains), np.array([place.get(number, -1) for number in numbers.tolist()], np.int64)

    def _ranges(self) -> tuple[Spans, list[str]] | None:
        """Return the ranges that the program marked on its threads, and their names; None if there are none."""
        if RANGES not in self._tables:
            return None
        rows = self._rows(RANGES, ("start", "end", "globalTid"), ("eventType", "textId"))
        inline = self._inline_texts()
        chosen = np.flatnonzero((rows["eventType"] == PUSHED) & (rows["end"] >= rows["start"]))
        if not len(chosen):
            return None
        texts = self._strings(np.unique(rows["textId"][chosen]))
        names: dict[str, int] = {}
        named = ((inline[row] if inline else None) or texts[int(rows["textId"][row])] for row in chosen.tolist())
        name = np.array([names.setdefault(_CHANGING.sub("", text), len(names)) for text in named], np.int64)
        thread = rows["globalTid"][chosen]
        spans = Spans(thread >> 24, thread & 0xFFFFFF, rows["start"][chosen], rows["end"][chosen], name)
        return spans, list(names)

    def _inline_texts(self) -> list[str | None]:
        """Return the names of ranges that are not among the strings, in the order of `_rows`; empty if there is no
        such column.
        """
        if "text" not in {row[1] for row in self._database.execute(f'pragma table_info("{RANGES}")')}:
            return []
        values = self._database.execute(f'select text from "{RANGES}"').fetchall()
        return [None if value is None else str(value) for (value,) in values]

    def _legacy_streams(self) -> set[tuple[int, int, int]]:
        """Return (process, context, stream) of the default streams, as far as they are known."""
        found: set[tuple[int, int, int]] = set()
        if CONTEXTS in self._tables:
            rows = self._rows(CONTEXTS, ("processId", "contextId", "nullStreamId"))
            columns = (rows[name].tolist() for name in ("processId", "contextId", "nullStreamId"))
            found |= set(zip(*columns, strict=True))
        if STREAMS in self._tables:
            rows = self._rows(STREAMS, ("processId", "contextId", "streamId", "flag"))
            default = rows["flag"] == NULL_STREAM
            columns = (rows[name][default].tolist() for name in ("processId", "contextId", "streamId"))
            found |= set(zip(*columns, strict=True))
        return found

    @cached_property
    def _devices(self) -> dict[tuple[int, int], int]:
        """Return the device of each (process, context) that has work, as far as it is known."""
        found: dict[tuple[int, int], int] = {}
        for table in (KERNELS, COPIES, SETS):
            rows = self._distinct(table, ("globalPid", "contextId", "deviceId"))
            found |= {(process >> 24, context): device for process, context, device in rows}
        return found

    def _distinct(self, table: str, columns: tuple[str, str, str]) -> list[tuple[int, int, int]]:
        """Return the distinct whole numbers of some columns of a table; nothing if it lacks one."""
        present = {row[1] for row in self._database.execute(f'pragma table_info("{table}")')}
        if not present.issuperset(columns):
            return []
        names = ", ".join(f'"{column}"' for column in columns)
        values = self._database.execute(f'select distinct {names} from "{table}"').fetchall()
        return [(one, two, three) for one, two, three in values if all(isinstance(v, int) for v in (one, two, three))]

    def _work(self, calls: _Lookup, streams: _Streams, names: list[str]) -> tuple[Work, Unlaunched]:
        """Return the GPU's work, that of recorded calls and the rest."""
        parts: list[Rows] = []
        for table in (KERNELS, COPIES, SETS):
            if table not in self._tables:
                continue
            needed = ("start", "end", "contextId", "streamId", "correlationId", "globalPid")
            rows = self._rows(table, needed, ("bytes", "srcKind", "dstKind", "shortName"))
            self._check_times(table, rows)
            parts.append(rows)
        if not parts:
            raise DocumentError(
                f"{self._path} contains calls of CUDA, but nothing that the GPU did: record again with "
                "`nsys profile --trace=cuda` on a machine whose profiler may see the GPU."
            )
        rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        process = rows["globalPid"] >> 24
        call = calls.find(process, rows["correlationId"])
        known = np.flatnonzero(call >= 0)
        kernel_names = self._strings(np.unique(rows["shortName"][known]))
        places = {number: index for index, number in enumerate(kernel_names, len(names))}
        names += kernel_names.values()
        named = [places[number] if number >= 0 else -1 for number in rows["shortName"][known].tolist()]
        kinds = {
            name: [PLACES.get(kind, Place.UNKNOWN) for kind in rows[name][known].tolist()]
            for name in ("srcKind", "dstKind")
        }
        work = Work(
            call=call[known],
            start=rows["start"][known],
            end=rows["end"][known],
            stream=streams.numbers(process[known], rows["contextId"][known], rows["streamId"][known]),
            name=np.array(named, np.int64),
            bytes=rows["bytes"][known].clip(0),
            source=np.array(kinds["srcKind"], np.uint8),
            destination=np.array(kinds["dstKind"], np.uint8),
        )
        rest = np.flatnonzero(call < 0)
        stream = streams.numbers(process[rest], rows["contextId"][rest], rows["streamId"][rest])
        return work, Unlaunched(process[rest], stream, rows["end"][rest])

    def _waits(self, calls: _Lookup, streams: _Streams) -> Waits:
        parts = []
        for table in (WAITS, EVENTS):
            if table in self._tables:
                needed = ("contextId", "streamId", "correlationId", "globalPid")
                parts.append(self._rows(table, needed, ("eventId", "deviceId")))
        if not parts:
            nothing = np.zeros(0, np.int64)
            return Waits(nothing, nothing, nothing, nothing)
        rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        process = rows["globalPid"] >> 24
        call = calls.find(process, rows["correlationId"])
        known = np.flatnonzero(call >= 0)
        named = (rows["streamId"][known] >= 0) & (rows["streamId"][known] != CUPTI_NONE)
        stream = np.full(len(known), NO_STREAM, np.int64)
        some = known[named]
        stream[named] = streams.numbers(process[some], rows["contextId"][some], rows["streamId"][some])
        event = rows["eventId"][known]
        has = (event >= 0) & (event != CUPTI_NONE)
        _, number = np.unique(np.column_stack((process[known], event)), axis=0, return_inverse=True)
        device = rows["deviceId"][known]
        contexts = zip(process[known].tolist(), rows["contextId"][known].tolist(), strict=True)
        devices = np.array([self._devices.get(one, -1) for one in contexts], np.int64)
        return Waits(call[known], stream, np.where(has, number.reshape(-1), -1), np.where(device >= 0, device, devices))


def _within(
    chains: list[Chain], chain: NDArray[np.int64], ranges: list[Chain], around: NDArray[np.int64]
) -> tuple[list[Chain], NDArray[np.int64]]:
    """Return the call stacks with the ranges around them, which come last, and the place of each call's among them."""
    pairs, place = np.unique(np.column_stack((chain, around)), axis=0, return_inverse=True)
    whole = [
        Chain((chains[own].frames if own >= 0 else ()) + (ranges[outer].frames if outer >= 0 else ()))
        for own, outer in pairs.tolist()
    ]
    nothing = np.array([not one.frames for one in whole])
    return whole, np.where(nothing[place.reshape(-1)], -1, place.reshape(-1))


class _Lookup:
    """Finds the outermost call with a correlation number in a process."""

    def __init__(self, process: NDArray[np.int64], correlation: NDArray[np.int64], holder: NDArray[np.int64]) -> None:
        self._order = np.lexsort((correlation, process))
        self._key = np.empty(len(process), [("process", np.int64), ("correlation", np.int64)])
        self._key["process"], self._key["correlation"] = process[self._order], correlation[self._order]
        self._holder = holder

    def find(self, process: NDArray[np.int64], correlation: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of each call among the outermost ones; -1 if there is none. CUPTI counts from 1."""
        wanted = np.empty(len(process), self._key.dtype)
        wanted["process"], wanted["correlation"] = process, correlation
        place = np.searchsorted(self._key, wanted).clip(max=len(self._key) - 1)
        return np.where((self._key[place] == wanted) & (correlation > 0), self._holder[self._order[place]], -1)


class _Streams:
    """Numbers streams as they are met."""

    def __init__(self, legacy: set[tuple[int, int, int]], devices: dict[tuple[int, int], int]) -> None:
        self._legacy, self._devices = legacy, devices
        self._known = {(process, context) for process, context, _ in legacy}
        self._numbers: dict[tuple[int, int, int], int] = {}
        self.found: list[Stream] = []

    def numbers(
        self, process: NDArray[np.int64], context: NDArray[np.int64], stream: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the number of each stream."""
        keys = zip(process.tolist(), context.tolist(), stream.tolist(), strict=True)
        return np.array([self._number(key) for key in keys], np.int64)

    def _number(self, key: tuple[int, int, int]) -> int:
        if key not in self._numbers:
            # `globalPid` holds more than the process's own number, which is in its lower bits.
            process, context, stream = key[0] & 0xFFFFFF, key[1], key[2]
            known = (process, context) in self._known
            legacy = (process, context, stream) in self._legacy if known else stream == CUPTI_DEFAULT_STREAM
            self._numbers[key] = len(self.found)
            self.found.append(Stream(key[0], legacy, self._devices.get(key[:2], -1)))
        return self._numbers[key]
