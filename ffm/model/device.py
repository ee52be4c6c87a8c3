"""What the model knows about the GPU: what each row of a timeline puts on a stream, and what it waits for.

The rows are those of `ffm.model.timeline.Timeline`. Nothing here is a GPU time, because a trace of driver calls
contains none; `ffm.model.gpu_times.inference` infers them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

from ffm.model.codes import is_one_of


class Action(IntEnum):
    """What a driver call does on a stream, and whether it waits before or after that.

    Source: CUDA Driver API, "API synchronization behavior"; for frees, dissertation 3.3.1.
    """

    NONE = 0
    """Only the CPU works. If it waits, the reason is unknown."""
    ENQUEUE = 1
    """Launches, asynchronous copies, sets: puts work on a stream, where it can start when the call does."""
    ENQUEUE_AND_WAIT = 2
    """Puts work on a stream, then waits for it: downloads, uploads from pinned memory, private calls of a library.
    Downloads to pageable memory then copy (`DeviceWork.after_wait`).
    """
    WAIT_AND_ENQUEUE = 3
    """Waits for the stream's earlier work, copies into a staging buffer, puts the rest of the copy on the stream:
    uploads from pageable memory.
    """
    WAIT_CONTEXT = 4
    """Waits for all work of the process, or of the device of its stream if it has one, then does its own: frees, device
    synchronizations.
    """
    WAIT_STREAM = 5
    WAIT_EVENT = 6
    RECORD_EVENT = 7
    STREAM_WAIT_EVENT = 8
    """Makes a stream wait for an event; the CPU continues."""
    SET_AND_WAIT = 9
    """Sets memory that the CPU can access, and waits for it. The CPU could set it without (dissertation 5.4.1, AMG)."""
    WAIT_THREAD = 10
    """Waits for another thread, of this process or another one (`DeviceWork.awaits`), then does its own."""
    LOAD = 11
    """Loads device code. It did not wait; but it may, for all work of the process (CUDA Programming Guide, "Lazy
    Loading": loading "may require context synchronization").
    """
    LOAD_AND_ENQUEUE = 12
    """Waited, although it never waits for results: for its kernel's code to be loaded, or for room in the queue. Then
    it puts its work on a stream: launches, and asynchronous copies and sets within the device.
    """


PURE_WAITS = (Action.WAIT_CONTEXT, Action.WAIT_STREAM, Action.WAIT_EVENT)
"""What only waits for the GPU."""

_WAITS_FIRST = (
    Action.WAIT_AND_ENQUEUE,
    *PURE_WAITS,
    Action.WAIT_THREAD,
)


ENQUEUES = np.zeros(max(Action) + 1, np.bool_)
ENQUEUES[[Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.SET_AND_WAIT]] = True
ENQUEUES[Action.LOAD_AND_ENQUEUE] = True
"""Whether each `Action` puts work on the GPU."""


class Direction(IntEnum):
    """Between which memories a transfer moves bytes."""

    NONE = 0
    """It is no copy, or the memories are not known."""
    TO_DEVICE = 1
    FROM_DEVICE = 2
    OTHER = 3
    """Within a device, between devices, or within the host."""


class Fills(IntEnum):
    """How much of its device a kernel fills."""

    UNKNOWN = 0
    LITTLE = 1
    """So few multiprocessors that a kernel of this size from each stream that launches some can run at once."""
    ALL = 2
    """It has as many threads as can run at once, or more."""


_DEVICE_BITS = 16
MOST_DEVICES = (1 << _DEVICE_BITS) - 1
"""The highest number that a device can have."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """The devices of all processes, numbered by process: those that its streams are on, or one."""

    of_stream: NDArray[np.int32]
    """Shape (streams + 1,): the number of each stream's device; the last entry is for no stream."""
    first: NDArray[np.int32]
    """Shape (processes + 1,): the first number of each process."""


@dataclass(frozen=True, slots=True)
class ThreadLives:
    """Who started and joined which thread, as recorded. Columns of shape (threads,)."""

    before: NDArray[np.int64]
    """Nanoseconds from the start of the thread to its first row; -1 if its start was not recorded."""
    parent: NDArray[np.int32]
    """The thread that started it, or the one that this had waited for right before; -1 if that has no rows, or is
    unknown.
    """
    started: NDArray[np.int64]
    """The row of the parent before which that happened, or the row behind its last one; -1 without a parent."""
    joined: NDArray[np.int64]
    """The row before which another thread joined it; -1 if none did, or none that has a row after that."""

    @classmethod
    def unknown(cls, threads: int) -> ThreadLives:
        """Return lives of which nothing is known."""
        return cls(
            before=np.full(threads, -1, np.int64),
            parent=np.full(threads, -1, np.int32),
            started=np.full(threads, -1, np.int64),
            joined=np.full(threads, -1, np.int64),
        )


@dataclass(frozen=True, slots=True)
class LockWaits:
    """Waits of threads after rows, until another thread released what they waited for. Columns of equal length."""

    row: NDArray[np.int64]
    """The last row of the waiting thread that began before."""
    after: NDArray[np.int64]
    """Nanoseconds from the end of that row to the start of the wait."""
    by: NDArray[np.int64]
    """The last row of the thread that let it go that began before,"""
    released: NDArray[np.int64]
    """and the nanoseconds from its end until it did."""


class Role(IntFlag):
    """What a row does where rows of several threads meet (`Encounters`)."""

    COMES = 1
    """Those that wait there, or follow, do so at least until the row begins."""
    WAITS = 2
    """The row is over only after all have come: a barrier, a receiver."""
    FOLLOWS = 4
    """The row begins after the one that comes; its thread was idle before. So threads join a team."""


@dataclass(frozen=True, slots=True)
class Encounters:
    """Where rows of different threads meet, as a profiler recorded: those that come early wait for the others.

    In a collective operation, all come and wait. For a message, the send comes and the receive waits; a send that was
    seen to wait for its receiver does both, and so does that receiver. The row that releases a lock comes, and the one
    that acquires it next waits. Columns with one entry for each row at each of its encounters; a call can receive
    several messages.
    """

    number: NDArray[np.int64]
    """Which encounter, from 0."""
    row: NDArray[np.int64]
    role: NDArray[np.uint8]
    """Of `Role`."""

    @classmethod
    def none(cls) -> Encounters:
        """Return no encounter."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Columns of the same length as a timeline's. Streams and events of different processes have different numbers."""

    action: NDArray[np.uint8]
    """A value of `Action`."""
    stream: NDArray[np.int32]
    """The stream of the work or the wait; -1 if there is none."""
    event: NDArray[np.int32]
    """The event that is recorded or waited for; -1 if there is none."""
    partner: NDArray[np.int32]
    """For a free, the row of the later allocation that its memory could have served, or its own row if there is none,
    but the process could keep the memory; for an allocation, the row of that free; otherwise -1
    (`ffm.model.estimators.hoisting`).
    """
    copied: NDArray[np.int64]
    """Bytes that a transfer moves; 0 for everything else."""
    measured: NDArray[np.int32] | NDArray[np.int64]
    """Nanoseconds of the GPU's work that the row enqueued, as timed by events around it, without `arriving`; -1 if not
    timed.
    """
    process_of_thread: NDArray[np.int32]
    """Shape (threads,): the process of each of the timeline's threads, from 0."""
    legacy: NDArray[np.int32]
    """Shape (processes,): the legacy default stream of each process, which orders all its streams but the `independent`
    ones; -1 if the process does not use it (CUDA Driver API, "Stream synchronization behavior").
    """
    stream_process: NDArray[np.int32]
    """Shape (streams,): the process of each stream."""
    events: int
    """The number of events."""
    arriving: NDArray[np.int32] | NDArray[np.int64] | None = None
    """How many nanoseconds longer the work may have taken: an idle GPU passes the first event at once, so that the
    events also time how long the call took to bring the work to the GPU. None if that is 0 for all.
    """

    began: NDArray[np.int64] | None = None
    """When the GPU began the work that the row enqueued, as a profiler recorded it, on the timeline's clock; -1 if
    there is no such work. None if no profiler did: then it is inferred.
    """

    awaits: NDArray[np.int32] | None = None
    """The row of another thread that had to begin before this row could go on; -1 if there is none. If the row waits,
    it waited for that, as at a barrier; else the other one started it. Of a row that releases a lock, the row of its
    own thread that acquired it. None if no profiler recorded it.
    """

    encounters: Encounters | None = None
    """All that could have made the row wait; `awaits` names what it did wait for. None if no profiler recorded it."""

    stream_device: NDArray[np.int32] | None = None
    """Shape (streams,): the number, in its process, of the device that each stream is on. None if it is not known: then
    all streams of a process count as those of one device.
    """

    independent: NDArray[np.bool_] | None = None
    """Shape (streams,): whether the legacy default stream does not order the stream (`CU_STREAM_NON_BLOCKING`). None if
    it orders all.
    """

    lives: ThreadLives | None = None
    """None if nothing was recorded of them: then they are inferred from the threads' times."""

    locks: LockWaits | None = None
    """None if nothing was recorded of them."""

    delayed: NDArray[np.int64] | None = None
    """Shape (threads,): for how many nanoseconds each thread could have run but had no processor, because others of its
    process had it; -1 if it is not known. None if nothing was recorded of that.
    """

    direction: NDArray[np.uint8] | None = None
    """A value of `Direction`; None if it is not known."""

    after_wait: NDArray[np.int32] | None = None
    """For a download that waits (`Action.ENQUEUE_AND_WAIT`), how many nanoseconds of its own time come after its wait:
    the CPU copies from the driver's buffers into pageable memory. 0 for all others, whose own time comes before their
    wait, or after it (`waits_first`). Where the times of a call are changed, no more than what is left of its own time
    counts. None if that is 0 for all.
    """

    fills: NDArray[np.uint8] | None = None
    """A value of `Fills`; None if the sizes of kernels are not known."""

    asked: NDArray[np.int32] | None = None
    """For a query whether a stream or an event is done: twice its number, plus 1 if it was not done; -1 for other rows.
    Streams and events have numbers of their own here. None if nothing was recorded of queries, or there is none.
    """

    @property
    def behind(self) -> NDArray[np.int32]:
        """`after_wait`, for the model's passes: empty if it is None."""
        return np.zeros(0, np.int32) if self.after_wait is None else self.after_wait

    @property
    def apart(self) -> NDArray[np.bool_]:
        """`independent`, for the model's passes: if it is None, none is. The last entry, False, is for no stream."""
        independent = np.zeros(self.streams, np.bool_) if self.independent is None else self.independent
        return np.append(independent, np.False_)

    @property
    def waits_first(self) -> NDArray[np.bool_]:
        """Which rows first wait and then do their own work, shape (n,); all others that wait do so at their end."""
        return is_one_of(self.action, _WAITS_FIRST)

    @property
    def gpus(self) -> Gpus:
        """The devices that the processes' streams are on, for the model's passes."""
        device = np.zeros(self.streams, np.int32) if self.stream_device is None else self.stream_device
        idle = np.setdiff1d(np.arange(self.processes), self.stream_process) << _DEVICE_BITS
        keys = np.append(self.stream_process.astype(np.int64) << _DEVICE_BITS | device, idle)
        numbers, place = np.unique(keys, return_inverse=True)
        first = np.searchsorted(numbers >> _DEVICE_BITS, np.arange(self.processes + 1))
        return Gpus(np.append(place[: self.streams], 0).astype(np.int32), first.astype(np.int32))

    def for_path(self) -> DeviceWork:
        """Return the same with empty columns in place of those that only estimates need."""
        measured = np.empty(0, np.int64) if self.began is None else self.measured
        return replace(
            self, partner=np.empty(0, np.int32), copied=np.empty(0, np.int64), measured=measured, arriving=None
        )

    @property
    def processes(self) -> int:
        """The number of processes of the run."""
        return len(self.legacy)

    @property
    def streams(self) -> int:
        """The number of streams that all processes used."""
        return len(self.stream_process)

    @property
    def one_gpu(self) -> bool:
        """Whether all work is that of one process on one device."""
        return self.processes == 1 and (self.stream_device is None or not self.stream_device.any())

    def gpu_of(self, rows: NDArray[np.int64], thread: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return a number for the process and the device of some rows' GPU work, ascending by process, then by device;
        `thread` is that of all rows. `gpu_named` takes it apart.
        """
        process = self.process_of_thread[thread[rows]].astype(np.int64)
        if self.stream_device is None:
            return process << _DEVICE_BITS
        return process << _DEVICE_BITS | np.where(self.stream[rows] >= 0, self.stream_device[self.stream[rows]], 0)

    def rows_by_gpu(
        self, rows: NDArray[np.int64], thread: NDArray[np.int32]
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the numbers that `gpu_of` gives some rows, ascending, each with the rows that have it."""
        if not len(rows):
            return
        if self.one_gpu:
            yield 0, rows
            return
        gpu = self.gpu_of(rows, thread)
        for number in np.unique(gpu).tolist():
            yield number, rows[gpu == number]

    @staticmethod
    def gpu_named(number: int) -> tuple[int, int]:
        """Return the process and the device of a number of `gpu_of`."""
        return number >> _DEVICE_BITS, number & MOST_DEVICES


IDLE = -2
"""In place of a stream: one of a device that no stream is on."""


def stream_of_device(
    process: NDArray[np.int64],
    device: NDArray[np.integer],
    stream_process: NDArray[np.integer],
    stream_device: NDArray[np.integer],
) -> NDArray[np.int32]:
    """Return a stream for each wait for a device, as `Action.WAIT_CONTEXT` needs one.

    Args:
        process: that of each wait.
        device: its number in the process, in the shape of `process`; -1 if it is not known.
        stream_process: shape (streams,).
        stream_device: shape (streams,).

    Returns:
        A stream of the device; -1 if the process has streams of one device only, or the device is not known; `IDLE` if
        the process has several, and none is on that.
    """
    streams: dict[int, dict[int, int]] = {}
    for number, (owner, place) in enumerate(zip(stream_process.tolist(), stream_device.tolist(), strict=True)):
        streams.setdefault(owner, {}).setdefault(place, number)
    found = np.full(len(process), -1, np.int32)
    for owner, places in streams.items():
        if len(places) > 1:
            found[(process == owner) & (device >= 0)] = IDLE
            for place, number in places.items():
                found[(process == owner) & (device == place)] = number
    return found
