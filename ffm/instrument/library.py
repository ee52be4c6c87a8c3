"""Where the compiled parts of the instruments are."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import ffm
import ffm.instrument
from ffm.errors import BuildError

COLLECTOR = "libffm_collector.so"
"""What records the program's calls."""

RANGES = "libffm_ranges.so"
"""What NVTX says about the program's ranges."""

LIBRARIES = ("libffm_gate.so", "libffm_pages.so", COLLECTOR, "libffm_remedy.so", "libffm_heap.so", RANGES)
"""All of them."""

_BUILT_FROM = re.compile(rb"ffm built from ((?:\S+=[0-9a-f]{64} )+)\n")
"""See `native/built_from.c`."""


def native_library(name: str) -> Path:
    """Return the path of a compiled library, such as `libffm_collector.so`.

    Raises:
        BuildError: It was not built, or it was built from other sources than the current ones.
    """
    for folder in ffm.instrument.__path__:
        candidate = Path(folder) / "lib" / name
        if candidate.exists():
            library = candidate.resolve()
            _check(library, library.stat().st_mtime_ns)
            return library
    raise BuildError(f"{name} is not built.")


@cache
def _check(library: Path, _modified: int) -> None:
    noted = _BUILT_FROM.search(library.read_bytes())
    parts = noted[1].decode().split() if noted is not None else []
    changed = [name for name, _, digest in (part.rpartition("=") for part in parts) if _digest(name) != digest]
    if changed or not parts:
        why = f": {', '.join(changed)} changed since" if changed else ""
        raise BuildError(f"{library} was built from other sources than this ffm{why}.")


def _digest(name: str) -> str:
    """Return the current digest of a file of the package; empty if there is none."""
    for folder in ffm.__path__:
        file = Path(folder) / name
        if file.exists():
            return hashlib.sha256(file.read_bytes()).hexdigest()
    return ""
