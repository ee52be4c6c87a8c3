"""Which memory the work of a process uses, and writes.

A kernel uses the device memory that its PTX says (`kernels.py`). A kernel without known PTX may write the device memory
that its parameters lead to (`ffm/instrument/native/watch/reach/device_writes.h`) and the variables of its code
(`variables.py`). What copies and sets use is known from their addresses, and so are allocations and frees of a pool.
Memory that a call that waits freed, and that was allocated again, is other memory (`lives.py`). Memory that leads to
other memory does so during all of the run, at whatever address.

What a download reads does not matter if nobody uses what it brought: then it may come before or after anything that
writes there. What it writes still matters, since it could come after other work that writes the same place, unless
nobody uses that either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Effect, Kind, Memory
from ffm.evidence.calls import calls_where
from ffm.evidence.memory.contexts import SIDES, has_followed_addresses, plain_shape
from ffm.evidence.memory.kernels import GivenMemory, KernelUses, uses_of_kernels
from ffm.evidence.memory.lives import in_lives
from ffm.evidence.memory.numbering import DeviceMemory, HostRanges, Part
from ffm.evidence.memory.slices import in_slices
from ffm.evidence.memory.variables import may_use_variables
from ffm.instrument.recording.layout import constant
from ffm.model.grouping import numbered
from ffm.model.necessity.program import Action, Operations, UsedMemory
from ffm.results.columnar.columns import Columns

MOST_USED = 1 << 23
"""Up to this many lives of memory, times streams, the work that used each last is kept, in 16 bytes for each. If
there are more, only the address distinguishes memory.
"""


@dataclass(frozen=True, slots=True)
class Uses:
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

    def shared(self, stream: NDArray[np.int64]) -> Uses:
        """Return only the uses of memory that work on several streams uses, and some of it writes; given the stream of
        each operation.
        """
        number, first = numbered(self.memory)
        mine = stream[self.operation]
        several, written = np.zeros(len(first), np.bool_), np.zeros(len(first), np.bool_)
        several[number[mine != mine[first][number]]] = True
        written[number[self.writes]] = True
        kept = (several & written)[number]
        return Uses(self.operation[kept], self.memory[kept], self.writes[kept], self.side[kept], self.anything)

    def by_operation(self, operations: int) -> UsedMemory:
        """Return the same by operation, given the number of operations, with memory numbered without gaps."""
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


def uses_of_work(
    columns: Columns,
    operations: Operations,
    joined: NDArray[np.void],
    given: GivenMemory,
    unread: NDArray[np.bool_],
) -> Uses:
    """Return what the work of a process uses. Arguments as of `streams.streams_with_memory`."""
    rows = np.flatnonzero(np.isin(operations.action, (Action.WORK, Action.HOLD)))
    functions, flags = columns["function"][rows], columns["flags"][rows]
    launches = calls_where(functions, lambda function: function.effect is Effect.LAUNCH_KERNEL)
    followed = calls_where(functions, has_followed_addresses)
    pooled = calls_where(functions, _is_of_pool)
    plain = calls_where(functions, plain_shape)
    transfers = calls_where(functions, lambda function: function.kind is Kind.TRANSFER)
    destination = columns["destination"][rows].astype(np.int64)
    known = (launches & (destination != 0)) | followed | pooled

    device, host = DeviceMemory.of(columns, joined), HostRanges()
    kernels = np.flatnonzero(launches)
    direct = uses_of_kernels(columns, rows[kernels], operations.stream[rows[kernels]], given)
    found = _of_followed_kernels(kernels, direct, device)
    variables = np.where(direct.known, direct.variables, may_use_variables(columns, rows[kernels]))
    device.lead_to_variables(destination[kernels[variables & (destination[kernels] > constant("FFM_LEADS_NOWHERE"))]])
    known[kernels[direct.known]] = True
    for side, flag in SIDES:
        has = (followed & transfers) if side == "source" else followed | pooled
        address, on_host = columns[side][rows].astype(np.int64), (flags & constant(flag)) != 0
        known &= ~(has & on_host & ~plain)
        mine = np.flatnonzero(has & ~on_host)
        found.append(Part(mine, device.memory_at(address[mine]), side == "destination", address[mine]))
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
        matters = np.isin(memory, memory[~idle[row]])  # somebody uses what counts, or also brings something there
        kept &= ~idle[row] | (writes & matters)
    row, memory, writes, address = row[kept], memory[kept], writes[kept], address[kept]
    exact = followed[row] & plain[row] & (memory < device.anyones)
    if len(device.lives.address) * len(operations.streams.context) <= MOST_USED:
        memory = in_lives(memory, address, columns["start"][rows[row]], device.lives)
    begin = np.where(writes, destination[row], columns["source"][rows[row]].astype(np.int64))
    size = columns["bytes"][rows[row]].astype(np.int64)
    found_of = in_slices(rows[row], memory, writes, np.where(exact, begin, 0), np.where(exact, begin + size, 0))
    return Uses(found_of.row, found_of.memory, found_of.writes, found_of.side, rows[~known])


def _is_of_pool(function: DriverFunction) -> bool:
    """Return whether a function allocates or frees memory of a pool in the order of a stream."""
    pools = function.kind in (Kind.ALLOCATION, Kind.FREE) and function.memory is Memory.ASYNCHRONOUS
    return pools and function.asynchronous


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


def _of_followed_kernels(kernels: NDArray[np.int64], direct: KernelUses, device: DeviceMemory) -> list[Part]:
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
        parts.append(Part(row[mine], memory[place[mine]], writing, address[place[mine]]))
    reading = kernels[direct.variables]
    return [*parts, Part(reading, np.full(len(reading), device.variables), False)]


def _of_other_kernels(
    destination: NDArray[np.int64], kernels: NDArray[np.int64], variables: NDArray[np.bool_], device: DeviceMemory
) -> list[Part]:
    """Return the memory through which other launches find what they use: what their parameters name, variables, and
    what any kernel may find.
    """
    led = destination[kernels] != constant("FFM_LEADS_NOWHERE")
    found = device.memory_at(destination[kernels[led]])
    parts = [
        Part(kernels[led], found, True),
        Part(kernels[variables], np.full(int(variables.sum()), device.variables), True),
    ]
    if device.anyones_used:
        parts.append(Part(kernels, np.full(len(kernels), device.anyones), True))
    return parts
