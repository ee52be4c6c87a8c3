"""Call stacks in documents, innermost frame first. A file has each distinct frame once."""

from __future__ import annotations

from collections.abc import Iterable
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
    """A stack in a file. Its frames are those of chains, one after the other, by their numbers in the list."""

    key: StackKey
    chains: list[int]
    python: list[PythonFrame] = msgspec.field(default_factory=list)
    truncated: bool = False


INNER_FRAMES = 12
"""A file has the innermost frames of a stack as one chain, and those outside of them as another."""


def stored_stacks(stacks: list[Stack]) -> dict[str, Any]:
    """Return what a file says of stacks. It has each distinct frame once, and each distinct chain of them: of a million
    stacks, most have their inner frames in common with some, and their outer frames with others.
    """
    chains = _Chains()
    stored = []
    for stack in stacks:
        one: dict[str, Any] = {"key": stack.key, "chains": chains.of(stack.frames)}
        if stack.python:
            one["python"] = msgspec.to_builtins(stack.python)
        if stack.truncated:
            one["truncated"] = True
        stored.append(one)
    return {"frames": msgspec.to_builtins(list(chains.frames)), "chains": list(chains.numbers), "stacks": stored}


class _Chains:
    """Numbers chains of frames, and their frames. Frames are compared once for each object: stacks share these."""

    def __init__(self) -> None:
        self.frames: dict[Frame, int] = {}
        self.numbers: dict[tuple[int, ...], int] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, frames: list[Frame]) -> list[int]:
        """Return the chains that the frames of a stack are; none if it has no frames."""
        return [self._number(chain) for chain in (frames[:INNER_FRAMES], frames[INNER_FRAMES:]) if chain]

    def _number(self, chain: list[Frame]) -> int:
        objects = tuple(map(id, chain))
        number = self._known.get(objects)
        if number is None:
            content = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in chain)
            number = self._known[objects] = self.numbers.setdefault(content, len(self.numbers))
        return number


def taken_stacks(content: dict[str, Any]) -> list[Stack]:
    """Take what `stored_stacks` returned out of a file's content, and return the stacks.

    Raises:
        ValueError: It is something else.
    """
    frames = msgspec.convert(content.pop("frames", None), list[Frame])
    numbers = msgspec.convert(content.pop("chains", None), list[list[int]])
    stored = msgspec.convert(content.pop("stacks", None), list[_StoredStack])
    _check_numbers("chain", "frame", numbers, len(frames))
    _check_numbers("stack", "chain", (stack.chains for stack in stored), len(numbers))
    chains = [[frames[number] for number in chain] for chain in numbers]
    return [
        Stack(
            key=stack.key,
            frames=[frame for chain in stack.chains for frame in chains[chain]],
            python=stack.python,
            truncated=stack.truncated,
        )
        for stack in stored
    ]


def _check_numbers(what: str, named: str, numbers: Iterable[list[int]], count: int) -> None:
    if any(min(each, default=0) < 0 or max(each, default=-1) >= count for each in numbers):
        raise ValueError(f"a {what} names a {named} that is not among the {count}")
