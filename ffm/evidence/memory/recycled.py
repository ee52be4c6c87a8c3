"""Pinned memory that a library hands out again only after events have said that the GPU is done with it.

PyTorch's allocator works like this ("CUDA semantics", section "Use pinned memory buffers"; `CachingHostAllocator.h`).
When a tensor is given back, it records an event on each stream that used the memory. When it is asked for memory, it
first asks these events, hands out what they say is free, and makes new memory if that is too little. So who writes to
memory that was handed out again needs no wait for its earlier use: without one, an event would have said "not ready",
and the memory would have been another.

Nothing shows which memory an event is for. But each is for one use of one block, so once there were as many events as
uses on a stream, there was one for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Awaits, Kind, Memory
from ffm.evidence.answers import DRIVER_OR_RUNTIME, last_before, recorded_stacks
from ffm.evidence.calls import calls_where
from ffm.evidence.clock_reads import INSTALLED
from ffm.instrument.recording.reader import Recording
from ffm.model.necessity.program import Action, Operations, Role, Scope, Uses
from ffm.results.columnar.columns import Columns

_NONE = np.empty(0, np.int64)
_AT_KNOWN_TIMES = (Role.RESULT, Role.RESULT_UNSEEN, Role.SOURCE)

Frame = tuple[int | None, int]
Frames = tuple[Frame, ...]
"""Of a call stack, innermost first, without the driver and the runtime."""

Maker = tuple[int, Frame]
"""A library, and the place from which its function is called that asks for events and allocates."""


@dataclass(frozen=True, slots=True)
class _Allocators:
    """The calls of libraries that hand out pinned memory again. All are rows of operations."""

    allocations: NDArray[np.int64]
    questions: NDArray[np.int64]
    """Whether an event is done; the answer was that it is."""
    records: NDArray[np.int64]
    """For each question, the record of its event."""


def recycled_uses(
    columns: Columns, operations: Operations, uses: Uses, address: NDArray[np.uint64], recording: Recording
) -> NDArray[np.bool_]:
    """Return which uses, at the addresses, are of memory that a library had handed out again, after asking whether the
    GPU was done.

    `columns` and `operations` describe the same operations of the recording's process, sorted by start. O(n log n).
    """
    found = np.zeros(len(uses.time), np.bool_)
    allocators = _allocators(columns, operations, recording)
    blocks = _Blocks.of(columns, allocators.allocations)
    launched = calls_where(columns["function"][uses.operation], lambda each: each.kind is Kind.LAUNCH)
    # What kernels read is not seen, so that an event may be for that.
    if not len(allocators.records) or (blocks.at(address[launched]) >= 0).any():
        return found
    rows, block = blocks.uses(columns, operations, recording)
    end = columns["start"][allocators.questions] + columns["duration"][allocators.questions]
    records, which = np.unique(allocators.records, return_inverse=True)
    told = np.full(len(records), np.iinfo(np.int64).max)
    np.minimum.at(told, which.reshape(-1), end)
    timed = np.flatnonzero(np.isin(uses.role, _AT_KNOWN_TIMES) & np.isin(uses.operation, rows))
    for stream in np.unique(operations.stream[records]).tolist():
        here = operations.stream[rows] == stream
        on = operations.stream[records] == stream
        closed, since = _closed(rows[here], block[here], records[on], told[on])
        mine = timed[operations.stream[uses.operation[timed]] == stream]
        place = np.searchsorted(closed, uses.operation[mine])
        found[mine] = uses.time[mine] >= np.append(since, np.iinfo(np.int64).max)[place]
    return found


def _closed(
    rows: NDArray[np.int64], block: NDArray[np.int64], records: NDArray[np.int64], told: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records before which each use of a block on their stream has a record of its own, and when all of
    these, up to each, were known to be done.

    `rows` use the blocks; at `told`, the library knew that the work before a record is done.
    """
    events = np.searchsorted(records, rows)
    order = np.lexsort((rows, block))
    again = (block[order][1:] == block[order][:-1]) & (events[order][1:] == events[order][:-1])
    # Uses with no event in between are one: the library had not got the memory back.
    begun = np.sort(rows[order[np.append(True, ~again)]]) if len(rows) else rows
    opened, given_back = np.searchsorted(begun, records), 1 + np.arange(len(records))
    if (opened < given_back).any():  # events for something else are among them
        return _NONE, _NONE
    closed = opened == given_back
    return records[closed], np.maximum.accumulate(told)[closed]


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Allocations of pinned memory, in order of their addresses."""

    begin: NDArray[np.uint64]
    end: NDArray[np.uint64]

    @classmethod
    def of(cls, columns: Columns, allocations: NDArray[np.int64]) -> _Blocks:
        """Return what was allocated; nothing where blocks overlap, since it is then not known which one is meant."""
        begin = columns["destination"][allocations].astype(np.uint64)
        blocks = np.unique(np.column_stack([begin, begin + columns["bytes"][allocations].astype(np.uint64)]), axis=0)
        if (blocks[1:, 0] < blocks[:-1, 1]).any():
            blocks = blocks[:0]
        return cls(blocks[:, 0], blocks[:, 1])

    def at(self, address: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of the block in which each address lies; -1 for none."""
        place = np.searchsorted(self.begin, address, side="right") - 1
        inside = (place >= 0) & (address < np.append(self.end, np.uint64(0))[place])
        return np.where(inside, place, -1)

    def uses(
        self, columns: Columns, operations: Operations, recording: Recording
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the operations on the GPU that use blocks, in order, and the number of the block of each.

        Not those for which the library waits itself: it needs no event for them.
        """
        works = np.isin(operations.action, (Action.WORK, Action.HOLD))
        sides = [self.at(columns[side].astype(np.uint64)) for side in ("source", "destination")]
        rows = np.concatenate([np.flatnonzero(works & (side >= 0)) for side in sides])
        block = np.concatenate([side[works & (side >= 0)] for side in sides])
        others = ~_waits_itself(columns, operations, rows, recording)
        order = np.argsort(rows[others], kind="stable")
        return rows[others][order], block[others][order]


def _waits_itself(
    columns: Columns, operations: Operations, rows: NDArray[np.int64], recording: Recording
) -> NDArray[np.bool_]:
    """Return after which operations the function that calls the driver for them waits for their stream at once."""
    order = np.lexsort((columns["start"], columns["thread"]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    following = order[np.minimum(place[rows] + 1, len(order) - 1)]
    waits = (columns["thread"][following] == columns["thread"][rows]) & (operations.scope[following] == Scope.STREAM)
    waits &= (operations.stream[following] == operations.stream[rows]) & (columns["result"][following] == 0)
    stacks = _Stacks(recording)
    pair = np.column_stack([recorded_stacks(columns, each, recording) for each in (rows, following)])
    distinct, which = np.unique(pair, axis=0, return_inverse=True)
    same = np.array([stacks.in_one_function(work, wait) for work, wait in distinct.tolist()], np.bool_)
    together: NDArray[np.bool_] = waits & same[which.reshape(-1)]
    return together


def _allocators(columns: Columns, operations: Operations, recording: Recording) -> _Allocators:
    """Return the calls of installed libraries' functions that ask events before they allocate pinned memory."""
    done = columns["result"] == 0
    pinning = calls_where(
        columns["function"], lambda each: each.kind is Kind.ALLOCATION and each.memory is Memory.PINNED
    )
    asking = calls_where(columns["function"], lambda each: each.kind is Kind.QUERY and each.awaits is Awaits.EVENT)
    allocations, questions = np.flatnonzero(pinning & done), np.flatnonzero(asking & done)
    nothing = _Allocators(_NONE, _NONE, _NONE)
    if not len(allocations) or not len(questions):
        return nothing
    records = last_before(questions, operations.event, operations.action == Action.RECORD)
    questions, records = questions[records >= 0], records[records >= 0]
    stacks = _Stacks(recording)
    allocating, asked, recorded = (
        recorded_stacks(columns, rows, recording) for rows in (allocations, questions, records)
    )
    makers = stacks.makers(np.unique(allocating).tolist(), np.unique(asked).tolist())
    # A function that records the events itself uses the memory itself, too.
    recorders = {frame for stack in np.unique(recorded).tolist() for frame in stacks.trimmed(stack)}
    makers = {maker for maker in makers if maker[1] not in recorders}
    ours = stacks.made_by(makers, asked)
    return _Allocators(allocations[stacks.made_by(makers, allocating)], questions[ours], records[ours])


class _Stacks:
    """The call stacks of a process, as far as they tell which functions of libraries make calls."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._driver = [bool(DRIVER_OR_RUNTIME.match(PurePath(module.path).name)) for module in recording.modules]
        self._installed = [bool(INSTALLED.match(module.path)) for module in recording.modules]

    def trimmed(self, stack: int) -> Frames:
        """Return the frames of a stack, without the driver and the runtime."""
        frames = self._recording.stacks[stack].frames if stack < len(self._recording.stacks) else []
        return tuple((module, offset) for module, offset in frames if module is not None and not self._driver[module])

    def in_one_function(self, first: int, second: int) -> bool:
        """Return whether the same call of a library's function makes the calls with two stacks."""
        one, other = self.trimmed(first), self.trimmed(second)
        return bool(one) and bool(other) and one[0][0] == other[0][0] and one[1:] == other[1:]

    def makers(self, allocating: list[int], asking: list[int]) -> set[Maker]:
        """Return who calls functions that allocate as well as ask."""
        allocators = {place for stack in allocating for place in self._callers(stack)}
        shared = ([place for place in self._callers(stack) if place in allocators] for stack in asking)
        return {places[0][:2] for places in shared if places}

    def made_by(self, makers: set[Maker], stacks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which stacks lead through one of the makers."""
        distinct, which = np.unique(stacks, return_inverse=True)
        made = np.array(
            [any(place[:2] in makers for place in self._callers(stack)) for stack in distinct.tolist()], np.bool_
        )
        return made[which.reshape(-1)]

    def _callers(self, stack: int) -> Iterator[tuple[int, Frame, Frames]]:
        """Yield, for the innermost functions of a stack that are in one installed library: the library, the caller of
        each, and what is outside of that.
        """
        frames = self.trimmed(stack)
        library = frames[0][0] if frames else None
        if library is None or not self._installed[library]:
            return
        for depth in range(1, len(frames)):
            yield library, frames[depth], frames[depth + 1 :]
            if frames[depth][0] != library:
                return
