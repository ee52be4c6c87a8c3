"""What a process did, as far as that shows which synchronizations it needed: operations, uses, clocks, handovers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Scope(IntEnum):
    """Which earlier work an operation waits for."""

    NONE = 0
    """It does not wait, or not for anything known to be work."""
    CONTEXT = 1
    """All work of the context."""
    STREAM = 2
    """The work of one stream, including its own; for the legacy default stream also that of the blocking streams."""
    EVENT = 3
    """The work before the last record of an event."""
    UNKNOWN = 4
    """It waits, but for what is unknown."""
    STAGING = 5
    """It waits for space for its own work, so it covers no work."""
    PRIVATE = 6
    """A private call of the driver waits, but for what is unknown."""
    UNRECORDED = 7
    """It names an event that was not recorded yet, so it covers no work and returns at once."""


class Action(IntEnum):
    """How an operation affects the order of work."""

    NOTHING = 0
    WORK = 1
    """It puts work on its stream."""
    RECORD = 2
    """It records its event on its stream."""
    WAIT_EVENT = 3
    """It makes later work of its stream come after its event's last record."""
    RELEASE = 4
    """It destroys memory or an object that work may use, and does not wait."""
    HOLD = 5
    """It puts work on its stream that ends only when the CPU lets it: unseen, at any time after the call."""


class StreamKind(IntEnum):
    """How a stream is ordered with others (CUDA Driver API, "Stream synchronization behavior")."""

    INDEPENDENT = 0
    BLOCKING = 1
    """Ordered with the legacy default stream of its context."""
    LEGACY = 2
    """The legacy default stream."""


class Side(IntEnum):
    """What the use of some memory has to do with other work that uses memory of the same number."""

    BOTH = 0
    MARKS = 1
    """Only that which looks at it has it in common."""
    LOOKS = 2
    """Only that which marks it has it in common."""


class Role(IntEnum):
    """What an access means to the operation whose memory it touches."""

    RESULT = 0
    """The operation writes it; a CPU read or write must come after."""
    SOURCE = 1
    """An asynchronous transfer reads it; a CPU write must come after."""
    OWN_SOURCE = 2
    """A synchronous transfer reads it: its own wait is all that a CPU write relies on."""
    RELEASED = 3
    """The program frees the memory."""
    TIMING = 4
    """The program queries the time of an event: the operation is its record."""
    UNWATCHED = 5
    """The memory could not be watched: who relies on the operation's end, and when, is unknown."""
    HOST_FUNCTION = 6
    """A function of the program runs in the stream: what it hands over is unknown."""
    SHARED = 7
    """Another process may use or overwrite the device memory that it uses: when is unknown."""
    ANSWER = 8
    """The program asks whether the operation is over, and is told so."""
    RESULT_UNSEEN = 9
    """As `RESULT`, by a use that was not watched: each one that was came after the same wait of its call site."""
    SOURCE_UNSEEN = 10
    """As `SOURCE`, likewise."""
    GIVEN_UP = 11
    """The memory could not be watched any longer: it counts as used then, so that later uses need no later wait."""


class Comparison(IntEnum):
    """Whether the program compares a read of a clock with another, so that the waits in between are timed."""

    NOT_COMPARED = 0
    MAYBE_COMPARED = 1
    """A library may time its own work, or that of the program."""
    COMPARED = 2


UNKNOWN_THREAD = -1


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """Which memory each of n operations uses, as far as it is known. Memory is numbered from 0."""

    first: NDArray[np.int64]
    """Shape (n + 1,): operation `i` uses `memory[first[i] : first[i + 1]]`."""
    memory: NDArray[np.int64]
    writes: NDArray[np.bool_]
    """Whether the operation may write it, in the order of `memory`."""
    side: NDArray[np.uint8]
    """A value of `Side` for each, in the order of `memory`."""
    anything: NDArray[np.bool_]
    """Shape (n,): whether the operation may use any memory."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a process. Columns of length k; operations refer to a stream by its row."""

    kind: NDArray[np.uint8]
    """A value of `StreamKind`."""
    context: NDArray[np.int64]
    """The context, numbered from 0."""
    apart: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    """Shape (streams, streams): whether no memory is used by work of both; of shape (0, 0) if that is not known."""
    used: UsedMemory | None = None
    """What work uses; None if nothing is known of that."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of one process, sorted by start. Columns of equal length n; times in nanoseconds."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    """The host thread, numbered from 0."""
    scope: NDArray[np.uint8]
    """A value of `Scope`."""
    judged: NDArray[np.bool_]
    """Whether it waits and gets a verdict. A successful query (`cuEventQuery`) has a scope but gets no verdict."""
    stream: NDArray[np.int64]
    """Row of the stream of its work or wait."""
    context: NDArray[np.int64]
    """The context current at the call, numbered from 0."""
    event: NDArray[np.int64]
    """The event that it records or waits for, numbered from 0; -1 for none."""
    action: NDArray[np.uint8]
    """A value of `Action`."""
    streams: Streams


@dataclass(frozen=True, slots=True)
class Uses:
    """Accesses that rely on the end of an operation. Columns of equal length m. An operation can have several."""

    operation: NDArray[np.int64]
    """Row of the transfer, launch, record or host function among the operations."""
    time: NDArray[np.int64]
    """Meaningless for the roles `UNWATCHED`, `HOST_FUNCTION` and `SHARED`, which may come at any time."""
    role: NDArray[np.uint8]
    """A value of `Role`."""
    thread: NDArray[np.int64]
    """The thread that accesses; for a forked child, the one that forked it. `UNKNOWN_THREAD` if it is unknown or never
    called the driver.
    """


NO_USES = Uses(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Clocks:
    """Reads of a clock by the program or its libraries. Columns of equal length."""

    thread: NDArray[np.int64]
    time: NDArray[np.int64]
    comparison: NDArray[np.uint8]
    """A value of `Comparison`."""
    counter: NDArray[np.bool_]
    """Whether the program's own code reads the processor's counter (RDTSC, RDTSCP)."""


@dataclass(frozen=True, slots=True)
class Handovers:
    """What threads know of each other, from when on. Rows in order of time."""

    thread: NDArray[np.int64]
    time: NDArray[np.int64]
    known: NDArray[np.int64]
    """Shape (k, m): up to which time what each of the first m threads did comes before the thread's next step, however
    threads are scheduled. The others' steps are not asked for.
    """


NO_HANDOVERS = Handovers(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.int64))

NO_CLOCKS = Clocks(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.bool_))
