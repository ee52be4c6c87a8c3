"""The call stacks in a recording, with their frames in Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ffm.instrument.recording.chunks import Chunk, DamageError, read_records
from ffm.instrument.recording.layout import constant, record_type

Functions = dict[int, tuple[str, str]]
"""(file, qualified name) of each Python function, by its number."""

Place = tuple[int | None, int]
"""Where a native frame is: (module number, offset from its base), or (None, address)."""


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


def read_stacks(chunks: Iterable[Chunk], functions: Functions, *, threads: int) -> list[RecordedStack]:
    """Return all stacks by their number. A thread that was killed may omit one that it was about to write."""
    numbered: dict[int, RecordedStack] = {}
    places: dict[Place, Place] = {}  # stacks have most of their frames in common
    for _, stack, content in read_records(chunks, "FFM_CHUNK_STACKS", "ffm_stack", frame_bytes):
        native, python = split_frames(stack, content)
        numbered[int(stack["number"])] = RecordedStack(
            key=bytes(stack["key"]).hex(),
            frames=[places.setdefault(place, place) for place in native_frames(native)],
            python=[python_frame(row, functions) for row in python],
            truncated=bool(stack["truncated"]),
        )
    count = max(numbered, default=-1) + 1
    if count > len(numbered) + threads:
        raise DamageError(f"of {count} stacks it holds {len(numbered)}")
    return [numbered.get(number, MISSING_STACK) for number in range(count)]


def frame_bytes(stack: Any) -> int:
    """Return how many bytes the frames take that follow an `ffm_stack` or `ffm_sample`."""
    frame, python = record_type("ffm_frame").itemsize, record_type("ffm_python_frame").itemsize
    return int(stack["frames"]) * frame + int(stack["python_frames"]) * python


def split_frames(stack: Any, content: Any) -> tuple[Any, Any]:
    """Return the rows of the native frames and of the Python frames that follow a stack."""
    layout = record_type("ffm_frame")
    middle = int(stack["frames"]) * layout.itemsize
    return content[:middle].view(layout), content[middle:].view(record_type("ffm_python_frame"))


def native_frames(rows: Any) -> list[Place]:
    """Return native frames, innermost first."""
    none = constant("FFM_NO_MODULE")
    return [
        (None if module == none else module, offset)
        for module, offset in zip(rows["module"].tolist(), rows["offset"].tolist(), strict=True)
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
