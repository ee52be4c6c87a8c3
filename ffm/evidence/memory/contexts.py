"""Which contexts' work has memory in common, so that its order may matter.

Work on two devices has no memory in common if neither reaches the memory of the other and both use different host
memory. A kernel reaches all memory of its own device, memory of another device only where the program allows it, and
host memory only by an address that was passed to the device (`ffm/instrument/native/watch/reach`). What copies use is
known from their addresses. If any of this is unknown, the answer is that there may be memory in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import Effect, Kind, Memory, Shape
from ffm.instrument.recording.layout import constant
from ffm.model.necessity.program import Action, Operations
from ffm.model.union import Union
from ffm.results.columnar.columns import Columns

_OWN_MEMORY = frozenset((Memory.DEVICE, Memory.ARRAY, Memory.PINNED, Memory.REGISTERED, Memory.MANAGED))
"""What belongs to one device, or to the host, whatever the program says. Pools and mapped memory can be opened to
others.
"""

SIDES = (("source", "FFM_OPERATION_HOST_SOURCE"), ("destination", "FFM_OPERATION_HOST_DESTINATION"))
"""The columns with the addresses of a copy, and the flags that say that they are the host's."""


@dataclass(frozen=True, slots=True)
class _Used:
    """The memory that the work of a context uses."""

    devices: set[int]
    """-1 for a device that is not known."""
    everything: bool
    host: bool
    """Whether it may use any memory of the host."""
    touched: Union
    """Memory of the host that it reads or writes."""
    written: Union


def contexts_apart(columns: Columns, operations: Operations, contexts: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return, of shape (contexts, contexts), whether no memory is used by work of both.

    Args:
        columns: the operations of one process, in order of time.
        operations: what they do.
        contexts: `ffm_context` rows: the device of each context.
    """
    count = 1 + int(max(operations.context.max(initial=0), operations.streams.context.max(initial=0)))
    apart = np.zeros((count, count), np.bool_)
    device = np.full(count, -1, np.int64)
    known = contexts["number"] < count
    device[contexts["number"][known]] = contexts["device"][known]
    if len(np.unique(device[device >= 0])) < 2 or _opened(columns, operations):
        return apart
    allocated = _Allocated.of(columns, device[operations.context])
    if allocated is None:
        return apart
    works = np.isin(operations.action, (Action.WORK, Action.HOLD))
    context = operations.streams.context[operations.stream]
    used = [_used(columns, np.flatnonzero(works & (context == one)), device[one], allocated) for one in range(count)]
    for one in range(count):
        for other in range(one):
            different = device[one] >= 0 and device[other] >= 0 and device[one] != device[other]
            apart[one, other] = apart[other, one] = different and not _common(used[one], used[other])
    return apart


def _opened(columns: Columns, operations: Operations) -> bool:
    """Return whether memory may be used from several devices in ways that are not followed."""
    catalogue = load_catalogue()
    functions = columns["function"]
    done = columns["result"] == 0
    opens = [
        function.index
        for function in catalogue.functions
        if function.effect is Effect.REACH_PEER
        or function.kind is Kind.SHARING
        or (function.kind is Kind.ALLOCATION and function.memory not in _OWN_MEMORY)
    ]
    private = functions == constant("FFM_FUNCTION_PRIVATE")
    return bool((done & np.isin(functions, opens)).any() or private.any()) or context_number_reused(columns, operations)


def context_number_reused(columns: Columns, operations: Operations) -> bool:
    """Return whether a context's handle, and so its number, may have been used again for another device."""
    functions = [function.index for function in load_catalogue().functions if function.ends_context]
    ends = (columns["result"] == 0) & np.isin(columns["function"], functions)
    works = np.isin(operations.action, (Action.WORK, Action.HOLD))
    return bool(ends.any() and operations.start[ends].min() < operations.start[works].max(initial=-1))


@dataclass(frozen=True, slots=True)
class _Allocated:
    """Where device memory is, sorted by address."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    device: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Columns, device: NDArray[np.int64]) -> _Allocated | None:
        """Return the device memory and variables of a run; None if different devices had the same addresses."""
        found = [
            function.index
            for function in load_catalogue().functions
            if (function.kind is Kind.ALLOCATION and function.memory is Memory.DEVICE)
            or function.effect is Effect.FIND_VARIABLE
        ]
        rows = np.flatnonzero(np.isin(columns["function"], found) & (columns["result"] == 0))
        rows = rows[np.argsort(columns["destination"][rows], kind="stable")]
        begin = columns["destination"][rows].astype(np.int64)
        allocated = cls(begin, begin + np.maximum(columns["bytes"][rows], 1).astype(np.int64), device[rows])
        owners = np.unique(allocated.device)
        parts = [Union.of(begin[of], allocated.end[of]) for of in (allocated.device == owner for owner in owners)]
        several = any(part.overlaps(other) for place, part in enumerate(parts) for other in parts[:place])
        return None if several or (owners < 0).any() else allocated

    def of_addresses(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the device of each address; -1 if it is in no known memory."""
        if not len(self.begin):
            return np.full(len(address), -1, np.int64)
        until = np.maximum.accumulate(self.end)  # memory that was freed may reach beyond what came later
        place = np.searchsorted(self.begin, address, side="right") - 1
        inside = (place >= 0) & (address < until[place.clip(0)])
        return np.where(inside, self.device[place.clip(0)], -1)


def _used(columns: Columns, rows: NDArray[np.int64], device: int, allocated: _Allocated) -> _Used:
    """Return what work uses, given its rows."""
    catalogue = load_catalogue()
    functions, flags = columns["function"][rows], columns["flags"][rows]
    launches = np.isin(functions, [function.index for function in catalogue.with_effect(Effect.LAUNCH_KERNEL)])
    followed = np.isin(
        functions, [function.index for function in catalogue.functions if has_followed_addresses(function)]
    )
    devices = {int(device)}
    host = bool((launches & ((flags & constant("FFM_OPERATION_DEVICE_ONLY")) == 0)).any())
    plain = np.isin(functions, [function.index for function in catalogue.functions if plain_shape(function)])
    transfers = np.isin(functions, [function.index for function in catalogue.of_kind(Kind.TRANSFER)])
    begin, end = [], []
    for side, flag in SIDES:
        has = followed & (transfers if side == "source" else True)
        of_host = has & ((flags & constant(flag)) != 0)
        host |= bool((of_host & ~plain).any())
        begin.append(columns[side][rows[of_host & plain]].astype(np.int64))
        end.append(begin[-1] + columns["bytes"][rows[of_host & plain]].astype(np.int64))
        devices |= set(allocated.of_addresses(columns[side][rows[has & ~of_host]].astype(np.int64)).tolist())
    return _Used(
        devices,
        everything=not (launches | followed).all() or -1 in devices,
        host=host,
        touched=Union.of(np.concatenate(begin), np.concatenate(end)),
        written=Union.of(begin[-1], end[-1]),
    )


def plain_shape(function: DriverFunction) -> bool:
    """Return whether what a copy or set uses has no gaps."""
    return function.shape in (Shape.PLAIN, Shape.MEMSET_1D)


def has_followed_addresses(function: DriverFunction) -> bool:
    """Return whether the columns say which memory a function's work uses."""
    followed = (Shape.PLAIN, Shape.MEMSET_1D, Shape.MEMSET_2D, Shape.COPY_2D, Shape.COPY_3D)
    return function.kind in (Kind.TRANSFER, Kind.SET) and function.shape in followed


def _common(one: _Used, other: _Used) -> bool:
    """Return whether two contexts' work may use the same memory."""
    if one.everything or other.everything or one.devices & other.devices:
        return True
    if (one.host and (other.host or other.touched.length)) or (other.host and one.touched.length):
        return True
    return one.written.overlaps(other.touched) or one.touched.overlaps(other.written)
