"""The correcting library's plan and counters, parsed from the C declarations that it is compiled with."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cffi

from ffm.errors import FfmError
from ffm.instrument.declarations import constant_in, declarations_in

NATIVE = Path(__file__).parents[1] / "instrument" / "native" / "correction" / "foundation"
DECLARATIONS = NATIVE / "remedy_layout.h"
GUARDED_FUNCTIONS = NATIVE / "guarded_functions.def"

PLAN_MAGIC = b"FFMSITES"
PLAN = struct.Struct("<8sIIQ")
"""`ffm_remedy_plan`, which the sites follow."""

SITE = struct.Struct("<16sIIII")
"""`ffm_remedy_site`."""


def declarations() -> cffi.FFI:
    """Return the declarations of `remedy_layout.h`."""
    return declarations_in(DECLARATIONS)


@cache
def constant(name: str) -> int:
    """Return the value of an enumerator, such as `FFM_REMEDY_SKIP`."""
    return constant_in(DECLARATIONS, name)


def costs(library: Path) -> tuple[float, float] | None:
    """Measure seconds per byte of hashing and copying with the compiled library; None if memory is short."""
    parser = cffi.FFI()
    parser.cdef("typedef struct { double hash, copy; } ffm_remedy_costs; bool ffm_remedy_measure(ffm_remedy_costs *);")
    found: Any = parser.new("ffm_remedy_costs *")
    native: Any = parser.dlopen(str(library))
    return (found.hash, found.copy) if native.ffm_remedy_measure(found) else None


@cache
def guarded_functions() -> tuple[str, ...]:
    """Return the C library functions that the library guards while downloads are pending, in its order."""
    kinds = "BUFFER|VECTOR|MESSAGES|STRUCTURE|PROCESS|SIGNAL|OTHER"
    return tuple(re.findall(rf"^(?:{kinds})\((\w+)[,)]", GUARDED_FUNCTIONS.read_text(), re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Tally:
    """What happened at a planned site: all calls, corrected ones, those that fell back to waiting, and those left as
    they are by the trial of its unit.
    """

    calls: int
    corrected: int
    waited: int
    original: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What a unit's trial found (`trials.h`): whether it is corrected, and how much slower that is, as the
    median of some pairs of blocks. `slower` is a share of the longer time; it is None without a pair. `spent_s` are
    seconds in corrected calls and for late deliveries.
    """

    corrects: bool
    pairs: int
    slower: float | None
    spent_s: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one process: `ffm_remedy_counters` by field, a tally for each site of the plan, and a trial for
    each unit.
    """

    values: dict[str, int]
    tallies: list[Tally]
    trials: list[Trial]


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
    if len(rest) < header.sites * (_TALLY.size + _TRIAL.size):
        raise FfmError(f"{path} is truncated: the corrected program's counts are lost. Run the command again.")
    tallies = [Tally(*_TALLY.unpack_from(rest, place * _TALLY.size)) for place in range(header.sites)]
    rest = rest[header.sites * _TALLY.size :]
    trials = [_trial(*_TRIAL.unpack_from(rest, place * _TRIAL.size)) for place in range(header.sites)]
    return Counted({name: int(getattr(header, name)) for name in fields}, tallies, trials)


_TALLY, _TRIAL = struct.Struct("<QQQQ"), struct.Struct("<IIddQ")
"""`ffm_remedy_tally` and `ffm_remedy_trial`."""


def _trial(corrects: int, pairs: int, slower: float, _deviation: float, spent_ns: int) -> Trial:
    return Trial(bool(corrects), pairs, slower if pairs else None, spent_ns / 1e9)
