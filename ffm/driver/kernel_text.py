"""Kernels in the text of PTX: their parameters, and the instructions between their braces.

See NVIDIA's "Parallel Thread Execution ISA" for the directives.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from ffm.errors import FfmError

_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
"""Bytes of a type, by the number at its end."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*\.(?:loc|file)\b[^\n]*", re.DOTALL | re.MULTILINE)
"""Comments, and the directives that have no semicolon at their end."""

_ENTRY_NAME = re.compile(r"\.entry\s+(?P<name>[\w$%]+)")
_ENTRY = re.compile(_ENTRY_NAME.pattern + r"\s*(?:\((?P<parameters>[^)]*)\))?[^{;]*(?P<body>\{)")
_BRACE = re.compile(r"[{}]")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>[a-z]\d+)\s+"
    r"(?:\.ptr(?:\s*\.\w+)*?(?:\s*\.align\s+\d+)?\s+)?(?P<name>[\w$%]+)\s*(?:\[(?P<bytes>\d+)\])?"
)


class UnknownTypeError(FfmError):
    """A parameter has a type whose size is not known."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"PTX declares a parameter of the type .{kind}, whose size ffm does not know.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, and where it lies behind the first one, in bytes."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class KernelText:
    """A kernel, as it stands in the text."""

    name: str
    declared: str
    begin: int
    """Where its body begins in the text."""
    body: str
    """From its opening brace to its closing one."""

    def parameters(self) -> list[Parameter]:
        """Return the parameters in their order.

        Raises:
            UnknownTypeError: One has a type that is not known.
        """
        found: list[Parameter] = []
        place = 0
        for one in _PARAMETER.finditer(self.declared):
            element = size_of(one["type"])
            align = max(int(one["align"] or 1), element)
            place = -(-place // align) * align
            found.append(Parameter(one["name"], place, element * int(one["bytes"] or 1)))
            place += found[-1].size
        return found


def size_of(kind: str) -> int:
    """Return the bytes of a type such as `u64`, a letter and its bits.

    Raises:
        UnknownTypeError: It is not known.
    """
    size = _SIZES.get(kind[1:])
    if size is None:
        raise UnknownTypeError(kind)
    return size


def without_comments(ptx: str) -> str:
    """Return the text without comments and the places in sources."""
    return _COMMENT.sub("", ptx)


def names_of(ptx: str) -> list[str]:
    """Return the names of all kernels of a text, and of those that only comments mention."""
    return _ENTRY_NAME.findall(ptx)


def kernels_of(text: str, wanted: Container[str] | None = None) -> Iterator[KernelText]:
    """Yield the kernels of a text without comments: those with `wanted` names, or all."""
    for entry in _ENTRY.finditer(text):
        if wanted is not None and entry["name"] not in wanted:
            continue
        begin = entry.start("body")
        yield KernelText(entry["name"], entry["parameters"] or "", begin, text[begin : _end_of_block(text, begin)])


def _end_of_block(text: str, begin: int) -> int:
    depth = 0
    for brace in _BRACE.finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)
