"""Where the pageable host memory of transfers was allocated and freed (dissertation 6.1.1), as stage 2 recorded it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.stack_table import StackTable
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.results.columnar.columns import Column, Columns, Table, number_of, size

ALLOCATORS = ("malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "mmap")
FREE = "free"

COLUMNS = ("user", "allocation", "allocator", "release", "release_allocator", "blocks")


def allocator_names() -> dict[int, str]:
    """Return the C library's function for each recorded `FFM_ALLOCATOR_…`."""
    return {constant(f"FFM_ALLOCATOR_{name.upper()}"): name for name in (*ALLOCATORS, FREE)}


def _known_allocators() -> list[int]:
    return [-1, *allocator_names()]


def _are_named(columns: Columns) -> bool:
    return all(
        bool((columns[function][columns[stack] >= 0] >= 0).all())
        for stack, function in (("allocation", "allocator"), ("release", "release_allocator"))
    )


HOST_MEMORY = Table(
    {
        "user": number_of("stacks"),
        "allocation": number_of("stacks", none=True),
        "allocator": Column(np.int32, among=_known_allocators),
        "release": number_of("stacks", none=True),
        "release_allocator": Column(np.int32, among=_known_allocators),
        "blocks": size(),
    },
    {"has what was allocated or freed a function that did it": _are_named},
)
"""What `host_memory_columns` returns."""


def functions_of_stacks(host_memory: Columns) -> dict[int, str]:
    """For each stack that allocates or frees host memory of transfers, return the C library's function that it
    calls.
    """
    names = allocator_names()
    pairs = [
        *zip(host_memory["allocation"].tolist(), host_memory["allocator"].tolist(), strict=True),
        *zip(host_memory["release"].tolist(), host_memory["release_allocator"].tolist(), strict=True),
    ]
    return {stack: names[function] for stack, function in pairs if stack >= 0}


def host_memory_columns(recordings: list[Recording], stacks: StackTable) -> Columns:
    """Return the distinct histories of host memory used by transfers, with the number of blocks for each.

    Columns with numbers in `stacks`: `user` (of the transfers), `allocation`, `release` (-1 if it was not freed before
    the recording ended). `allocator` and `release_allocator` are recorded functions; `blocks` is a count.
    """
    parts = [_of_process(recording, stacks.add(recording)) for recording in recordings]
    table = np.concatenate([np.empty((0, 5), np.int64), *parts])
    distinct, blocks = np.unique(table, axis=0, return_counts=True)
    columns = {name: distinct[:, place].astype(np.int32) for place, name in enumerate(COLUMNS[:-1])}
    return {**columns, "blocks": blocks.astype(np.int64)}


def _of_process(recording: Recording, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return rows of the first five columns, one for each block and user."""
    blocks, releases = recording.host_blocks, recording.host_releases
    known = np.unique(np.concatenate([blocks["number"], releases["number"]]))
    of_block = np.full((len(known), 4), -1, np.int64)
    allocated, released = np.searchsorted(known, blocks["number"]), np.searchsorted(known, releases["number"])
    of_block[allocated, 0] = numbers[blocks["stack"]]
    of_block[allocated, 1] = blocks["allocator"]
    of_block[released, 2] = numbers[releases["stack"]]
    of_block[released, 3] = releases["allocator"]
    uses = np.unique(np.column_stack([recording.host_uses["number"], recording.host_uses["stack"]]), axis=0)
    uses = uses[np.isin(uses[:, 0], known)]
    rows = np.column_stack([numbers[uses[:, 1]], of_block[np.searchsorted(known, uses[:, 0])]]).astype(np.int64)
    return rows[rows[:, 1] >= 0]
