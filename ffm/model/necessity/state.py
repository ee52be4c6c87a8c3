"""The state of the passes over the operations of a process, as tables, and the meaning of the numbers in them.

The work of a stream is numbered 1, 2, … in order. What is known to be done is a vector with one such number per stream
(a vector clock). For each host thread and stream, the synchronizations that cover some work are kept on a stack, the
last one on top. Those below cover more and came earlier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

Integers = NDArray[Any]

ENDED, ACCESSED, CLOCK_READ, STARTED = 0, 1, 2, 3
"""Kinds of events, in the order in which events at the same time happen."""

SCOPE_NONE, SCOPE_CONTEXT, SCOPE_STREAM, SCOPE_EVENT = 0, 1, 2, 3
"""Values of `ffm.model.necessity.program.Scope`; all others cover nothing."""

NOTHING, WORK, RECORD, WAIT_EVENT, RELEASE, HOLD = 0, 1, 2, 3, 4, 5
"""Values of `ffm.model.necessity.program.Action`."""

BOTH, MARKS, LOOKS = 0, 1, 2
"""Values of `ffm.model.necessity.program.Side`."""

INDEPENDENT, BLOCKING, LEGACY = 0, 1, 2
"""Values of `ffm.model.necessity.program.StreamKind`."""

NEED_ORDER, NEED_TIMER, NEED_RELEASE, NEED_MAYBE_TIMER, NEED_HANDOVER = -1, -2, -3, -4, -5
"""Placeholders in a need where others have the number of a use."""

OF_OTHERS, OF_USES, OF_ORDER, OF_CLOCKS = 0, 1, 2, 3
"""Which needs a sweep determines: of uses of which it is unknown what they come after; of all other uses; of later work
and of releases; of reads of clocks.
"""

NOT_COMPARED, MAYBE_COMPARED, COMPARED = 0, 1, 2
"""Values of `ffm.model.necessity.program.Comparison`."""

USE, RELIED_ON, WAITED_BY, RELIED_AT, USED_STREAM, USED = range(6)
"""Columns of the needs: the use (or a `NEED_...`; what is always used is numbered after the uses and clocks), the
synchronization that it relies on, the host thread of that, the time of the use, and the work that it needs, as a stream
and a number up to which.
"""

COLUMNS_OF_NEEDS = 6

SYNCHRONIZATION, COVERED_STREAM, COVERED, BELOW, PREVIOUS, ENDED_AT, BEFORE = range(7)
DEPTH, FAR_PREVIOUS, CERTAIN, SURELY, SURELY_BEFORE = range(7, 12)
"""Columns of the covers: who covers, which stream, its work up to which number, the next cover on the stack, the
previous cover of the same thread and stream, when it ended, up to which number the thread's judged waits had covered
before, how many covers of the same thread and stream are before it, one of these, far back (E. Myers, "An applicative
random-access stack", Information Processing Letters 17, 1983), what it certainly covers, a `..._WORK`, up to which
number that is all work of the stream, and up to which number the thread's judged waits had certainly covered all work
before.
"""

COLUMNS_OF_COVERS = 12

NO_WORK, OWN_WORK, ALL_WORK = 0, 1, 2
"""What a wait certainly covers, however threads are scheduled: nothing, because the work is covered only by an order
that other threads made, on the GPU or by their waits; the work of the thread itself, and of those that it is ordered
after; all that it did cover in this run. Other work it covers only because another thread happened to be early.
"""

NOBODY, SEVERAL = -1, -2
"""Instead of a thread."""

LOOKED_AT = 64
"""Among this many of a thread's last waits before a use, one must certainly cover what is used, or none counts."""

FIRST_ROOM = 1024
"""Initial number of rows of a table that grows."""


class Events(NamedTuple):
    """What happens, in order of time."""

    kind: Integers
    row: Integers
    """Row of an operation; for `ACCESSED` and `CLOCK_READ`, the number of a use."""
    time: Integers


class Program(NamedTuple):
    """The columns of the operations and of the streams; `ffm.model.necessity.program.Operations` describes them."""

    start: Integers
    thread: Integers
    scope: Integers
    stream: Integers
    context: Integers
    event: Integers
    action: Integers
    stream_kind: Integers
    stream_context: Integers
    legacy_of: Integers
    """The legacy default stream of each context, or -1."""
    apart: Integers
    """Shape (streams, streams): whether no memory is used by work of both."""
    memory_first: Integers
    """Which memory operations use, as in `ffm.model.necessity.program.UsedMemory`; empty if each may use any."""
    memory: Integers
    memory_writes: Integers
    memory_side: Integers
    any_memory: Integers
    memories: int
    in_order: Integers
    """Shape (streams, streams): whether all work of both that shares memory comes in one order, however threads are
    scheduled.
    """
    judged: Integers
    callers: Integers
    """The threads that wait, or put something on the GPU: a program may have many others."""
    threads: int
    events: int


class Reliance(NamedTuple):
    """What relies on the ends of operations: the uses, then the reads of clocks, which are numbered after them."""

    operation: Integers
    """The operation used or, for a clock, the thread that read it."""
    slot: Integers
    """Uses of the same operation have the same slot."""
    slots: int
    own_source: Integers
    """For uses, whether the wait of the operation itself protects the memory, unless another one stays anyway."""
    comparison: Integers
    """For reads of clocks, a value of `ffm.model.necessity.program.Comparison`."""
    accessor: Integers
    """For uses, the thread that accesses, as `ffm.model.necessity.program.Uses` has it."""
    knowledge: Integers
    """For uses, a row of `known`, or -1 if the thread knows nothing of others."""
    knowledge_at_start: Integers
    """The same for operations, when they start."""
    known: Integers
    """Shape (k, threads): up to which time what a thread did comes before, however threads are scheduled. Nothing is
    known of threads beyond its last column.
    """
    always: Integers
    """Operations on whose ends something relies at an unknown time, stream by stream."""
    always_start: Integers
    """Those of stream `s` are `always[always_start[s] : always_start[s + 1]]`."""


class Order(NamedTuple):
    """What is known about the order of work on the GPU."""

    position: Integers
    """The number of each operation in its stream. Records and waits for events are numbered too."""
    length: Integers
    """The last number of each stream."""
    behind: Integers
    """Shape (streams, streams): what the next work of a stream comes after."""
    surely_behind: Integers
    """The same without what it comes after only because threads happened to wait in time."""
    shared_behind: Integers
    """For streams that several threads share: what the work `shared_by` certainly comes after."""
    shared_by: Integers
    """Shape (streams, streams): a row, or -1. What comes after it certainly comes after the same."""
    version: Integers
    """How many operations each stream has received so far."""
    joined: Integers
    """For each stream, the version of its context's legacy stream that its work was last ordered after."""
    joined_by_legacy: Integers
    """For each stream, its version that the work of its context's legacy stream was last ordered after."""
    recorded: Integers
    """Shape (events, streams): what the last record of an event comes after."""
    surely_recorded: Integers
    recorder: Integers
    """The row of the last record of an event."""
    was_recorded: Integers
    recorded_alone: Integers
    """Whether all that other threads had enqueued certainly came before the last record of an event."""
    alone: Integers
    """The thread that puts all of a stream's work there in the whole run; `NOBODY`, or `SEVERAL`, if it is not one."""
    row: Integers
    """The operation with each number, stream by stream as in `last_work`; empty if there is one thread."""
    last_work: Integers
    """The last real work up to each number, stream by stream."""
    before_stream: Integers
    """Where a stream starts in `last_work`."""
    used: Integers
    """Shape (memories, streams): the number of the last work of each stream that uses memory; 0 for none."""
    written: Integers
    """Likewise, of the last that may write it."""
    used_anything: Integers
    """Shape (streams,): the number of the last work that may use any memory; 0 for none."""


class Waited(NamedTuple):
    """What host threads have waited for. Each has shape (threads, streams)."""

    covering: Integers
    """By the current wait."""
    surely_covering: Integers
    """The same without work that it covers only because threads happened to wait in time."""
    most: Integers
    """By all waits so far."""
    stays: Integers
    """By those that stay in any case."""
    top: Integers
    """The top of the stack of covers, or -1."""
    latest: Integers
    """The latest cover, or -1."""
    stayer: Integers
    """The cover that set `stays`, or -1."""
    most_of_all: Integers
    """Shape (streams,): by all waits of all threads so far."""
    most_judged: Integers
    """By all waits so far that get a verdict."""
    certain: Integers
    """What the current wait certainly covers, a `..._WORK`."""
    enqueued_at: Integers
    """Shape (threads,): when each thread last put something on a stream."""
    surely: Integers
    """Up to which number all work is certainly covered by waits so far, however threads are scheduled."""
    surely_judged: Integers
    """The same of waits that get a verdict."""
    surely_by: Integers
    """The last cover that covers all of `surely`, or -1."""
    handed_high: Integers
    handed_low: Integers
    handed: Integers
    """Of the covers between these two, all up to this work were relied on by other threads; -1 for none."""


class Held(NamedTuple):
    """What the CPU may hold back on each stream: the operations of `HOLD` that nobody is known to have waited for."""

    since: Integers
    """The number of the first one, or 0."""
    upto: Integers
    """The number of the last one."""
    behind: Integers
    """Shape (streams, streams): what the first one comes after."""


class Credited(NamedTuple):
    """What needs have been noted already, so that they are noted once."""

    ordered_at: Integers
    """Shape (threads, streams): how many waits had ended when a thread's work on a stream was last ordered after those
    of others.
    """
    covers_at: Integers
    """How many covers there were at that time."""
    covers_between: Integers
    """Shape (streams, streams): how many there were when a stream's work was last ordered after that of another."""
    released: Integers
    """Shape (threads, streams): the work that each thread's releases have been credited for."""
    covers_at_release: Integers
    """How many covers there were at each thread's last release."""
    clock: Integers
    """Shape (2 * threads, streams): what was known at the last read of a clock by each thread; then, at its last read
    by the program's own code.
    """
    always_next: Integers
    """Shape (threads, streams): the next of `Reliance.always` that no wait of the thread has been credited with."""
    satisfied: Integers
    """Shape (slots, 2 * threads): whether each thread's accesses certainly come after a wait that was credited; then,
    whether a wait of each thread was credited for accesses that may come after it.
    """
