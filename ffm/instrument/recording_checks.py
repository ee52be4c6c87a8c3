"""What the tables of a recording must fulfil, so that all that follows can index by them.

A recording that was cut or edited would else crash its reader, or give absurd numbers. Each field is looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.layout import constant

LARGEST = 1 << 60
"""Nanoseconds, bytes, or numbers of operations: sums of a few fit 64 bits with a sign."""

ADDRESS = 1 << 62
"""Above all addresses of a process."""

_STACK = "stacks"

FIELDS: dict[str, dict[str, int | str]] = {
    "operations": {"start": LARGEST, "duration": LARGEST, "wait": LARGEST, "bytes": LARGEST, "number": LARGEST,
                   "thread": "threads", "stack": _STACK},
    "contents": {"operation": LARGEST, "bytes": LARGEST, "operation_thread": "threads"},
    "parts": {"operation": LARGEST, "operation_thread": "threads"},
    "accesses": {"time": LARGEST, "armed": LARGEST, "operation": LARGEST},
    "extents": {"operation": LARGEST, "start": ADDRESS, "bytes": LARGEST, "operation_thread": "threads"},
    "gpu_times": {"operation": LARGEST, "nanoseconds": LARGEST, "operation_thread": "threads"},
    "host_blocks": {"bytes": LARGEST, "stack": _STACK, "allocator": "allocators"},
    "host_releases": {"stack": _STACK, "allocator": "allocators"},
    "host_uses": {"stack": _STACK},
}  # fmt: skip
"""For each table and field what its values lie below: a number, or how many there are of something."""


def flaw(tables: Mapping[str, NDArray[Any]], *, stacks: int, threads: int) -> str:
    """Say in a phrase what is wrong with the tables of a recording; empty where nothing is."""
    limits = {"threads": threads, "stacks": stacks, "allocators": constant("FFM_ALLOCATOR_FREE") + 1}
    for name, fields in FIELDS.items():
        table = tables[name]
        for field, below in fields.items() if len(table) else ():
            limit = limits[below] if isinstance(below, str) else below
            if (highest := int(table[field].max())) >= limit:
                return f"{name} hold the {field} {highest}, which must be below {limit}"
    functions = tables["operations"]["function"]
    private = constant("FFM_FUNCTION_PRIVATE")
    unknown = functions[(functions >= len(load_catalogue())) & (functions != private)]
    if len(unknown):
        return f"operations name the driver function {unknown[0]}, which there is not"
    lasting = tables["operations"]["duration"].sum(dtype=np.float64)
    return "operations take longer than can be" if lasting >= LARGEST else ""
