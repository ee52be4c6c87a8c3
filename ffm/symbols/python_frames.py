"""Python functions in native call stacks: which native frames they stand for, and names that Cython made.

CPython runs Python functions in its evaluation function. Called from C, a Python function gets a frame of its own
there; called from Python, it shares its caller's (3.11 and later). So a native frame of the evaluation function stands
for a run of Python functions, up to one that the interpreter marks as an entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

EVALUATION = "_PyEval_EvalFrameDefault"
"""CPython's evaluation function."""

_EVALUATION = re.compile(EVALUATION + r"(\..*)?")
_TAIL_CALL = re.compile(r"_TAIL_CALL_\w+(\..*)?")
"""Since 3.14 the interpreter can be built with a function for each instruction, which the evaluation function calls."""

_CYTHON = re.compile(
    r"__pyx_(?:pw|pf|fuse_\d+_?pw|fuse_\d+_?pf|f|gb|mdef|tp_\w+?|getprop|setprop|specialmethod)_(?=\d)"
)


@dataclass(frozen=True, slots=True)
class Native:
    """A native frame of the joined stack, by its index."""

    index: int


@dataclass(frozen=True, slots=True)
class Python:
    """A Python frame of the joined stack, by its index."""

    index: int


def is_evaluation(function: str) -> bool:
    """Whether a native function is CPython's evaluation function, or a part of it."""
    return bool(_EVALUATION.fullmatch(function) or _TAIL_CALL.fullmatch(function))


def join(functions: Sequence[str], entries: Sequence[bool], *, complete: bool = True) -> list[Native | Python] | None:
    """Put Python frames in place of the evaluation function's native frames.

    `functions` names the native frames and `entries` says of each Python frame whether it is an entry, both innermost
    first. A stack that is not `complete` was cut at its outer end, so that some frames there may lack their partner.

    Returns:
        All frames but those of the evaluation function, innermost first; None where the two sides do not agree on how
        often the interpreter was entered, and nothing tells which frames belong together.
    """
    evaluations = _evaluations(functions)
    runs = _runs(entries)
    if complete and len(evaluations) != len(runs):
        return None
    paired = min(len(evaluations), len(runs))
    joined: list[Native | Python] = []
    at = 0
    for (start, end), run in zip(evaluations[:paired], runs[:paired], strict=True):
        joined += [Native(index) for index in range(at, start)]
        joined += [Python(index) for index in run]
        at = end
    joined += [Native(index) for index in range(at, len(functions))]
    joined += [Python(index) for run in runs[paired:] for index in run]
    return joined


def _evaluations(functions: Sequence[str]) -> list[tuple[int, int]]:
    """First and past-the-last native frame of each evaluation."""
    found: list[tuple[int, int]] = []
    index = 0
    while index < len(functions):
        start = index
        if _TAIL_CALL.fullmatch(functions[index]):
            index += 1
            if index < len(functions) and _EVALUATION.fullmatch(functions[index]):
                index += 1
        elif _EVALUATION.fullmatch(functions[index]):
            index += 1
        if index > start:
            found.append((start, index))
        else:
            index += 1
    return found


def _runs(entries: Sequence[bool]) -> list[range]:
    """The Python frames of each evaluation: they end with an entry."""
    ends = [index + 1 for index, entry in enumerate(entries) if entry]
    if len(entries) > (ends[-1] if ends else 0):
        ends.append(len(entries))
    return [range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def cython_name(symbol: str) -> str:
    """The function that Cython compiled to a C symbol: `__pyx_pw_4cuda_8bindings_6driver_123cuMemAlloc` is
    `cuda.bindings.driver.cuMemAlloc`. Other names come back as they are.

    Each part of the module's and class's name stands behind its length; the number before the last name counts the
    module's functions.
    """
    prefix = _CYTHON.match(symbol)
    if prefix is None:
        return symbol
    rest = symbol[prefix.end() :]
    parts: list[str] = []
    while match := re.match(r"(\d+)", rest):
        end = match.end() + int(match[1])
        if end >= len(rest) or rest[end] != "_":
            break
        parts.append(rest[match.end() : end])
        rest = rest[end + 1 :]
    return ".".join([*parts, re.sub(r"^\d+", "", rest)]) if parts else symbol
