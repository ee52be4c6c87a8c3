"""What a driver's file reveals without running it; cached for each build.

Dissertation 4.1: the internal wait function is among the functions that all the known waiting calls reach.
"""

from __future__ import annotations

import bisect
import hashlib
from pathlib import Path

import msgspec
import numpy as np

from ffm.cache import private_cache, remember
from ffm.driver.call_graph import CallGraph, build_call_graph
from ffm.driver.catalogue import load_catalogue
from ffm.driver.functions import function_ranges
from ffm.driver.implementations import Implementation, implementations
from ffm.driver.library import DriverFileError, Library, read_library

FORMAT_VERSION = 1

WAITING_CALLS = tuple(
    load_catalogue().own_calls[purpose][0]
    for purpose in ("synchronize_context", "synchronize_stream", "synchronize_event", "download", "free")
)
"""Public calls that wait for the GPU whenever it is busy."""


class DriverAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The static analysis of one build. Addresses are offsets from the module's base."""

    version: int
    identity: str
    """Build-id, or a hash of the file if it has none."""
    from_unwind_tables: bool
    """Whether `starts` and `ends` come from `.eh_frame`; otherwise they are guessed from call targets."""
    starts: list[int]
    """Starts of all functions, sorted."""
    ends: list[int]
    """Ends of all functions, exclusive; same length."""
    split_off: dict[int, int]
    """For each range that is a split-off part of a function: its start, and the start of the function."""
    exports: dict[str, int]
    """Address of each exported function."""
    implementations: list[Implementation]
    """Ranges that belong to exported functions, sorted and disjoint."""
    candidates: list[int]
    """Starts of the functions that every one of `WAITING_CALLS` reaches by direct calls and slots."""

    def function_start(self, address: int) -> int | None:
        """Return the start of the function that contains `address`, or None if none does.

        For an address in a split-off part, this is where the whole function is entered.
        """
        place = bisect.bisect_right(self.starts, address) - 1
        if place < 0 or address >= self.ends[place]:
            return None
        start = self.starts[place]
        return self.split_off.get(start, start)

    def names_at(self, address: int) -> tuple[str, ...]:
        """Return the exported functions whose own code contains `address`; empty if no single family does."""
        place = bisect.bisect_right(self.implementations, address, key=lambda item: item.start) - 1
        if place < 0 or address >= self.implementations[place].end:
            return ()
        return self.implementations[place].names


def analyse_driver(path: Path) -> DriverAnalysis:
    """Return the analysis of the driver at `path`, from the cache if it has this build.

    Raises `ffm.driver.library.DriverFileError` if the file is not a driver.
    """
    library = read_library(path)
    identity = identity_of(library)
    cache, name = cache_folder(), f"{identity}.json"
    cached = None if cache is None else _read_cached(cache / name, identity)
    if cached is not None:
        return cached
    analysis = analyse(library)
    remember(cache, name, msgspec.json.encode(analysis))
    return analysis


def analyse(library: Library) -> DriverAnalysis:
    """Return the analysis of `library`, without the cache. Raises `DriverFileError` if it is not a driver."""
    functions = function_ranges(library)
    graph = build_call_graph(library, functions)
    return DriverAnalysis(
        version=FORMAT_VERSION,
        identity=identity_of(library),
        from_unwind_tables=functions.from_unwind_tables,
        starts=functions.starts.tolist(),
        ends=functions.ends.tolist(),
        split_off=_split_off(graph),
        exports=library.exports,
        implementations=list(implementations(library, graph)),
        candidates=_candidates(library, graph),
    )


def identity_of(library: Library) -> str:
    """Return the name of this build: its build-id, or a hash of the file if it has none."""
    return library.build_id or "sha256-" + hashlib.sha256(library.path.read_bytes()).hexdigest()


def cache_folder() -> Path | None:
    """Return the folder that caches findings about drivers, by build; None if nothing can be cached."""
    cache = private_cache()
    return None if cache is None else cache / "drivers"


def _candidates(library: Library, graph: CallGraph) -> list[int]:
    missing = [name for name in WAITING_CALLS if name not in library.exports]
    if missing:
        raise DriverFileError(f"{library.path} is not a CUDA driver: it does not export {', '.join(missing)}.")
    addresses = np.array([library.exports[name] for name in WAITING_CALLS], dtype=np.int64)
    roots = graph.functions.containing(addresses).tolist()
    common = set.intersection(*(graph.reachable({root}) for root in roots))
    return sorted(graph.functions.starts[list(common)].tolist())


def _split_off(graph: CallGraph) -> dict[int, int]:
    """Return, for each range that starts inside a frame, the start of the only function that jumps to it."""
    functions = graph.functions
    parts: dict[int, int] = {}
    for part in np.flatnonzero(functions.continues).tolist():
        owners = set(graph.callers[graph.callees == part].tolist())
        if len(owners) == 1 and not functions.continues[owner := owners.pop()]:
            parts[int(functions.starts[part])] = int(functions.starts[owner])
    return parts


def _read_cached(path: Path, identity: str) -> DriverAnalysis | None:
    """Return the analysis in `path`, or None if it is missing, damaged, or of another version or build."""
    try:
        cached = msgspec.json.decode(path.read_bytes(), type=DriverAnalysis)
    except (OSError, msgspec.MsgspecError):
        return None
    return cached if cached.version == FORMAT_VERSION and cached.identity == identity else None
