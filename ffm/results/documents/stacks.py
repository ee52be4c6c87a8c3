"""Call stacks in documents, innermost frame first. A file has each distinct frame once."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ffm.results.documents.fields import Number, Record


class Module(Record, frozen=True, kw_only=True):
    """A file mapped into the program. `build_id` is hexadecimal, or empty if the file has none."""

    path: str
    build_id: str


class Frame(Record, frozen=True, kw_only=True):
    """One frame: its address and, if known, its place in the source.

    `offset` counts from the module's first byte in memory (its load base). For all but the innermost frame it is the
    return address. `inlined` frames share the address of the frame that follows them.
    """

    module: Number
    offset: Annotated[int, msgspec.Meta(ge=0)]
    function: str = ""
    file: str = ""
    line: Number = 0
    inlined: bool = False
    python: bool = False
    """A Python function; it has no address."""


class PythonFrame(Record, frozen=True, kw_only=True):
    """An active Python function, as recorded: at an `entry`, a native frame of the interpreter stands for it and the
    frames within it. Without a name, it is only an entry.
    """

    function: str
    file: str
    line: Number
    entry: bool


StackKey = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
"""What identifies a call stack in every run."""


class Stack(Record, frozen=True, kw_only=True):
    """A call stack, innermost frame first. `key` is the same in every run: it hashes build-ids and offsets and, in
    Python, files, functions and lines.
    """

    key: StackKey
    frames: list[Frame]
    python: list[PythonFrame] = msgspec.field(default_factory=list)
    """The Python functions, until they are among the frames."""
    truncated: bool = False
    """Whether its outer end may be cut off because it was deeper than can be recorded."""


class _StoredStack(Record, frozen=True, kw_only=True):
    """A stack in a file, whose frames are numbers in the file's list of frames."""

    key: StackKey
    frames: list[int]
    python: list[PythonFrame] = msgspec.field(default_factory=list)
    truncated: bool = False


def stored_stacks(stacks: list[Stack]) -> dict[str, Any]:
    """Return what a file says of stacks: each distinct frame once, because stacks have most of theirs in common."""
    numbers: dict[Frame, int] = {}
    stored = [
        {
            "key": stack.key,
            "frames": [numbers.setdefault(frame, len(numbers)) for frame in stack.frames],
            "python": msgspec.to_builtins(stack.python),
            "truncated": stack.truncated,
        }
        for stack in stacks
    ]
    return {"frames": msgspec.to_builtins(list(numbers)), "stacks": stored}


def taken_stacks(content: dict[str, Any]) -> list[Stack]:
    """Take what `stored_stacks` returned out of a file's content, and return the stacks.

    Raises:
        ValueError: It is something else.
    """
    frames = msgspec.convert(content.pop("frames", None), list[Frame])
    stored = msgspec.convert(content.pop("stacks", None), list[_StoredStack])
    if any(min(stack.frames, default=0) < 0 or max(stack.frames, default=-1) >= len(frames) for stack in stored):
        raise ValueError(f"a stack names a frame that is not among the {len(frames)}")
    return [
        Stack(
            key=stack.key,
            frames=[frames[number] for number in stack.frames],
            python=stack.python,
            truncated=stack.truncated,
        )
        for stack in stored
    ]
