"""The binary layout of recordings and plans, read from the C declarations that the collector is compiled with.

They are few and plain, and every stage needs them when it starts: a parser for all of C takes longer to import than
they take to read.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"FFMTRACE"
"""The first bytes of a recording."""

_RECORD = Path(__file__).parents[1] / "native" / "record"
DECLARATIONS = tuple(_RECORD / name for name in ("layout.h", "stack_layout.h", "thread_layout.h", "plan_layout.h"))

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ENUMERATION = re.compile(r"\benum\s*\{(.*?)\}", re.DOTALL)
_DEFINITION = re.compile(r"^#define (\w+) (\w+)$", re.MULTILINE)
_STRUCTURE = re.compile(r"\btypedef struct\s*\{(.*?)\}\s*(\w+);", re.DOTALL)
_FIELD = re.compile(r"(\w+)(?:\[(\w+)\])?")
_NUMBERS = {f"{sign}int{8 * size}_t": f"<{sign[:1] or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
"""The NumPy type of each of C's types."""


@cache
def constant(name: str) -> int:
    """Return the value of an enumerator, such as `FFM_CHUNK_OPERATIONS`, or of a macro."""
    return constants()[name]


@cache
def record_type(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a C structure, such as `ffm_operation`: same fields, offsets and size."""
    fields: list[tuple[str, Any]] = []
    for declaration in filter(None, map(str.strip, structures()[name].split(";"))):
        kind, names = declaration.split(maxsplit=1)
        for field, length in map(_declared, names.split(",")):
            fields.append((field, _format(kind, length)))
    as_in_c = np.dtype(fields, align=True)
    assert as_in_c.fields is not None
    formats, offsets = zip(*(as_in_c.fields[field][:2] for field, _ in fields), strict=True)
    # Rows in a file need not be aligned.
    return np.dtype(
        {
            "names": [field for field, _ in fields],
            "formats": formats,
            "offsets": offsets,
            "itemsize": as_in_c.itemsize,
        }
    )


@cache
def structures() -> dict[str, str]:
    """Return the C structures by name, each with the declarations of its fields."""
    return {name: fields for fields, name in _STRUCTURE.findall(_declarations())}


@cache
def constants() -> dict[str, int]:
    """Return the values of all enumerators and macros by name."""
    values = {name: int(number, 0) for name, number in _DEFINITION.findall(_declarations())}
    for enumeration in _ENUMERATION.findall(_declarations()):
        following = 0
        for one in filter(None, map(str.strip, enumeration.split(","))):
            name, _, number = (part.strip() for part in one.partition("="))
            base, _, shift = number.partition("<<")
            values[name] = int(base, 0) << int(shift or "0", 0) if number else following
            following = values[name] + 1
    return values


@cache
def _declarations() -> str:
    return _COMMENT.sub(" ", "\n".join(header.read_text() for header in DECLARATIONS))


def _declared(text: str) -> tuple[str, int]:
    """Return the name of a field and how many elements it has; 0 if it is no array."""
    matched = _FIELD.fullmatch(text.strip())
    if matched is None:
        raise ValueError(f"{_RECORD} declares a field of another form than `name` or `name[8]`: {text.strip()}")
    name, length = matched.groups()
    return name, 0 if length is None else int(length)


def _format(kind: str, length: int) -> Any:
    if kind == "char":
        return f"S{length or 1}"
    return (_NUMBERS[kind], (length,)) if length else _NUMBERS[kind]
