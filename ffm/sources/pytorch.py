"""Reads traces of PyTorch's profiler (`torch.profiler`, Kineto), which are in Chrome's JSON format.

Events have a category, `cat`. Calls of CUDA and the GPU's work are tied by a correlation number, which is unique within
a process. Python functions (`with_stack=True`), PyTorch's operators and ranges of the program nest in time around the
calls. Times are microseconds, in newer versions with decimals, from a base that the document names. Work on the GPU
carries the number of its device instead of its process.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ffm.errors import DocumentError, SourceError
from ffm.results.documents.notes import AmbiguousWork, AnyNote
from ffm.sources.json_events import EventReader
from ffm.sources.nesting import Spans, chains_of_calls
from ffm.sources.profile import (
    CUPTI_DEFAULT_STREAM,
    CUPTI_NONE,
    NO_STREAM,
    Calls,
    Chain,
    FrameRow,
    Place,
    Profile,
    Step,
    Stream,
    Unlaunched,
    Waits,
    Work,
    outermost,
    plain_name,
)
from ffm.sources.pytorch_events import About, Arguments, Event

MEANT = "a trace of PyTorch's profiler (`torch.profiler.profile(...).export_chrome_trace(...)`)"
CALLS = frozenset(("cuda_runtime", "cuda_driver"))
WORK = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
SPANS = frozenset(("python_function", "cpu_op", "user_annotation"))
WAITS = "cuda_sync"

STEP = "ProfilerStep"
"""The range around what `torch.profiler.profile.step` ends, without its number."""

LONGEST_US = float(1 << 61) / 1000
LARGEST = 1 << 62

_COPY = re.compile(r"Memcpy \w+ \((\w+) -> (\w+)\)")
_PLACES = {
    "Pageable": Place.PAGEABLE,
    "Pinned": Place.PINNED,
    "Device": Place.DEVICE,
    "Array": Place.DEVICE,
    "Managed": Place.MANAGED,
}
_PYTHON = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
_CHANGING = re.compile(r" at 0x[0-9a-fA-F]+|#\d+$|(?<=^nn\.Module: )(\w+?)_\d+$")
"""Parts of names that differ from call to call: addresses, numbers of steps, numbers of layers of one kind."""


def read_pytorch(paths: Sequence[Path]) -> Profile:
    """Read traces; several are of the ranks of one program.

    Raises:
        DocumentError: A file is missing, damaged, cut off, no trace, or contains no calls of CUDA.
    """
    trace = _Trace()
    for path in paths:
        trace.read(path)
    return trace.profile(paths)


class _Columns:
    """Rows of whole numbers, as they are met."""

    def __init__(self, *names: str) -> None:
        self._columns = {name: array("q") for name in names}

    def append(self, *values: int) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        return np.array(self._columns[name], np.int64)

    def shift(self, name: str, begin: int, by: int) -> None:
        column = self._columns[name]
        column[begin:] = array("q", (np.array(column[begin:], np.int64) + by).tolist())


class _Trace:
    """The traces that were read so far."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._processes: dict[tuple[int, str], int] = {}
        self._threads: dict[tuple[int, str], int] = {}
        self._calls = _Columns("process", "thread", "start", "end", "name", "correlation")
        self._spans = _Columns("process", "thread", "start", "end", "name")
        self._work = _Columns("file", "start", "end", "name", "correlation", "device", "context", "stream", "bytes")
        self._waits = _Columns("file", "correlation", "device", "context", "stream", "event", "on_stream", "record")
        self._arguments = msgspec.json.Decoder(Arguments)
        self._files = 0
        self._base: int | None = None

    def read(self, path: Path) -> None:
        """Read one trace."""
        reader = EventReader(path, Event, About, MEANT)
        before = [len(one) for one in (self._calls, self._spans, self._work)]
        for part in reader.parts():
            for event in part:
                if event.ph == "X":
                    self._add(path, event)
        if len(self._calls) == before[0]:
            raise DocumentError(
                f"{path} contains no calls of CUDA: record them with `activities=[ProfilerActivity.CPU, "
                "ProfilerActivity.CUDA]`."
            )
        base = reader.about.baseTimeNanoseconds
        if self._base is None:
            self._base = base
        if not -LARGEST < base - self._base < LARGEST:
            raise SourceError(f"{path} has times that no clock shows: it is damaged, or not {MEANT}.")
        for columns, begin in zip((self._calls, self._spans, self._work), before, strict=True):
            for name in ("start", "end"):
                columns.shift(name, begin, base - self._base)
        self._files += 1

    def _add(self, path: Path, event: Event) -> None:
        if event.cat not in CALLS and event.cat not in SPANS and event.cat not in WORK and event.cat != WAITS:
            return
        if event.ts is None or event.dur is None or not (0 <= event.dur < LONGEST_US and abs(event.ts) < LONGEST_US):
            raise DocumentError(
                f"{path}: its event {event.name[:60]!r} has no time, or ends before it starts: record the trace again."
            )
        start = _nanoseconds(event.ts)
        end = start + _nanoseconds(event.dur)
        if event.cat in SPANS:
            process, thread = self._place(event)
            self._spans.append(process, thread, start, end, self._name(_CHANGING.sub(r"\1", event.name)))
            return
        about = self._arguments_of(path, event)
        if event.cat in CALLS:
            process, thread = self._place(event)
            self._calls.append(process, thread, start, end, self._name(plain_name(event.name)), about.correlation)
        elif event.cat in WORK:
            where = (about.correlation, about.device, about.context, about.stream, max(about.bytes, 0))
            name = event.name if event.cat == "kernel" or _COPY.match(event.name) else ""
            self._work.append(self._files, start, end, self._name(name), *where)
        else:
            asked = (about.stream, about.wait_on_cuda_event_id, about.wait_on_stream)
            record = about.wait_on_cuda_event_record_corr_id
            self._waits.append(self._files, about.correlation, about.device, about.context, *asked, record)

    def _arguments_of(self, path: Path, event: Event) -> Arguments:
        try:
            found = self._arguments.decode(event.args)
        except msgspec.DecodeError as error:
            raise SourceError(
                f"{path}: the arguments of its event {event.name[:60]!r} cannot be read ({error}): it is damaged, or "
                f"not {MEANT}."
            ) from None
        if not all(-LARGEST < value < LARGEST for value in msgspec.structs.astuple(found)):
            raise SourceError(f"{path}: its event {event.name[:60]!r} has numbers that no trace has.")
        return found

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _place(self, event: Event) -> tuple[int, int]:
        process = self._processes.setdefault((self._files, str(event.pid)), len(self._processes))
        return process, self._threads.setdefault((process, str(event.tid)), len(self._threads))

    def profile(self, paths: Sequence[Path]) -> Profile:
        """Return what was read."""
        rows = self._calls
        process, thread, start, end = (rows[name] for name in ("process", "thread", "start", "end"))
        chosen, holder = outermost(process, thread, start, end)
        spans = Spans(*(self._spans[name] for name in ("process", "thread", "start", "end", "name")))
        chain, chains = chains_of_calls(spans, process[chosen], thread[chosen], start[chosen])
        names = list(self._names)
        frames = _Frames(names)
        calls = Calls(process[chosen], thread[chosen], start[chosen], end[chosen], rows["name"][chosen], chain)
        lookup = _Lookup(self._file_of_process()[process], process, rows["correlation"], holder)
        streams: dict[tuple[int, int, int, int], int] = {}
        work, unlaunched, notes = self._gpu_work(lookup, streams, names)
        return Profile(
            application=_application(paths),
            recorded_by="PyTorch's profiler",
            names=names,
            calls=calls,
            work=work,
            waits=self._waits_of(lookup, streams),
            streams=[Stream(one[0], one[3] == CUPTI_DEFAULT_STREAM, one[1]) for one in streams],
            chains=[Chain(tuple(frames.frame(name) for name in one)) for one in chains],
            unlaunched=unlaunched,
            steps=self._steps(),
            notes=notes,
            lines=bool(frames.python),
        )

    def _steps(self) -> list[Step]:
        rows, name = self._spans, self._names.get(STEP, -1)
        chosen = np.flatnonzero(rows["name"] == name)
        columns = (rows[column][chosen].tolist() for column in ("process", "start", "end"))
        return [Step(STEP, *row) for row in zip(*columns, strict=True)]

    def _file_of_process(self) -> NDArray[np.int64]:
        return np.array([file for file, _ in self._processes], np.int64)

    def _gpu_work(
        self, lookup: _Lookup, streams: dict[tuple[int, int, int, int], int], names: list[str]
    ) -> tuple[Work, Unlaunched, list[AnyNote]]:
        rows = self._work
        call, process = lookup.find(rows["file"], rows["correlation"], rows["device"])
        known = np.flatnonzero(call >= 0)
        name = rows["name"][known]
        places = [_places(one) for one in names]
        copied = np.array([one is not None or not text for one, text in zip(places, names, strict=True)])
        kinds = np.array([one or (Place.UNKNOWN, Place.UNKNOWN) for one in places], np.uint8).reshape(-1, 2)
        work = Work(
            call=call[known],
            start=rows["start"][known],
            end=rows["end"][known],
            stream=_numbered(streams, process, rows, known, "stream"),
            name=np.where(copied[name], -1, name),
            bytes=rows["bytes"][known],
            source=kinds[name, 0],
            destination=kinds[name, 1],
        )
        sole = self._sole_processes()
        owner = np.where(call < 0, sole[rows["file"]], -1)
        rest = np.flatnonzero(owner >= 0)
        unlaunched = Unlaunched(owner[rest], _numbered(streams, owner, rows, rest, "stream"), rows["end"][rest])
        lost = len(call) - len(known) - len(rest)
        return work, unlaunched, [AmbiguousWork(pieces=lost)] if lost else []

    def _sole_processes(self) -> NDArray[np.int64]:
        """Return, for each file, its process; -1 if it has several."""
        found = np.full(self._files, -1, np.int64)
        processes, files = np.unique(self._calls["process"]), self._file_of_process()
        for process in processes.tolist():
            file = files[process]
            found[file] = process if (files[processes] == file).sum() == 1 else -1
        return found

    def _waits_of(self, lookup: _Lookup, streams: dict[tuple[int, int, int, int], int]) -> Waits:
        """Return the streams and events of waits; of a wait for an event, also of the call that recorded it."""
        rows = self._waits
        call, process = lookup.find(rows["file"], rows["correlation"], rows["device"])
        record, _ = lookup.find(rows["file"], rows["record"], rows["device"])
        waiting = np.flatnonzero(call >= 0)
        recorded = np.flatnonzero((call >= 0) & (record >= 0) & (rows["record"] >= 0))
        stream = _numbered(streams, process, rows, waiting, "stream")
        on_stream = _numbered(streams, process, rows, recorded, "on_stream")
        event = rows["event"]
        _, number = np.unique(np.column_stack((process, event)), axis=0, return_inverse=True)
        event = np.where((event >= 0) & (event != CUPTI_NONE), number.reshape(-1), -1)
        return Waits(
            np.concatenate((call[waiting], record[recorded])),
            np.concatenate((stream, on_stream)),
            np.concatenate((event[waiting], event[recorded])),
            rows["device"][np.concatenate((waiting, recorded))],
        )


def _numbered(
    streams: dict[tuple[int, int, int, int], int],
    process: NDArray[np.int64],
    rows: _Columns,
    chosen: NDArray[np.int64],
    column: str,
) -> NDArray[np.int64]:
    """Return the numbers of the streams in a column of chosen rows, new ones as they are met."""
    columns = (process, rows["device"], rows["context"], rows[column])
    keys: Iterable[tuple[int, int, int, int]] = zip(*(one[chosen].tolist() for one in columns), strict=True)
    numbers = [NO_STREAM if key[3] in (-1, CUPTI_NONE) else streams.setdefault(key, len(streams)) for key in keys]
    return np.array(numbers, np.int64)


class _Lookup:
    """Finds the outermost call with a correlation number.

    Work on the GPU does not tell its process. Where calls of several processes in one file have its number, it is of
    the one process whose other work is on that device.
    """

    def __init__(
        self,
        file: NDArray[np.int64],
        process: NDArray[np.int64],
        correlation: NDArray[np.int64],
        holder: NDArray[np.int64],
    ) -> None:
        self._order = np.lexsort((process, correlation, file))
        self._keys = _keys(file[self._order], correlation[self._order])
        self._process, self._holder = process, holder

    def find(
        self, file: NDArray[np.int64], correlation: NDArray[np.int64], device: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the place of each call among the outermost ones and its process, both -1 if there is none, or it could
        be one of several.
        """
        wanted = _keys(file, correlation)
        first = np.searchsorted(self._keys, wanted)
        last = np.searchsorted(self._keys, wanted, side="right") - 1
        found = np.where((last >= first) & (correlation > 0), self._order[first.clip(max=len(self._order) - 1)], -1)
        owners = np.where(found >= 0, self._process[found.clip(0)], -1)
        other = self._process[self._order[last.clip(0)]]
        unclear = np.flatnonzero((found >= 0) & (owners != other))
        sure = np.ones(len(found), bool)
        sure[unclear] = False
        sole: dict[tuple[int, int], set[int]] = {}
        for one in np.flatnonzero(sure & (found >= 0)).tolist() if len(unclear) else []:
            sole.setdefault((int(file[one]), int(device[one])), set()).add(int(owners[one]))
        for one in unclear.tolist():
            users = sole.get((int(file[one]), int(device[one])), set())
            candidates = self._order[first[one] : last[one] + 1]
            matching = [row for row in candidates.tolist() if users == {int(self._process[row])}]
            found[one] = matching[0] if matching else -1
            owners[one] = self._process[matching[0]] if matching else -1
        return np.where(found >= 0, self._holder[found.clip(0)], -1), owners


def _keys(file: NDArray[np.int64], correlation: NDArray[np.int64]) -> NDArray[np.void]:
    keys = np.empty(len(file), [("file", np.int64), ("correlation", np.int64)])
    keys["file"], keys["correlation"] = file, correlation
    return keys


class _Frames:
    """Turns the names of spans into frames."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self.python = False

    def frame(self, name: int) -> FrameRow:
        """Return (function, module, file, line). The line is where the function begins."""
        match = _PYTHON.fullmatch(self._names[name])
        if match is None:
            return self._names[name], "", "", 0
        self.python = True
        return match["function"], "", match["file"], int(match["line"])


def _places(name: str) -> tuple[Place, Place] | None:
    match = _COPY.match(name)
    return None if match is None else (_PLACES.get(match[1], Place.UNKNOWN), _PLACES.get(match[2], Place.UNKNOWN))


def _nanoseconds(microseconds: float) -> int:
    """Return whole nanoseconds: of a number as large as a time since 1970, the product would have lost digits."""
    whole = int(microseconds)
    return 1000 * whole + round(1000 * (microseconds - whole))


def _application(paths: Sequence[Path]) -> str:
    name = paths[0].name
    for ending in (".gz", ".json", ".pt.trace", ".trace"):
        name = name.removesuffix(ending)
    return name or paths[0].name
