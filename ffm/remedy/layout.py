"""The correcting library's plan and counters, parsed from the C declarations that it is compiled with."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cffi

from ffm.stages.errors import FfmError

NATIVE = Path(__file__).parent / "native"
DECLARATIONS = NATIVE / "remedy_layout.h"
EXTRA_FUNCTIONS = NATIVE / "extra_functions.def"
GUARDED_FUNCTIONS = NATIVE / "guarded_functions.def"

SITE = struct.Struct("<16sII")
"""`ffm_remedy_site`."""


@cache
def declarations() -> cffi.FFI:
    """Parse the declarations of `remedy_layout.h`."""
    parser = cffi.FFI()
    parser.cdef(DECLARATIONS.read_text())
    return parser


@cache
def constant(name: str) -> int:
    """Return the value of an enumerator, such as `FFM_REMEDY_SKIP`."""
    return int(getattr(declarations().dlopen(None), name))


@cache
def extra_functions() -> tuple[str, ...]:
    """Return the driver functions outside the catalogue that the library replaces, in its order."""
    return tuple(re.findall(r"^EXTRA\((\w+)\)", EXTRA_FUNCTIONS.read_text(), re.MULTILINE))


@cache
def guarded_functions() -> tuple[str, ...]:
    """Return the C library functions that the library guards while downloads are pending, in its order."""
    kinds = "BUFFER|VECTOR|MESSAGES|STRUCTURE|PROCESS|OTHER"
    return tuple(re.findall(rf"^(?:{kinds})\((\w+)[,)]", GUARDED_FUNCTIONS.read_text(), re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Tally:
    """What happened at a planned site: all calls, corrected ones, and those that fell back to waiting."""

    calls: int
    corrected: int
    waited: int


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one process: `ffm_remedy_counters` by field, and a tally for each site of the plan."""

    values: dict[str, int]
    tallies: list[Tally]


def read_counters(path: Path) -> Counted:
    """Read the counters of a process.

    Raises:
        FfmError: The file is truncated, or of another version.
    """
    parser = declarations()
    content = path.read_bytes()
    size = parser.sizeof("ffm_remedy_counters")
    if len(content) < size:
        raise FfmError(f"{path} is truncated: the corrected program's counts are lost. Run the command again.")
    header: Any = parser.from_buffer("ffm_remedy_counters *", content[:size])
    if parser.string(header.magic, 8) != b"FFMREMED" or header.version != constant("FFM_REMEDY_VERSION"):
        raise FfmError(f"{path} was written by another version of ffm. Run the command again.")
    fields = [name for name, field in parser.typeof("ffm_remedy_counters").fields if field.type.kind == "primitive"]
    rest = content[size:]
    tally = struct.Struct("<QQQ")
    tallies = [Tally(*tally.unpack_from(rest, place * tally.size)) for place in range(header.sites)]
    return Counted({name: int(getattr(header, name)) for name in fields}, tallies)
