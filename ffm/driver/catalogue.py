"""The table of driver functions that ffm knows, read from `catalogue.toml`.

The native build also reads this table (`ffm.driver.generate`), before any package is installed, so this module needs
only the standard library.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ffm.driver.vocabulary import Awaits, DefaultStream, Direction, Effect, Kind, Memory, Shape
from ffm.errors import FfmError

TABLE = Path(__file__).with_name("catalogue.toml")
FORMAT_VERSION = 1

ABSENT = -1
"""Position of an argument that a function does not have."""


ROLES = (
    "destination",
    "source",
    "bytes",
    "stream",
    "result",
    "handle",
    "value",
    "pitch",
    "height",
    "count",
    "destination_context",
    "source_context",
    "parameters",
    "extra",
    "node",
    "description",
    "flags",
)
"""Names of the argument positions of `DriverFunction`."""


SETTINGS = frozenset(
    ("kind", "memory", "direction", "shape", "element", "asynchronous", "awaits", "effect", "functions")
)
"""What a group of the table can say."""


class CatalogueError(FfmError):
    """The table of driver functions does not follow the rules in its header."""

    help = "Correct it: `docs/driver-functions.md` says how."


@dataclass(frozen=True, slots=True)
class DriverFunction:
    """One exported function. Positions of arguments count from 0; `ABSENT` if there is none."""

    index: int
    """Index in the expanded table; recordings identify functions by it."""
    name: str
    """Exported name, with its version and default-stream suffix."""
    base: str
    """Name without suffixes, as passed to `cuGetProcAddress`."""
    kind: Kind
    memory: Memory
    direction: Direction
    shape: Shape
    arity: int
    element: int
    """Bytes of one element that a memset writes, else 0."""
    asynchronous: bool
    """The call promises to return before its work is done."""
    default_stream: DefaultStream
    awaits: Awaits = Awaits.NOTHING
    effect: Effect = Effect.NONE
    destination: int = ABSENT
    source: int = ABSENT
    bytes: int = ABSENT
    stream: int = ABSENT
    result: int = ABSENT
    handle: int = ABSENT
    value: int = ABSENT
    pitch: int = ABSENT
    height: int = ABSENT
    count: int = ABSENT
    destination_context: int = ABSENT
    source_context: int = ABSENT
    parameters: int = ABSENT
    extra: int = ABSENT
    node: int = ABSENT
    description: int = ABSENT
    flags: int = ABSENT
    since: int = 0
    """Version of CUDA (1000 * major + 10 * minor) that brought it."""

    @property
    def captures(self) -> bool:
        """Whether it begins or ends the capture of a stream's calls into a graph."""
        return self.effect in (Effect.BEGIN_CAPTURE, Effect.END_CAPTURE)

    @property
    def makes_context(self) -> bool:
        """Whether it gives out a context, which it makes if there is none."""
        return self.effect is Effect.ENTER_CONTEXT and self.result != ABSENT

    @property
    def ends_context(self) -> bool:
        """Whether it may destroy a context."""
        return self.effect in (Effect.END_CONTEXT, Effect.RELEASE_CONTEXT)

    def row(self) -> str:
        """Return all fields as one line of text; the table's digest is computed from these lines."""
        names = [name for name in self.__dataclass_fields__ if name not in ("index", "since")]
        return " ".join(str(getattr(self, name)) for name in names)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The expanded table."""

    functions: tuple[DriverFunction, ...]
    """In index order."""
    left_out: frozenset[str]
    """Names of known functions that ffm does not watch."""
    own_calls: Mapping[str, tuple[str, ...]]
    """By purpose, the exported names of a function that ffm calls itself: the first one that the driver has."""
    extra: Mapping[str, str]
    """By purpose, the exported names of functions that only corrections replace; their indices follow the table's."""
    same_as: Mapping[str, str]
    """By call of another interface, the base name of the driver function that does the same."""
    same_family: Mapping[str, tuple[str, str]]
    """By how calls of the runtime begin, the base names of what does the same: as they are, and ending in `Async`."""
    _by_name: dict[str, DriverFunction] = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, key: int | str) -> DriverFunction:
        """Return a function by index or exported name. Raises `IndexError` or `KeyError`."""
        if isinstance(key, str):
            return self._by_name[key]
        return self.functions[key]

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the expanded table; a recording names the table it was made with."""
        return _digest(self.functions)

    def get(self, name: str) -> DriverFunction | None:
        """Return the function with this exported name, or None if the table has none."""
        return self._by_name.get(name)

    def of_kind(self, *kinds: Kind) -> tuple[DriverFunction, ...]:
        """Return the functions of these kinds, in index order."""
        return tuple(function for function in self.functions if function.kind in kinds)

    def with_effect(self, *effects: Effect) -> tuple[DriverFunction, ...]:
        """Return the functions with these effects, in index order."""
        return tuple(function for function in self.functions if function.effect in effects)


def load_catalogue(path: Path = TABLE) -> Catalogue:
    """Return the table in `path`. Raises `CatalogueError` if a row is wrong, `OSError` if there is no file."""
    return _load(path)


@cache
def _load(path: Path) -> Catalogue:
    with path.open("rb") as file:
        document = tomllib.load(file)
    if document.get("version") != FORMAT_VERSION:
        raise CatalogueError(
            f"{path}: the table has version {document.get('version')}, but this ffm reads {FORMAT_VERSION}."
        )
    functions: list[DriverFunction] = []
    by_name: dict[str, DriverFunction] = {}
    for group in document["group"]:
        for function in _expand(group, len(functions)):
            if function.name in by_name:
                raise CatalogueError(f"{path}: {function.name} has two rows.")
            by_name[function.name] = function
            functions.append(function)
    left_out = frozenset(name for names in document.get("left_out", {}).values() for name in names)
    both = sorted(left_out & by_name.keys())
    if both:
        raise CatalogueError(f"{path}: both watched and left out: {', '.join(both)}.")
    own_calls = {purpose: tuple(names) for purpose, names in document.get("own_calls", {}).items()}
    unknown = sorted({name for names in own_calls.values() for name in names} - left_out - by_name.keys())
    if unknown:
        raise CatalogueError(f"{path}: called but not in the table: {', '.join(unknown)}.")
    extra = dict(document.get("extra", {}))
    same_as = {call: base for base, calls in document.get("same_as", {}).items() for call in calls}
    same_family = {start: (now, later) for start, (now, later) in document.get("same_family", {}).items()}
    bases = {function.base for function in functions}
    meant = {*same_as.values(), *(base for both in same_family.values() for base in both)}
    if unknown := sorted((set(extra.values()) - left_out - by_name.keys()) | (meant - bases)):
        raise CatalogueError(f"{path}: replaced, or the same as a call, but not in the table: {', '.join(unknown)}.")
    return Catalogue(tuple(functions), left_out, own_calls, extra, same_as, same_family, by_name)


@cache
def _digest(functions: tuple[DriverFunction, ...]) -> str:
    return hashlib.sha256("\n".join(function.row() for function in functions).encode()).hexdigest()


def _expand(group: dict[str, Any], first: int) -> list[DriverFunction]:
    """Return the functions of one group; `first` is the index of the first one."""
    unknown = group.keys() - SETTINGS
    if unknown:
        raise CatalogueError(f"a group has unknown keys: {', '.join(sorted(unknown))}.")
    settings: dict[str, Any] = {
        "kind": Kind(group["kind"]),
        "memory": Memory(group.get("memory", "none")),
        "direction": Direction(group.get("direction", "none")),
        "shape": Shape(group.get("shape", "plain")),
        "element": group.get("element", 0),
        "asynchronous": group.get("asynchronous", False),
        "awaits": Awaits(group.get("awaits", "nothing")),
        "effect": Effect(group.get("effect", "none")),
    }
    expanded: list[DriverFunction] = []
    for base, versions, arguments, since in group["functions"]:
        roles = arguments.split()
        positions: dict[str, Any] = {role: place for place, role in enumerate(roles) if role != "_"}
        wrong = sorted(positions.keys() - set(ROLES))
        if wrong or len(positions) != len([role for role in roles if role != "_"]):
            raise CatalogueError(f"{base}: the roles '{arguments}' are unknown or not unique.")
        if len(since.split()) != len(versions.split()):
            raise CatalogueError(f"{base}: '{since}' is not a version of CUDA for each of '{versions}'.")
        for version, brought in zip(versions.split(), since.split(), strict=True):
            name = base if version == "-" else f"{base}_{version}"
            per_thread = name.endswith(("_ptsz", "_ptds"))
            expanded.append(
                DriverFunction(
                    index=first + len(expanded),
                    name=name,
                    base=base,
                    arity=len(roles),
                    default_stream=DefaultStream.PER_THREAD if per_thread else DefaultStream.LEGACY,
                    since=int(brought),
                    **settings,
                    **positions,
                )
            )
    return expanded
