"""Which device memory launches use and write, as the PTX of their kernels shows (`ffm/driver/kernel_accesses.py`).

It is unknown for kernels that come as machine code alone, and for PTX that a program creates or reads while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.device_sources import device_sources
from ffm.driver.kernel_accesses import VARIABLES, Accesses, kernel_accesses
from ffm.driver.vocabulary import Effect, Kind
from ffm.instrument.recording.names import RecordedKernel, RecordedModule
from ffm.model.grouping import numbered
from ffm.results.columnar.columns import Columns


@dataclass(frozen=True, slots=True)
class GivenMemory:
    """What a recording says of kernels and their parameters."""

    lists: NDArray[np.void]
    """`ffm_given` rows: the allocations that lists of parameters name."""
    kernels: list[RecordedKernel]
    modules: list[RecordedModule]


@dataclass(frozen=True, slots=True)
class KernelUses:
    """What launches use. The first three columns have the shape (launches,), the others one row for each allocation
    that an example uses.
    """

    known: NDArray[np.bool_]
    """Whether it is known; they may use any memory otherwise."""
    variables: NDArray[np.bool_]
    """Whether those that are known read variables in the device's memory."""
    example: NDArray[np.int64]
    """For each launch, the first one of the same kernel on the same stream with the same allocations."""
    launch: NDArray[np.int64]
    """An example."""
    allocation: NDArray[np.int64]
    """Its address."""
    writes: NDArray[np.bool_]


def uses_of_kernels(
    columns: Columns, launches: NDArray[np.int64], stream: NDArray[np.int64], given: GivenMemory
) -> KernelUses:
    """Return what launches of kernels use, given as rows of the operations of a process, and their streams."""
    code = _Code(columns, given)
    offsets = _lists(given.lists)
    group, first = numbered(columns["handle"][launches], columns["source"][launches], stream)
    found = [
        code.uses(int(columns["handle"][row]), offsets.get(int(columns["source"][row]), {}))
        if columns["source"][row]
        else None
        for row in launches[first].tolist()
    ]
    known = np.array([one is not None for one in found], np.bool_)[group] & (columns["start"][launches] < code.unloaded)
    variables = np.array([one is not None and one.variables for one in found], np.bool_)[group]
    rows = [
        (int(first[place]), allocation, writes)
        for place, one in enumerate(found)
        if one is not None
        for allocation, writes in one.allocations.items()
    ]
    columns_of_rows = zip(*rows, strict=True) if rows else ((), (), ())
    launch, allocation, written = (np.array(column) for column in columns_of_rows)
    return KernelUses(
        known,
        known & variables,
        first[group],
        launch.astype(np.int64),
        allocation.astype(np.int64),
        written.astype(bool),
    )


def _lists(rows: NDArray[np.void]) -> dict[int, dict[int, int]]:
    """Return, for each list, the allocation at each offset."""
    found: dict[int, dict[int, int]] = {}
    columns = (rows[name].tolist() for name in ("list", "offset", "allocation"))
    for number, offset, allocation in zip(*columns, strict=True):
        found.setdefault(number, {})[offset] = allocation
    return found


@dataclass(frozen=True, slots=True)
class _Uses:
    allocations: dict[int, bool]
    """Whether each is written."""
    variables: bool


class _Code:
    """The code that a process loaded from its own files."""

    def __init__(self, columns: Columns, given: GivenMemory) -> None:
        self._modules = given.modules
        self._names = _unique((kernel.handle, kernel.name) for kernel in given.kernels)
        catalogue = load_catalogue()
        done = columns["result"] == 0
        unloads = np.isin(columns["function"], [f.index for f in catalogue.with_effect(Effect.UNLOAD_CODE)])
        self.unloaded = int(columns["start"][done & unloads].min(initial=np.iinfo(np.int64).max))
        """When code was first unloaded. What a handle means from then on is not followed."""
        loads = [f.index for f in catalogue.with_effect(Effect.LOAD_CODE)]
        named = [f.index for f in catalogue.of_kind(Kind.MODULE) if f.effect is not Effect.FIND_VARIABLE]
        rows = np.flatnonzero(done & np.isin(columns["function"], named) & (columns["destination"] != 0))
        made, of = columns["destination"][rows].tolist(), columns["handle"][rows].tolist()
        from_memory = np.isin(columns["function"][rows], loads)
        sources = np.where(from_memory, columns["source"][rows], 0).tolist()
        self._origins = _unique(zip(made, zip(of, sources, strict=True), strict=True))
        self._accesses: dict[int, Accesses | None] = {}

    def uses(self, handle: int, offsets: dict[int, int]) -> _Uses | None:
        """Return what a kernel uses if it is given these allocations at these offsets; None if that is not known."""
        if handle not in self._accesses:
            self._accesses[handle] = self._accesses_of(handle)
        accesses = self._accesses[handle]
        found = accesses.among(offsets) if accesses is not None else None
        if found is None:
            return None
        used, written = found
        allocations = {offsets[word]: False for word in used - {VARIABLES}}
        return _Uses(allocations | {offsets[word]: True for word in written}, VARIABLES in used)

    def _accesses_of(self, handle: int) -> Accesses | None:
        name, image = self._names.get(handle), self._image(handle)
        sources = self._sources(image) if name is not None and image else None
        if name is None or not sources:
            return None
        found = [kernel_accesses(source, name) for source in sources]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        return Accesses(
            frozenset().union(*(one.reads for one in known)), frozenset().union(*(one.writes for one in known))
        )

    def _image(self, handle: int) -> int:
        """Return where the code of a kernel, function or module was loaded from; 0 if that is not known."""
        seen = set[int]()
        while handle in self._origins and handle not in seen:
            seen.add(handle)
            handle, image = self._origins[handle]
            if image:
                return int(image)
        return 0

    def _sources(self, image: int) -> list[str] | None:
        below = [module for module in self._modules if module.base <= image]
        if not below:
            return None
        module = max(below, key=lambda one: one.base)
        return device_sources(Path(module.path), image - module.base)


def _unique(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the values of keys that have only one."""
    found: dict[Any, set[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return {key: next(iter(values)) for key, values in found.items() if len(values) == 1}
