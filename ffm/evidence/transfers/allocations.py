"""Which allocation created the memory that a call frees or transfers, by traced addresses (dissertation 6.1, 6.2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind, Memory
from ffm.evidence.calls import calls_where, functions_where
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import numbered, parts
from ffm.model.transfers import allocations_of
from ffm.results.columnar.columns import Columns
from ffm.results.documents.analysis import AllocationLink

HOST_MEMORIES = (Memory.PINNED, Memory.MANAGED, Memory.REGISTERED)
"""Host memory that the driver knows. All other host memory is pageable."""

DEVICE_MEMORIES = (Memory.DEVICE, Memory.ASYNCHRONOUS, Memory.MANAGED)
"""Memory that an upload may go to."""

PAGEABLE = "pageable"

MANY_ROWS = 8
"""Rows for each block, so that looking rows up takes longer than sorting the blocks does."""

HOST_SIDES = (("FFM_OPERATION_HOST_SOURCE", "source"), ("FFM_OPERATION_HOST_DESTINATION", "destination"))
"""The flag that an operation's host memory is its source or destination, and the column with its address."""

Link = tuple[int, str, str, int | None, int | None]
"""Site, role, memory, site of the allocation, site of the release."""


def allocation_links(columns: Columns, host_memory: Columns | None = None) -> list[AllocationLink]:
    """Link each site that frees, uploads or downloads memory to the sites that allocate and free it.

    The columns come from `ffm.evidence.operations` and `ffm.evidence.transfers.host_memory`; sites are stack numbers.
    The most frequent links come first.
    """
    counts: dict[Link, int] = {}
    for process in _processes(columns):
        rows = _in_time(columns, process)
        for link, count in _of_process({name: columns[name][rows] for name in _USED}).items():
            counts[link] = counts.get(link, 0) + count
    if host_memory is not None:
        _tell_pageable(counts, host_memory)
    return [
        AllocationLink(
            site=site, role=role, memory=memory, allocation=allocation, release=release, occurrences=occurrences
        )
        for (site, role, memory, allocation, release), occurrences in sorted(counts.items(), key=lambda item: -item[1])
    ]


def _tell_pageable(counts: dict[Link, int], host_memory: Columns) -> None:
    """Replace unknown allocations of pageable memory by those of the C library."""
    names = ("user", "allocation", "release", "blocks")
    for user, allocation, release, blocks in zip(*(host_memory[name].tolist() for name in names), strict=True):
        unknown = (user, "host memory", PAGEABLE, None, None)
        if unknown in counts:
            counts[user, "host memory", PAGEABLE, allocation, release if release >= 0 else None] = blocks
    for user in set(host_memory["user"].tolist()):
        counts.pop((user, "host memory", PAGEABLE, None, None), None)


class _Blocks:
    """The allocations of a process, in order of time: their place, size, and when and where they were freed."""

    def __init__(self, columns: Columns) -> None:
        rows = np.flatnonzero(_of_kinds(columns["function"], Kind.ALLOCATION, Kind.FREE))
        rows = rows[(columns["result"][rows] == 0) & (columns["destination"][rows] != 0)]
        allocates = _of_kinds(columns["function"][rows], Kind.ALLOCATION)
        self.rows, self.frees = rows[allocates], rows[~allocates]
        self.address = columns["destination"][self.rows]
        self.bytes = columns["bytes"][self.rows]
        self.time = columns["start"][self.rows]
        self.memory = _memories()[columns["function"][self.rows]]
        """Places in `MEMORIES`."""
        self._in_memories: dict[tuple[Memory, ...], NDArray[np.int64]] = {
            memories: np.flatnonzero(np.isin(self.memory, [MEMORIES.index(memory) for memory in memories]))
            for memories in (HOST_MEMORIES, DEVICE_MEMORIES)
        }
        self.site = columns["stack"][self.rows]
        self.release = np.full(len(self.rows), -1, np.int64)
        freed = self._freed(columns["destination"][self.frees], columns["start"][self.frees])
        self.freed = freed
        self.release[freed[freed >= 0]] = columns["stack"][self.frees][freed >= 0]

    def _freed(self, address: NDArray[np.uint64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the block that each free frees: the last allocation at its address, or -1 if none was traced."""
        both = np.concatenate([self.address, address])
        order = np.lexsort((np.concatenate([self.time, time]), both))
        allocates = order < len(self.address)
        last = np.maximum.accumulate(np.where(allocates, np.arange(len(order)), -1))
        frees = np.flatnonzero(~allocates)
        block = np.where(last[frees] >= 0, order[last[frees]], -1)
        same = (block >= 0) & (both[block] == both[order[frees]])
        found = np.full(len(address), -1, np.int64)
        found[order[frees] - len(self.address)] = np.where(same, block, -1)
        return found

    def holding(
        self, address: NDArray[np.uint64], time: NDArray[np.int64], memories: tuple[Memory, ...]
    ) -> NDArray[np.int64]:
        """Return the block, among those in `HOST_MEMORIES` or `DEVICE_MEMORIES`, that contained each address at a time;
        -1 for none.
        """
        mine = self._in_memories[memories]
        found = np.full(len(address), -1, np.int64)
        if not len(mine):
            return found
        allocated, bytes_, since = self.address[mine], self.bytes[mine], self.time[mine]
        for part in parts(len(address), len(mine)):
            number = allocations_of(address[part], time[part], allocated, bytes_, since)
            found[part] = np.where(number >= 0, mine[np.maximum(number, 0)], -1)
        return found


def pageable_memory(columns: Columns, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return those of some operations that transfer from or to pageable memory, and the address of its first byte."""
    found, first = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    transfers = functions_where(lambda function: function.kind is Kind.TRANSFER)
    for process in _processes({"process": columns["process"][rows]}):
        mine = _in_time(columns, process)
        blocks = _Blocks({name: columns[name][mine] for name in _USED})
        own = rows[(columns["process"][rows] == process) & transfers[columns["function"][rows]]]
        for flag, column in HOST_SIDES:
            for part in parts(len(own), MANY_ROWS * len(blocks.rows)):
                used = own[part]
                used = used[(columns["flags"][used] & constant(flag)) != 0]
                address = columns[column][used]
                pageable = blocks.holding(address, columns["start"][used], HOST_MEMORIES) < 0
                found.append(used[pageable])
                first.append(address[pageable].astype(np.uint64))
    return np.concatenate(found), np.concatenate(first)


_USED = ("start", "function", "stack", "result", "flags", "destination", "source", "bytes")
"""The columns that this needs."""

MEMORIES = list(Memory)


def _processes(columns: Columns) -> list[int]:
    _, first = numbered(columns["process"])
    found: list[int] = columns["process"][first].tolist()
    return found


def _in_time(columns: Columns, process: int) -> NDArray[np.int64] | slice:
    """Return the rows of a process in order of time."""
    own = columns["process"] == process
    start = columns["start"]
    if own.all() and (start[1:] >= start[:-1]).all():
        return slice(None)
    rows = np.flatnonzero(own)
    return rows[np.argsort(start[rows], kind="stable")]


def _of_kinds(functions: NDArray[np.integer], *kinds: Kind) -> NDArray[np.bool_]:
    """Return which functions, by recorded index, are of some kinds."""
    return calls_where(functions, lambda function: function.kind in kinds)


def _memories() -> NDArray[np.int8]:
    """Return a table over recorded function indices with the memory that each is about, as a place in `MEMORIES`."""
    table = np.zeros(constant("FFM_FUNCTION_PRIVATE") + 1, np.int8)
    for function in load_catalogue().functions:
        table[function.index] = MEMORIES.index(function.memory)
    return table


def _of_process(columns: Columns) -> dict[Link, int]:
    blocks = _Blocks(columns)
    frees, destination = _Uses(blocks, "frees", None), _Uses(blocks, "destination", None)
    host = [_Uses(blocks, "host memory", PAGEABLE) for _ in HOST_SIDES]
    stack, transfers = columns["stack"], functions_where(lambda function: function.kind in (Kind.TRANSFER, Kind.SET))
    frees.add(stack[blocks.frees], blocks.freed)
    # Columns of all transfers take much memory. For each part, the blocks are sorted.
    for part in parts(len(stack), MANY_ROWS * len(blocks.rows)):
        rows = part.start + np.flatnonzero(transfers[columns["function"][part]])
        flags = columns["flags"][rows]
        for (flag, column), uses in zip(HOST_SIDES, host, strict=True):
            some = rows[(flags & constant(flag)) != 0]
            found = blocks.holding(columns[column][some], columns["start"][some], HOST_MEMORIES)
            uses.add(stack[some], found)
        some = rows[(flags & constant("FFM_OPERATION_HOST_DESTINATION")) == 0]
        found = blocks.holding(columns["destination"][some], columns["start"][some], DEVICE_MEMORIES)
        destination.add(stack[some], found)
    links: dict[Link, int] = {}
    for uses in (frees, *host, destination):
        for link, times in uses.links():
            links[link] = links.get(link, 0) + times
    return links


class _Uses:
    """How often sites use blocks in some role. `otherwise` names the memory of no block; if it is None, such uses are
    left out.
    """

    def __init__(self, blocks: _Blocks, role: str, otherwise: str | None) -> None:
        self._role, self._otherwise = role, otherwise
        # The last entry is for no block.
        self._kinds = [np.append(column, -1) for column in (blocks.site, blocks.release, blocks.memory)]
        self._alike, self._first = numbered(*self._kinds)
        self._times: dict[tuple[int, int], int] = {}

    def add(self, site: NDArray[np.integer], block: NDArray[np.int64]) -> None:
        """Count some uses by their sites and blocks, or -1."""
        if self._otherwise is None:
            site, block = site[block >= 0], block[block >= 0]
        alike = self._alike[block]
        number, first = numbered(site, alike)
        pairs = zip(site[first].tolist(), alike[first].tolist(), strict=True)
        for pair, times in zip(pairs, np.bincount(number).tolist(), strict=True):
            self._times[pair] = self._times.get(pair, 0) + times

    def links(self) -> Iterator[tuple[Link, int]]:
        """Yield how often each link was used, by site."""
        for (site, alike), times in sorted(self._times.items()):
            allocation, release, memory = (int(column[self._first[alike]]) for column in self._kinds)
            name = str(MEMORIES[memory]) if memory >= 0 else str(self._otherwise)
            yield (
                (site, self._role, name, allocation if allocation >= 0 else None, release if release >= 0 else None),
                times,
            )
