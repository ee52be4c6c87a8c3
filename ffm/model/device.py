"""What the model knows of the GPU: for each row of a timeline, what it puts on a stream and what it waits for.

The rows are those of `ffm.model.timeline.Timeline`. Nothing here is a time of the GPU: a trace of driver calls shows
none. `ffm.model.gpu_times` infers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ffm.model.timeline import Kind, Timeline


class Action(IntEnum):
    """What a driver call does on a stream, and whether its waiting comes before or after that.

    Source: CUDA Driver API, "API synchronization behavior"; for frees, dissertation 3.3.1.
    """

    NONE = 0
    """Only the CPU works. If it waits, nobody knows for what."""
    ENQUEUE = 1
    """Launches, asynchronous copies, sets: puts work on a stream, where it can begin when the call does."""
    ENQUEUE_AND_WAIT = 2
    """Puts work on a stream, then waits for it: downloads, uploads from pinned memory, private calls of a library."""
    WAIT_AND_ENQUEUE = 3
    """Waits for the stream's earlier work, copies into a staging buffer, puts the rest of the copy on the stream:
    uploads from pageable memory."""
    WAIT_CONTEXT = 4
    """Waits for all work of the process, then does its own: frees, device synchronizations."""
    WAIT_STREAM = 5
    WAIT_EVENT = 6
    RECORD_EVENT = 7
    STREAM_WAIT_EVENT = 8
    """Lets a stream wait for an event; the CPU goes on."""
    SET_AND_WAIT = 9
    """Sets memory that the CPU can reach, and waits for it: the CPU can set it without (dissertation 5.4.1, AMG)."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Columns beside a timeline's, as long. Streams and events of different processes have different numbers."""

    action: NDArray[np.uint8]
    """A value of `Action`."""
    stream: NDArray[np.int32]
    """The stream of the work or the wait; -1 where there is none."""
    event: NDArray[np.int32]
    """The event that is recorded or waited for; -1 where there is none."""
    partner: NDArray[np.int32]
    """Of a free, the row of the later allocation that its memory could have served; of an allocation, the row of that
    free; -1 where there is none (`ffm.model.hoisting`)."""
    copied: NDArray[np.int64]
    """Bytes that a transfer moves; 0 for all else."""
    measured: NDArray[np.int64]
    """Nanoseconds that the GPU worked at what the row enqueued, as events around it told; -1 where none did."""
    process_of_thread: NDArray[np.int32]
    """Shape (threads,): the process of each of the timeline's threads, from 0."""
    legacy: NDArray[np.int32]
    """Shape (processes,): the legacy default stream of each process, which orders all its streams; -1 where the process
    does not use it (CUDA Driver API, "Stream synchronization behavior")."""
    stream_process: NDArray[np.int32]
    """Shape (streams,): the process of each stream."""
    events: int
    """How many events there are."""

    @property
    def processes(self) -> int:
        """How many processes the run had."""
        return len(self.legacy)

    @property
    def streams(self) -> int:
        """How many streams all processes used."""
        return len(self.stream_process)


def simple_device_work(timeline: Timeline) -> DeviceWork:
    """What a program does whose one process has one stream, told from the kinds of its rows alone.

    For results without a record of streams, and for tests. Uploads and downloads are not told apart: a transfer that
    waits, waits for its own copy.
    """
    action = np.full(len(timeline), Action.NONE, np.uint8)
    kind, waits = timeline.kind, timeline.wait > 0
    action[kind == Kind.LAUNCH] = Action.ENQUEUE
    action[kind == Kind.TRANSFER] = Action.ENQUEUE
    action[(kind == Kind.TRANSFER) & waits] = Action.ENQUEUE_AND_WAIT
    action[kind == Kind.PRIVATE] = Action.ENQUEUE_AND_WAIT
    action[(kind == Kind.FREE) & (waits | (timeline.problem != 0))] = Action.WAIT_CONTEXT
    action[kind == Kind.SYNCHRONIZATION] = Action.WAIT_CONTEXT
    return DeviceWork(
        action=action,
        stream=np.where(action != Action.NONE, 0, -1).astype(np.int32),
        event=np.full(len(timeline), -1, np.int32),
        partner=np.full(len(timeline), -1, np.int32),
        copied=np.zeros(len(timeline), np.int64),
        measured=np.full(len(timeline), -1, np.int64),
        process_of_thread=np.zeros(int(timeline.thread.max(initial=-1)) + 1, np.int32),
        legacy=np.zeros(1, np.int32),
        stream_process=np.zeros(1, np.int32),
        events=0,
    )
