"""What goes into a measured program: the compiled library, the agent's script, and their settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ffm import marks
from ffm.driver.catalogue import load_catalogue
from ffm.driver.versions import newest
from ffm.driver.vocabulary import DefaultStream
from ffm.instrument.library import COLLECTOR, RANGES, native_library
from ffm.instrument.session.cut import Lasting
from ffm.instrument.session.portion import Asked, Iterations

_ROOM = Path(__file__).parents[1]

AGENT = _ROOM / "agent"
AGENT_PARTS = (
    "answers",
    "collector",
    "detours",
    "jumps",
    "library_patches",
    "python",
    "counters",
    "driver_hooks",
    "entry_points",
    "trace",
    "main",
)
"""One script, concatenated in this order."""

TRANSLATOR = (
    _ROOM / "native" / "watch" / "detection" / "trace_operand.h",
    _ROOM / "trace_instructions.c",
    _ROOM / "trace_code_checks.c",
    _ROOM / "trace_translator.c",
)
"""The trace watch, compiled inside the program."""

ASKED = (
    "pointer_attribute",
    "device_attribute",
    "function_parameter",
    "kernel_parameter",
    "current_context",
    "context_device",
    "device_uuid",
    "function_name",
    "kernel_name",
    "function_module",
    "kernel_library",
)
ASKED_OF_GRAPHS = (
    "is_capturing",
    "graph_nodes",
    "node_type",
    "node_copy",
    "node_set",
    "node_kernel",
    "node_kernel_before_12",
    "node_child",
    "kernel_attribute",
)
"""What the collector asks the driver, as purposes of the catalogue's `own_calls`, in the order of the parameters of
`ffm_collector_ask` and `ffm_collector_ask_graphs`.
"""

NVTX_TOOL = "NVTX_INJECTION64_PATH"
"""In a program's environment: the library that NVTX notifies of ranges."""


TUNABLES, HIDDEN = "GLIBC_TUNABLES", "glibc.cpu.hwcaps"
"""In a program's environment: what the C library takes the CPU for."""

NARROW = f"{HIDDEN}=-AVX512VL,-AVX512F"
"""With the first one, glibc 2.36 uses 512-bit registers in strstr; with the other one alone, in memcpy."""


class FoundWait(Protocol):
    """What the runner needs to know about a driver's internal wait function."""

    @property
    def offsets(self) -> tuple[int, ...]:
        """Starts as offsets from the driver's base: several if the driver has more than one, none if unknown."""


@dataclass(frozen=True, slots=True)
class Library:
    """A compiled library for the measured program. It exports the functions in `collector.h` under its own prefix."""

    file: str
    prefix: str


RECORDING = Library(COLLECTOR, "ffm_collector")

PAGES = "libffm_pages.so"
"""Preloaded for a watch that protects pages: gives large heap blocks their own (`pages.c`), and lets other processes
reach protected ones (`neighbours.c`).
"""


@dataclass(frozen=True, slots=True)
class HeapRequest:
    """Code that requests heap blocks of some bytes: the file's path, and the offset of the return address in it."""

    path: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Instruments:
    """What to put into the program. `functions` are exported names in the catalogue."""

    folder: Path
    functions: list[str]
    mode: int
    """Flags `FFM_MODE_*` of `modes.h`."""
    plan: Path | None
    find_wait_function: Callable[[Path], FoundWait]
    library: Library = RECORDING
    extra_functions: tuple[str, ...] = ()
    """Exported names outside the catalogue, for a library that knows them; their indices follow the catalogue's."""
    guarded_functions: tuple[str, ...] = ()
    """Names in the C library that the library replaces from the start; their indices follow those."""
    preloaded: tuple[str, ...] = ()
    """Our libraries that the program loads before its own."""
    own_pages: tuple[HeapRequest, ...] = ()
    """Whose blocks get pages of their own, if `PAGES` is among these."""
    portion: Asked | None = None
    """What to record of the run; None for all of it."""
    last_s: float | None = None
    """Keep only this many seconds at the end of the recording; None for all. Not while memory is watched."""
    trace: bool = False
    """Watch memory by translating the program's code instead of protecting its pages."""
    lasting: Lasting | None = None
    """When to end the recordings, and then the program; None to let it run to its end."""
    leave: bool = False
    """Leave the program running, without instruments, after that, or when ffm is interrupted. Not while its memory is
    watched.
    """
    unread: Path | None = None
    """A file of `ffm_unread`: which bytes of their parameters kernels never read. None if that is not known."""
    ranges: bool = False
    """Record the ranges that the program marks with NVTX, unless it has another tool for them."""


def agent_script() -> str:
    """Return the agent's text."""
    return "\n".join((AGENT / f"{part}.js").read_text() for part in AGENT_PARTS)


def configuration_of(instruments: Instruments) -> dict[str, Any]:
    """Return the settings that the agent gets when it starts."""
    catalogue = load_catalogue()
    guarded = len(catalogue) + len(instruments.extra_functions)
    return {
        "collector": str(native_library(instruments.library.file)),
        "prefix": instruments.library.prefix,
        "folder": str(instruments.folder.resolve()),
        "mode": instruments.mode,
        "portion": None if instruments.portion is None else instruments.portion.configuration(),
        "kept": 0 if instruments.last_s is None else round(instruments.last_s * 1e9),
        "plan": None if instruments.plan is None else str(instruments.plan.resolve()),
        "unread": None if instruments.unread is None else str(instruments.unread.resolve()),
        "ownPages": _by_module(instruments.own_pages),
        "translator": "".join(part.read_text() for part in TRANSLATOR) if instruments.trace else None,
        "functions": [
            *([catalogue[name].index, name] for name in instruments.functions),
            *([len(catalogue) + place, name] for place, name in enumerate(instruments.extra_functions)),
        ],
        "asked": [catalogue.own_calls[purpose][0] for purpose in ASKED],
        "askedOfGraphs": [catalogue.own_calls[purpose][0] for purpose in ASKED_OF_GRAPHS],
        "newest": newest(),
        "forms": _forms(instruments.functions),
        "guarded": [[guarded + place, name] for place, name in enumerate(instruments.guarded_functions)],
    }


def _by_module(requests: Sequence[HeapRequest]) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for request in requests:
        found.setdefault(request.path, []).append([request.offset, request.bytes])
    return found


def marks_environment(instruments: Instruments) -> dict[str, str]:
    """Return the environment variable that names the library to report marks to, if a recording depends on marks."""
    if not isinstance(instruments.portion, Iterations):
        return {}
    return {marks.COLLECTOR: str(native_library(instruments.library.file))}


def ranges_environment(instruments: Instruments) -> dict[str, str]:
    """Return the environment variable that makes NVTX load our library. The program's own value takes precedence."""
    return {NVTX_TOOL: str(native_library(RANGES))} if instruments.ranges else {}


def registers_environment(instruments: Instruments, base: dict[str, str]) -> dict[str, str]:
    """Return the environment variable that keeps the C library from 512-bit registers, for a watch that loses their
    upper halves. What the program's own value says of the CPU takes precedence.
    """
    own = base.get(TUNABLES, "")
    if not instruments.trace or not _has_wide_registers() or HIDDEN in own:
        return {}
    return {TUNABLES: ":".join(filter(None, [own, NARROW]))}


@functools.cache
def _has_wide_registers() -> bool:
    return "avx512f" in Path("/proc/cpuinfo").read_text()


def _forms(functions: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return, by base name, what the agent needs to match an answer of `cuGetProcAddress` with one of `functions`."""
    catalogue = load_catalogue()
    forms: dict[str, list[dict[str, Any]]] = {}
    for name in functions:
        function = catalogue[name]
        per_thread = function.default_stream is DefaultStream.PER_THREAD
        form = {"index": function.index, "name": name, "since": function.since, "perThread": per_thread}
        forms.setdefault(function.base, []).append(form)
    return forms
