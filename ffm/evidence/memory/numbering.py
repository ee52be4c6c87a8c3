"""Numbers the device and host memory that work uses, so that memory that overlaps has the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction
from ffm.driver.vocabulary import Kind, Memory
from ffm.evidence.calls import calls_where
from ffm.evidence.memory.lives import Lives
from ffm.evidence.memory.slices import starts_of_merged
from ffm.results.columnar.columns import Columns


class Part(NamedTuple):
    """Uses of memory. Columns of equal length."""

    row: NDArray[np.int64]
    """Places among rows."""
    memory: NDArray[np.int64]
    """The numbers of the memory that they use."""
    writes: bool
    address: NDArray[np.int64] | None = None
    """Where they use it; None if that is not known, or not asked."""


class HostRanges:
    """Ranges of host memory that rows use."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bool]] = []

    def add(self, row: NDArray[np.int64], begin: NDArray[np.int64], size: NDArray[np.int64], writes: bool) -> None:
        """Note that rows use so many bytes from an address on."""
        self._parts.append((row, begin, begin + size, writes))

    def numbered(self, first: int) -> list[Part]:
        """Return the rows and numbers, from `first` on, of what they use: equal ones for ranges that overlap."""
        begin = np.concatenate([part[1] for part in self._parts])
        end = np.concatenate([part[2] for part in self._parts])
        start = starts_of_merged(begin, end)
        return [
            Part(row, first + np.searchsorted(start, begins, side="right") - 1, writes)
            for row, begins, _, writes in self._parts
        ]


class DeviceMemory:
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
    def of(cls, columns: Columns, joined: NDArray[np.void]) -> DeviceMemory:
        """Return what a run allocated, joined as its kernels, copies and uploads did."""
        rows = (columns["result"] == 0) & calls_where(columns["function"], _allocates_on_device)
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

    def of_finders(self, named: Sequence[Part], finders: Sequence[Part]) -> list[Part]:
        """Return further memory that work may use because some memory leads to other memory.

        `finders` may write all that the memory they are given leads to. Work in `named` uses the memory that it names,
        which may be among that. All memory that leads to each other counts as one, with a number behind those of single
        allocations.
        """
        roots = np.array([self._root(one) for one in range(self.count)])
        parts = [
            Part(one.row, np.where(one.memory < 0, -1, self.count + roots[one.memory]), one.writes) for one in finders
        ]
        written = np.zeros(self.count, np.bool_)
        for one in finders:
            written[roots[one.memory[one.memory >= 0]]] = True
        for one in named:
            among = (one.memory >= 0) & written[roots[one.memory]]
            parts.append(Part(one.row[among], self.count + roots[one.memory[among]], False))
        return parts


def _allocates_on_device(function: DriverFunction) -> bool:
    return function.kind is Kind.ALLOCATION and function.memory in (Memory.DEVICE, Memory.ASYNCHRONOUS)
