"""What the tables of a recording must satisfy, so that later code can index by them.

A truncated or edited recording would otherwise crash its reader, or give absurd numbers. Each field is checked once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import parts

LARGEST = 1 << 60
"""Limit of nanoseconds, bytes, or numbers of operations: sums of a few fit into 64 signed bits."""

ADDRESS = 1 << 62
"""Above all addresses of a process."""

_STACK = "stacks"

FIELDS: dict[str, dict[str, int | str]] = {
    "operations": {"start": LARGEST, "duration": LARGEST, "wait": LARGEST, "after_wait": 1 << 31, "bytes": LARGEST,
                   "number": LARGEST, "thread": "threads", "stack": _STACK},
    "contents": {"operation": LARGEST, "bytes": LARGEST, "operation_thread": "threads"},
    "parts": {"operation": LARGEST, "operation_thread": "threads"},
    "accesses": {"time": LARGEST, "armed": LARGEST, "operation": LARGEST},
    "extents": {"operation": LARGEST, "start": ADDRESS, "bytes": LARGEST, "operation_thread": "threads"},
    "gpu_times": {"operation": LARGEST, "nanoseconds": LARGEST, "operation_thread": "threads"},
    "host_blocks": {"bytes": LARGEST, "stack": _STACK, "allocator": "allocators"},
    "host_releases": {"stack": _STACK, "allocator": "allocators"},
    "host_uses": {"stack": _STACK},
    "stretches": {"opened": LARGEST, "closed": LARGEST, "judged": LARGEST, "unjudged": LARGEST, "settled": LARGEST,
                  "calls": LARGEST, "calls_closed": LARGEST, "iteration": LARGEST},
    "resumptions": {"operation": LARGEST, "thread": "threads"},
    "lives": {"time": LARGEST},
    "lock_waits": {"since": LARGEST, "released": LARGEST, "waiter": "threads", "releaser": "threads"},
    "processor_times": {"time": LARGEST, "process_ran": LARGEST, "ran": LARGEST, "delayed": LARGEST},
    "contexts": {"number": 256, "device": 65535},
    "joined": {"one": ADDRESS, "other": ADDRESS},
}  # fmt: skip
"""For each table and field the limit of its values: a number, or how many targets there are."""


def flaw(tables: Mapping[str, NDArray[Any]], *, stacks: int, threads: int) -> str:
    """Return what is wrong with the tables of a recording, as a phrase; empty if nothing is."""
    limits = {"threads": threads, "stacks": stacks, "allocators": constant("FFM_ALLOCATOR_FREE") + 1}
    for name, fields in FIELDS.items():
        table = tables[name]
        for field, highest in _highest(table, list(fields)).items():
            below = fields[field]
            limit = limits[below] if isinstance(below, str) else below
            if highest >= limit:
                return f"{name} hold the {field} {highest}, which must be below {limit}"
    functions = tables["operations"]["function"]
    unknown = functions[functions >= len(load_catalogue())]
    unknown = unknown[unknown != constant("FFM_FUNCTION_PRIVATE")]
    if len(unknown):
        return f"operations name the driver function {unknown[0]}, which does not exist"
    lasting = tables["operations"]["duration"].sum(dtype=np.float64)
    return "operations take longer than can be" if lasting >= LARGEST else ""


def _highest(table: NDArray[Any], fields: list[str]) -> dict[str, int]:
    """Return the highest value of some fields, each; of all in a few rows, which are then in the processor's cache."""
    highest = dict.fromkeys(fields if len(table) else [], 0)
    for part in parts(len(table)):
        some = table[part]
        for field, so_far in highest.items():
            highest[field] = max(so_far, int(some[field].max()))
    return highest
