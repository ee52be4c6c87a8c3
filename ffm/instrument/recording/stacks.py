"""The call stacks in a recording, with their Python frames. Most frames are recorded once for many stacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.chunks import Chunk, DamageError, read_records, read_rows
from ffm.instrument.recording.layout import constant, record_type

Functions = dict[int, tuple[str, str]]
"""(file, qualified name) of each Python function, by its number."""

Place = tuple[int | None, int]
"""Where a native frame is: (module number, offset from its base), or (None, address)."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordedPythonFrame:
    """An active Python function: file, qualified name, line, and column (from 1, or 0 if unknown).

    At an `entry` the interpreter called itself: its evaluation function has a native frame for the Python frames up to
    this one. An entry whose function was not on the stack has no name.
    """

    function: str
    file: str
    line: int
    column: int
    entry: bool


@dataclass(frozen=True, slots=True)
class RecordedStack:
    """A call stack, innermost frame first."""

    key: str
    frames: list[Place]
    python: list[RecordedPythonFrame] = field(default_factory=list)
    truncated: bool = False
    """Whether its outer end was cut off because it was deeper than can be recorded."""


MISSING_STACK = RecordedStack(key="0" * 32, frames=[], truncated=True)
"""Placeholder for a stack that was not completely written."""


class RecordedStacks(Sequence[RecordedStack]):
    """The stacks of a process by their numbers. There can be a million: each is put together when it is asked for."""

    keys: list[str]
    """The key of each stack."""

    places: list[Place]
    """The distinct places of all frames."""

    def __init__(
        self, rows: NDArray[Any], known: NDArray[np.bool_], native: NDArray[Any], python: NDArray[Any], named: Functions
    ) -> None:
        """`rows` are `ffm_stack`, of which those that are not `known` were not written; `native` and `python` are the
        frames of their chains, row n - 1 for number n.
        """
        digits = rows["key"].tobytes().hex()
        self.keys = [digits[begin : begin + 32] for begin in range(0, len(digits), 32)]
        self.places, place = _distinct_places(native["module"], native["offset"])
        self._known = known
        self._truncated = ~known | (rows["truncated"] != 0)
        self._native = _Chains(rows["inner"], rows["outer"], native["next"], place.tolist())
        functions = [_python_frame(row, named) for row in python]
        self._python = _Chains(rows["python_inner"], rows["python_outer"], python["next"], functions)

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> RecordedStack: ...

    @overload
    def __getitem__(self, index: slice) -> list[RecordedStack]: ...

    def __getitem__(self, index: int | slice) -> RecordedStack | list[RecordedStack]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not self._known[index]:
            return MISSING_STACK
        frames = [self.places[place] for place in self.frames(index)]
        return RecordedStack(self.keys[index], frames, self.python(index), self.is_truncated(index))

    def frames(self, index: int) -> list[int]:
        """Return the frames of a stack, innermost first, as indices into `places`."""
        return self._native.both(index)

    def python(self, index: int) -> list[RecordedPythonFrame]:
        """Return the active Python functions of a stack, innermost first."""
        return self._python.both(index)

    def is_truncated(self, index: int) -> bool:
        """Return whether a stack's outer end was cut off, or it was not completely written."""
        return bool(self._truncated[index])


class _Chains(Generic[T]):
    """Puts the frames of stacks together from their inner and outer chains. `frames` are those of all chains."""

    def __init__(
        self, inner: NDArray[np.uint32], outer: NDArray[np.uint32], following: NDArray[np.uint32], frames: list[T]
    ) -> None:
        self._inner, self._outer = np.ascontiguousarray(inner).data, np.ascontiguousarray(outer).data
        self._next = np.ascontiguousarray(following).data
        self._frames = frames
        self._inside: dict[int, list[T]] = {}  # few chains, each of many stacks

    def both(self, index: int) -> list[T]:
        """Return the frames of a stack, innermost first."""
        number = self._inner[index]
        inside = self._inside.get(number)
        if inside is None:
            inside = self._inside[number] = self._chain(number)[::-1]
        return inside + self._chain(self._outer[index])

    def _chain(self, number: int) -> list[T]:
        found = []
        while number:
            found.append(self._frames[number - 1])
            number = self._next[number - 1]
        return found


def _python_frame(row: Any, named: Functions) -> RecordedPythonFrame:
    file, function = named.get(int(row["code"]), ("", ""))
    entry, column = divmod(int(row["column"]), 1 << constant("FFM_COLUMN_BITS"))
    return RecordedPythonFrame(function, file, int(row["line"]), column, bool(entry))


def _distinct_places(module: NDArray[np.uint32], offset: NDArray[np.uint64]) -> tuple[list[Place], NDArray[np.uint32]]:
    """Return the distinct places of frames, and which of them each one is."""
    _, number = np.unique(offset, return_inverse=True)
    together = number.astype(np.uint64) << np.uint64(32) | module
    _, first, which = np.unique(together, return_index=True, return_inverse=True)
    return _places(module[first], offset[first]), which.astype(np.uint32)


def read_stacks(chunks: Sequence[Chunk], functions: Functions, *, threads: int) -> RecordedStacks:
    """Return all stacks by their number. A thread that was killed may omit one that it was about to write.

    Raises:
        DamageError: Too many are missing, or one names a frame that does not exist.
    """
    found = read_rows(chunks, "FFM_CHUNK_STACKS", "ffm_stack")
    native = _chained(chunks, "FFM_CHUNK_FRAMES", "ffm_chained_frame", "FFM_MAX_FRAMES")
    python = _chained(chunks, "FFM_CHUNK_PYTHON_FRAMES", "ffm_chained_python_frame", "FFM_MAX_PYTHON_FRAMES")
    count = int(found["number"].max()) + 1 if len(found) else 0
    if count > min(len(found) + threads, constant("FFM_MOST_STACKS")):
        raise DamageError(f"of {count} stacks it holds {len(found)}")
    for name, frames in (("inner", native), ("outer", native), ("python_inner", python), ("python_outer", python)):
        if len(found) and (highest := int(found[name].max())) > len(frames):
            raise DamageError(f"a stack names the frame {highest} of {len(frames)}")
    rows, known = np.zeros(count, found.dtype), np.zeros(count, np.bool_)
    rows[found["number"]], known[found["number"]] = found, True
    return RecordedStacks(rows, known, native, python, functions)


def _chained(chunks: Sequence[Chunk], kind: str, structure: str, limit: str) -> NDArray[Any]:
    """Return the frames of chains in the order of their numbers; no chain is longer than a stack can be."""
    frames = read_rows(chunks, kind, structure)
    if (frames["next"] > np.arange(len(frames))).any():
        raise DamageError(f"a record of {structure} comes before the one that it continues")
    following = np.concatenate([[0], frames["next"]])  # by number; 0 means none, and nothing follows it
    reached, steps = np.arange(len(following)), constant(limit)
    while steps:
        if steps & 1:
            reached = following[reached]
        following, steps = following[following], steps >> 1
    if reached.any():
        raise DamageError(f"records of {structure} are a chain of more than {constant(limit)}")
    return frames


def frame_bytes(sample: Any) -> int:
    """Return how many bytes the frames take that follow an `ffm_sample`."""
    frame, python = record_type("ffm_frame").itemsize, record_type("ffm_python_frame").itemsize
    return int(sample["frames"]) * frame + int(sample["python_frames"]) * python


def split_frames(sample: Any, content: Any) -> tuple[Any, Any]:
    """Return the rows of the native frames and of the Python frames that follow a sample."""
    layout = record_type("ffm_frame")
    middle = int(sample["frames"]) * layout.itemsize
    return content[:middle].view(layout), content[middle:].view(record_type("ffm_python_frame"))


def native_frames(rows: Any) -> list[Place]:
    """Return native frames, innermost first."""
    return _places(rows["module"], rows["offset"])


def _places(module: NDArray[np.uint32], offset: NDArray[np.uint64]) -> list[Place]:
    none = constant("FFM_NO_MODULE")
    return [
        (None if number == none else number, start)
        for number, start in zip(module.tolist(), offset.tolist(), strict=True)
    ]


def python_frame(row: Any, functions: Functions) -> RecordedPythonFrame:
    """Return a frame in Python; the name and file of a function that was not recorded are empty."""
    file, function = functions.get(int(row["code"]), ("", ""))
    entry = bool(row["flags"] & constant("FFM_PYTHON_ENTRY"))
    return RecordedPythonFrame(function, file, int(row["line"]), int(row["column"]), entry)


def read_python_functions(chunks: Iterable[Chunk]) -> Functions:
    """Return the Python functions that stacks and samples name."""
    functions: Functions = {}
    for _, code, content in read_records(chunks, "FFM_CHUNK_PYTHON_CODES", "ffm_python_code", _text_bytes):
        split = int(code["file_bytes"])
        file, name = (bytes(part).decode(errors="replace") for part in (content[:split], content[split:]))
        functions[int(code["number"])] = (file, name)
    return functions


def _text_bytes(code: Any) -> int:
    return int(code["file_bytes"]) + int(code["name_bytes"])
