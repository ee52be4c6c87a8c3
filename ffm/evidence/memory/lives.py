"""Device memory by its lifetime: after a free that waits, the same address is different memory.

Such a free comes after all work that may use its memory (CUDA Driver API, "API synchronization behavior"). So work
before it and work that uses the address after it have nothing in common, and nothing else need order them. A correction
that makes such a free return without waiting keeps that order on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind, Memory
from ffm.evidence.documented_waits import FREES_THAT_WAIT
from ffm.model.transfers import allocations_of, latest_of
from ffm.results.columnar.columns import Columns

NEVER_NS, NO_TIME_NS = np.iinfo(np.int64).max, -1


@dataclass(frozen=True, slots=True)
class Lives:
    """Allocations of device memory, in order of time. Columns of equal length; times in nanoseconds."""

    address: NDArray[np.uint64]
    bytes: NDArray[np.int64]
    since: NDArray[np.int64]
    """When the call that allocated it was over."""
    until: NDArray[np.int64]
    """When a free began that waits; the largest number if none was seen."""

    @classmethod
    def of(cls, columns: Columns) -> Lives:
        """Return the lives in one process's operations, which are in order of time."""
        catalogue = load_catalogue()
        allocating = [f.index for f in catalogue.of_kind(Kind.ALLOCATION) if f.memory is Memory.DEVICE]
        freeing = [f.index for f in catalogue.of_kind(Kind.FREE) if f.memory in FREES_THAT_WAIT and not f.asynchronous]
        done = columns["result"] == 0
        rows = np.flatnonzero(done & np.isin(columns["function"], allocating))
        since = columns["start"][rows] + columns["duration"][rows]
        rows, since = rows[np.argsort(since, kind="stable")], np.sort(since, kind="stable")
        address = columns["destination"][rows].astype(np.uint64)
        until = np.full(len(rows), NEVER_NS)
        frees = np.flatnonzero(done & np.isin(columns["function"], freeing))
        distinct = np.unique(address)
        place = np.searchsorted(distinct, columns["destination"][frees].astype(np.uint64))
        inside = place < len(distinct)
        inside[inside] = distinct[place[inside]] == columns["destination"][frees[inside]].astype(np.uint64)
        frees, place = frees[inside], place[inside]
        freed = latest_of(place, columns["start"][frees], np.searchsorted(distinct, address), since)
        known = freed >= 0
        np.minimum.at(until, freed[known], columns["start"][frees[known]])
        lives = cls(address, columns["bytes"][rows].astype(np.int64), since, until)
        lives.until[lives._overtaken()] = NO_TIME_NS
        return lives

    def at(self, address: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the life, by its number, in which something used each address at a time; -1 if that is not known."""
        number = allocations_of(address.astype(np.uint64), time, self.address, self.bytes, self.since)
        found = np.flatnonzero(number >= 0)
        number[found[time[found] > self.until[number[found]]]] = -1
        return number

    def _overtaken(self) -> NDArray[np.int64]:
        """Return the lives whose memory was allocated again although no waiting free of it was seen."""
        open_ = np.flatnonzero(self.until == NEVER_NS)
        open_ = open_[np.argsort(self.address[open_], kind="stable")]
        end = self.address + self.bytes.astype(np.uint64)
        until = np.maximum.accumulate(end[open_]) if len(open_) else end[open_]
        first = np.searchsorted(until, self.address, side="right")
        count = np.maximum(np.searchsorted(self.address[open_], end, side="left") - first, 0)
        later = np.repeat(np.arange(len(self.address)), count)
        place = np.arange(len(later)) - np.repeat(np.cumsum(count) - count - first, count)
        earlier = open_[place]
        return np.unique(earlier[(self.since[later] > self.since[earlier]) & (end[earlier] > self.address[later])])


def in_lives(
    memory: NDArray[np.int64], address: NDArray[np.int64], time: NDArray[np.int64], lives: Lives
) -> NDArray[np.int64]:
    """Return the numbers of memory, telling apart the lives of an address; new numbers follow all that `memory` has.

    All arguments but the last have a row for each use: a number of memory from 0, the address in device memory that is
    used, or 0 where none is known, and when. Memory stays as it is where the life of some use is not known.
    """
    life = np.full(len(memory), -1, np.int64)
    asked = address > 0
    if not len(lives.address) or not asked.any():
        return memory
    life[asked] = lives.at(address[asked], time[asked])
    count = int(memory.max()) + 1
    told = np.ones(count, np.bool_)
    told[memory[life < 0]] = False
    return np.where(told[memory], count + life, memory)
