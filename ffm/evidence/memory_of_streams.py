"""Which memory work uses, and which streams' work has none in common, so that it does not matter what comes first.

A kernel uses the device memory that its PTX says (`kernel_memory.py`). One of which that is not known may write the
device memory that its parameters lead to (`ffm/instrument/native/watch/reach/device_writes.h`) and the variables of its
code. What copies, sets, and allocations and frees of a pool use is known from their addresses. Memory that was freed by
a call that waits, and was allocated again, is other memory (`transfers/lives.py`). Only what leads to each other does
so in all of the run, at whatever address. Wherever one of this is not known, the answer is that there may be memory in
common.

What a download reads does not matter if nobody uses what it brought: then it may come before or after anything that
writes there. What it writes matters still, since it could come after what other work brings to the same place, unless
nobody uses that either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction, Effect, Kind, Memory, load_catalogue
from ffm.evidence.common_memory import SIDES, context_number_reused, contexts_apart, has_followed_addresses, plain_shape
from ffm.evidence.kernel_memory import GivenMemory, KernelUses, uses_of_kernels
from ffm.evidence.slices import in_slices, starts_of_merged
from ffm.evidence.transfers.lives import Lives, in_lives
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import numbered
from ffm.model.necessity.program import Action, Operations, Side, Streams, UsedMemory
from ffm.results.columnar.columns import Columns

_ON_DEVICE = (Memory.DEVICE, Memory.ASYNCHRONOUS)
_FOLLOWED = (*_ON_DEVICE, Memory.PINNED, Memory.REGISTERED, Memory.MANAGED)
"""What the program allocates and kernels find only by an address. Memory that is mapped can have several, and arrays
none.
"""

MOST_USED = 1 << 23
"""For so many lives of memory, times streams, it is kept which work used each last: that takes 16 bytes for each. Where
there are more, memory is told apart by its address alone.
"""


def streams_with_memory(
    columns: Columns,
    operations: Operations,
    contexts: NDArray[np.void],
    joined: NDArray[np.void],
    given: GivenMemory,
    unread: NDArray[np.bool_],
) -> Streams:
    """Return the streams of a process with what their work uses, and which of them have no memory in common.

    Args:
        columns: the operations of one process, in order of time.
        operations: what they do.
        contexts: `ffm_context` rows: the device of each context.
        joined: `ffm_joined` rows: which device memory leads to which.
        given: which device memory kernels are given.
        unread: which operations are downloads that the CPU is known not to have touched.
    """
    context = operations.streams.context
    apart = contexts_apart(columns, operations, contexts)[np.ix_(context, context)]
    if len(context) < 2 or _reached_otherwise(columns, operations):
        return replace(operations.streams, apart=apart)
    uses = _uses(columns, operations, joined, given, unread).shared(operations.stream)
    apart |= ~_together(uses, operations)
    return replace(
        operations.streams, apart=apart, used=None if apart.all() else uses.by_operation(len(operations.start))
    )


def _together(uses: _Uses, operations: Operations) -> NDArray[np.bool_]:
    """Return, of shape (streams, streams), whether some memory is used by work of both, and written by one of them."""
    streams = len(operations.streams.context)
    together = np.zeros((streams, streams), np.bool_)
    anything = np.unique(operations.stream[uses.anything])
    together[anything] = True
    together[:, anything] = True
    together[np.diag_indices(streams)] = True
    stream = operations.stream[uses.operation]
    _, alike = numbered(uses.memory, stream, uses.writes, uses.side)
    _, first = np.unique(uses.memory[alike], return_index=True)
    code = (stream[alike] * 2 + uses.writes[alike]) * len(Side) + uses.side[alike]
    seen: set[bytes] = set()
    ends = np.append(first, len(alike))[1:]
    for begin, end in zip(first.tolist(), ends.tolist(), strict=True):
        used = code[begin:end].tobytes()  # most memory is used as some other memory is
        if used in seen:
            continue
        seen.add(used)
        rows = alike[begin:end]
        marking, looking = rows[uses.side[rows] != Side.LOOKS], rows[uses.side[rows] != Side.MARKS]
        for one, other in ((marking, looking), (looking, marking)):
            writing, using = stream[one[uses.writes[one]]], stream[other]
            together[np.ix_(writing, using)] = True
            together[np.ix_(using, writing)] = True
    return together


def _indices(chosen: Iterable[DriverFunction]) -> list[int]:
    return [function.index for function in chosen]


def _reached_otherwise(columns: Columns, operations: Operations) -> bool:
    """Return whether work may use memory in ways that are not followed: by descriptions, from other processes, at other
    addresses, or unseen.
    """
    catalogue = load_catalogue()
    otherwise = [
        *_indices(catalogue.of_kind(Kind.SHARING, Kind.VIEW)),
        *_indices(f for f in catalogue.of_kind(Kind.ALLOCATION) if f.memory not in _FOLLOWED),
    ]
    done, functions = columns["result"] == 0, columns["function"]
    private = functions == constant("FFM_FUNCTION_PRIVATE")
    return bool((done & np.isin(functions, otherwise)).any() or private.any()) or context_number_reused(
        columns, operations
    )


class _Part(NamedTuple):
    """Uses of memory. Columns of equal length."""

    row: NDArray[np.int64]
    """Places among rows."""
    memory: NDArray[np.int64]
    """The numbers of the memory that they use."""
    writes: bool
    address: NDArray[np.int64] | None = None
    """Where they use it; None if that is not known, or not asked."""


@dataclass(frozen=True, slots=True)
class _Uses:
    """Which memory work uses. Columns of equal length, but for `anything`."""

    operation: NDArray[np.int64]
    """Its row."""
    memory: NDArray[np.int64]
    """A number that memory has in common with what overlaps it."""
    writes: NDArray[np.bool_]
    side: NDArray[np.uint8]
    """A value of `Side`."""
    anything: NDArray[np.int64]
    """Rows of work that may use any memory."""

    def shared(self, stream: NDArray[np.int64]) -> _Uses:
        """Return only the uses of memory that work on several streams uses, and some of it writes; given the stream of
        each operation.
        """
        number, first = numbered(self.memory)
        mine = stream[self.operation]
        several, written = np.zeros(len(first), np.bool_), np.zeros(len(first), np.bool_)
        several[number[mine != mine[first][number]]] = True
        written[number[self.writes]] = True
        kept = (several & written)[number]
        return _Uses(self.operation[kept], self.memory[kept], self.writes[kept], self.side[kept], self.anything)

    def by_operation(self, operations: int) -> UsedMemory:
        """Return the same by operations, of which there are so many, and memory numbered without gaps."""
        order = np.argsort(self.operation, kind="stable")
        anything = np.zeros(operations, np.bool_)
        anything[self.anything] = True
        return UsedMemory(
            np.searchsorted(self.operation[order], np.arange(operations + 1)),
            numbered(self.memory)[0][order],
            self.writes[order],
            self.side[order],
            anything,
        )


def _uses(
    columns: Columns,
    operations: Operations,
    joined: NDArray[np.void],
    given: GivenMemory,
    unread: NDArray[np.bool_],
) -> _Uses:
    catalogue = load_catalogue()
    rows = np.flatnonzero(np.isin(operations.action, (Action.WORK, Action.HOLD)))
    functions, flags = columns["function"][rows], columns["flags"][rows]
    launches = np.isin(functions, _indices(catalogue.with_effect(Effect.LAUNCH_KERNEL)))
    followed = np.isin(functions, _indices(f for f in catalogue.functions if has_followed_addresses(f)))
    pools = [f for f in catalogue.of_kind(Kind.ALLOCATION, Kind.FREE) if f.memory is Memory.ASYNCHRONOUS]
    pooled = np.isin(functions, _indices(f for f in pools if f.asynchronous))
    plain = np.isin(functions, _indices(f for f in catalogue.functions if plain_shape(f)))
    transfers = np.isin(functions, _indices(catalogue.of_kind(Kind.TRANSFER)))
    destination = columns["destination"][rows].astype(np.int64)
    known = (launches & (destination != 0)) | followed | pooled

    device, host = _DeviceMemory.of(columns, joined), _Places()
    kernels = np.flatnonzero(launches)
    direct = uses_of_kernels(columns, rows[kernels], operations.stream[rows[kernels]], given)
    found = _of_followed_kernels(kernels, direct, device)
    variables = np.where(direct.known, direct.variables, _use_variables(columns, rows[kernels]))
    device.lead_to_variables(destination[kernels[variables & (destination[kernels] > constant("FFM_LEADS_NOWHERE"))]])
    known[kernels[direct.known]] = True
    for side, flag in SIDES:
        has = (followed & transfers) if side == "source" else followed | pooled
        address, on_host = columns[side][rows].astype(np.int64), (flags & constant(flag)) != 0
        known &= ~(has & on_host & ~plain)
        mine = np.flatnonzero(has & ~on_host)
        found.append(_Part(mine, device.memory_at(address[mine]), side == "destination", address[mine]))
        mine = np.flatnonzero(has & on_host & plain)
        host.add(mine, address[mine], columns["bytes"][rows[mine]].astype(np.int64), side == "destination")
    others = ~direct.known & known[kernels]
    found += device.of_finders(found, _of_other_kernels(destination, kernels[others], variables[others], device))
    found += host.numbered(2 * device.count)
    row = np.concatenate([part.row for part in found])
    memory = np.concatenate([part.memory for part in found])
    writes = np.repeat([part.writes for part in found], [len(part.row) for part in found])
    nowhere = [np.zeros(len(part.row), np.int64) if part.address is None else part.address for part in found]
    address = np.concatenate(nowhere)
    known[row[memory < 0]] = False
    kept = known[row]
    if known.all():
        idle = unread[rows] & ~_read_on_device(row, memory, writes, 2 * device.count, pooled)
        matters = np.isin(memory, memory[~idle[row]])  # somebody uses, or also brings there, what counts
        kept &= ~idle[row] | (writes & matters)
    row, memory, writes, address = row[kept], memory[kept], writes[kept], address[kept]
    exact = followed[row] & plain[row] & (memory < device.anyones)
    if len(device.lives.address) * len(operations.streams.context) <= MOST_USED:
        memory = in_lives(memory, address, columns["start"][rows[row]], device.lives)
    begin = np.where(writes, destination[row], columns["source"][rows[row]].astype(np.int64))
    size = columns["bytes"][rows[row]].astype(np.int64)
    found_of = in_slices(rows[row], memory, writes, np.where(exact, begin, 0), np.where(exact, begin + size, 0))
    return _Uses(found_of.row, found_of.memory, found_of.writes, found_of.side, rows[~known])


def _read_on_device(
    row: NDArray[np.int64],
    memory: NDArray[np.int64],
    writes: NDArray[np.bool_],
    first_of_host: int,
    pooled: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which rows write host memory that work reads; and those that read memory of a pool, which may be gone
    once it is free. Shape of `pooled`, which says which rows allocate or free memory of a pool.
    """
    host = memory >= first_of_host
    found = np.zeros(len(pooled), np.bool_)
    found[row[host & writes & np.isin(memory, memory[host & ~writes])]] = True
    found[row[~writes & np.isin(memory, memory[pooled[row]])]] = True
    return found


def _of_followed_kernels(kernels: NDArray[np.int64], direct: KernelUses, device: _DeviceMemory) -> list[_Part]:
    """Return what launches use of which their kernels tell."""
    order = np.argsort(direct.launch, kind="stable")
    launch, address, writes = direct.launch[order], direct.allocation[order], direct.writes[order]
    memory = device.memory_at(address)
    told = np.flatnonzero(direct.known)
    begin, end = (np.searchsorted(launch, direct.example[told], side=side) for side in ("left", "right"))
    count = end - begin
    row = np.repeat(kernels[told], count)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - begin, count)
    parts = []
    for writing in (False, True):
        mine = writes[place] == writing
        parts.append(_Part(row[mine], memory[place[mine]], writing, address[place[mine]]))
    reading = kernels[direct.variables]
    return [*parts, _Part(reading, np.full(len(reading), device.variables), False)]


def _of_other_kernels(
    destination: NDArray[np.int64], kernels: NDArray[np.int64], variables: NDArray[np.bool_], device: _DeviceMemory
) -> list[_Part]:
    """Return the memory from which other launches find what they use: what their parameters name, variables, and what
    any kernel may find.
    """
    led = destination[kernels] != constant("FFM_LEADS_NOWHERE")
    found = device.memory_at(destination[kernels[led]])
    parts = [
        _Part(kernels[led], found, True),
        _Part(kernels[variables], np.full(int(variables.sum()), device.variables), True),
    ]
    if device.anyones_used:
        parts.append(_Part(kernels, np.full(len(kernels), device.anyones), True))
    return parts


def _use_variables(columns: Columns, launches: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which launches may use variables in device memory: of their code, or by an address that the program asked
    for.

    Code is known to have none if that was seen when it was loaded, and its handles since the last code was unloaded.
    """
    catalogue = load_catalogue()
    done, functions = columns["result"] == 0, columns["function"]
    loads = np.isin(functions, _indices(catalogue.with_effect(Effect.LOAD_CODE)))
    asks = done & np.isin(functions, _indices(catalogue.with_effect(Effect.FIND_VARIABLE)))
    named = [f for f in catalogue.of_kind(Kind.MODULE) if f.effect is not Effect.FIND_VARIABLE]
    named_by_call = done & np.isin(functions, _indices(named)) & (columns["destination"] != 0)
    without: dict[int, bool] = {}
    since: dict[int, int] = {}
    for row in np.flatnonzero(named_by_call).tolist():
        made, of = int(columns["destination"][row]), int(columns["handle"][row])
        lacks = (
            columns["bytes"][row] == constant("FFM_CODE_WITHOUT_VARIABLES") if loads[row] else without.get(of, False)
        )
        without[made] = bool(lacks) and without.get(made, True)
        since.setdefault(made, int(columns["start"][row]))
    if any(not without.get(handle, False) for handle in columns["handle"][asks].tolist()):
        return np.ones(len(launches), np.bool_)
    unloads = done & np.isin(functions, _indices(catalogue.with_effect(Effect.UNLOAD_CODE)))
    unloaded = np.sort(columns["start"][unloads])
    handle, each = np.unique(columns["handle"][launches], return_inverse=True)
    lacks = np.array([without.get(one, False) for one in handle.tolist()], np.bool_)[each]
    seen = np.array([since.get(one, 0) for one in handle.tolist()], np.int64)[each]
    start = columns["start"][launches]
    before = np.searchsorted(unloaded, start), np.searchsorted(unloaded, seen)
    found: NDArray[np.bool_] = ~(lacks & (before[0] == before[1]))
    return found


class _Places:
    """Ranges of host memory that rows use."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]] = []

    def add(self, row: NDArray[np.int64], begin: NDArray[np.int64], size: NDArray[np.int64], writes: bool) -> None:
        """Note that rows use so many bytes from an address on."""
        self._parts.append((row, begin, begin + size, writes))

    def numbered(self, first: int) -> list[_Part]:
        """Return the rows and numbers, from `first` on, of what they use: equal ones for ranges that overlap."""
        begin = np.concatenate([part[1] for part in self._parts])
        end = np.concatenate([part[2] for part in self._parts])
        start = starts_of_merged(begin, end)
        return [
            _Part(row, first + np.searchsorted(start, begins, side="right") - 1, writes)
            for row, begins, _, writes in self._parts
        ]


class _DeviceMemory:
    """The allocations of a run by address, and which of them lead to each other."""

    def __init__(self, begin: NDArray[np.int64], end: NDArray[np.int64], lives: Lives) -> None:
        self.lives = lives
        self._start = starts_of_merged(begin, end)
        self._end = np.zeros(len(self._start), np.int64)
        np.maximum.at(self._end, np.searchsorted(self._start, begin, side="right") - 1, end)
        self.anyones, self.variables = len(self._start), len(self._start) + 1
        self.count = self.variables + 1
        self._leads_to = np.arange(self.count)
        self.anyones_used = False
        """Whether any kernel may find some memory."""

    @classmethod
    def of(cls, columns: Columns, joined: NDArray[np.void]) -> _DeviceMemory:
        """Return what a run allocated, joined as its kernels, copies and uploads did."""
        allocations = [f for f in load_catalogue().of_kind(Kind.ALLOCATION) if f.memory in _ON_DEVICE]
        rows = (columns["result"] == 0) & np.isin(columns["function"], _indices(allocations))
        begin = columns["destination"][rows].astype(np.int64)
        memory = cls(begin, begin + columns["bytes"][rows].astype(np.int64), Lives.of(columns))
        both = np.column_stack([joined["one"], joined["other"]]).astype(np.int64)
        pairs = memory._place_or_anyones(both.reshape(-1)).reshape(both.shape)
        for one, other in np.unique(pairs, axis=0).tolist():
            memory._join(one, other)
        return memory

    def memory_at(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the allocation at each address; -1 if there is none."""
        place = np.searchsorted(self._start, address, side="right") - 1
        inside = (place >= 0) & (address < np.append(self._end, 0)[place])
        return np.where(inside, place, -1)

    def _place_or_anyones(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the same; memory that is not known counts as memory that any kernel may find."""
        place = self.memory_at(address)
        self.anyones_used |= bool((place < 0).any())
        return np.where(place < 0, self.anyones, place)

    def _root(self, one: int) -> int:
        """Return the number that stands for an allocation and all others connected with it."""
        while self._leads_to[one] != one:
            self._leads_to[one] = self._leads_to[self._leads_to[one]]
            one = int(self._leads_to[one])
        return one

    def _join(self, one: int, other: int) -> None:
        self._leads_to[self._root(one)] = self._root(other)

    def lead_to_variables(self, address: NDArray[np.int64]) -> None:
        """Note that kernels know these allocations and may use variables, so that each may lead to the other."""
        for place in np.unique(self._place_or_anyones(address)).tolist():
            self._join(self.variables, place)
        if self.anyones_used:
            self._join(self.variables, self.anyones)

    def of_finders(self, named: Sequence[_Part], finders: Sequence[_Part]) -> list[_Part]:
        """Return further memory that work may use because some memory leads to other memory.

        `finders` may write all that the memory they are given leads to. Work in `named` uses the memory that it names,
        which may be among that. All memory that leads to each other counts as one, with a number behind those of single
        allocations.
        """
        roots = np.array([self._root(one) for one in range(self.count)])
        parts = [
            _Part(one.row, np.where(one.memory < 0, -1, self.count + roots[one.memory]), one.writes) for one in finders
        ]
        written = np.zeros(self.count, np.bool_)
        for one in finders:
            written[roots[one.memory[one.memory >= 0]]] = True
        for one in named:
            among = (one.memory >= 0) & written[roots[one.memory]]
            parts.append(_Part(one.row[among], self.count + roots[one.memory[among]], False))
        return parts
