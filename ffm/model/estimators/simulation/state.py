"""The input and the state of a simulation of the run, in the subset of Python that Numba compiles.

Columns are those of `Timeline` and `DeviceWork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[Any]

EVERYTHING = -1
"""The scope of a wait for all streams of a process. `DEVICE` minus a device's number is that of a wait for all streams
of the device. Other waits have a stream's number; a wait for an event has that of the stream on which it was recorded.
"""
DEVICE = -2

ENGINES = 3
"""Of a device: one copies to it, one from it, and one runs kernels."""

COPIES_TO, COPIES_FROM, KERNELS = 1, 2, 3
"""The engine that work needs alone; 0 for none."""
PERHAPS_KERNELS = 4
"""A kernel of which it is not known whether others can run beside it."""


class Trace(NamedTuple):
    """The run as measured: the columns of `Timeline` and `DeviceWork` with the same names."""

    order: Columns
    """The rows by process, then by when each acts on the GPU, as in `ffm.model.visits`."""
    thread: Columns
    start: Columns
    duration: Columns
    wait: Columns
    kind: Columns
    problem: Columns
    first_use: Columns
    site: Columns
    action: Columns
    stream: Columns
    event: Columns
    partner: Columns
    copied: Columns
    after_wait: Columns
    """`DeviceWork.behind`."""
    process_of_thread: Columns
    legacy: Columns
    apart: Columns
    stream_process: Columns
    gpu_of_stream: Columns
    """The columns of `ffm.model.device.Gpus`."""
    first_gpu: Columns
    events: int
    related: bool
    """Whether any process has several threads, which may wait for each other or use each other's processors."""
    shortened: Columns
    """By how much shorter `duration` is than it was; empty if it is not."""
    engine: Columns
    """What each row's work needs alone, as `ffm.model.estimators.shared_engines.needed_engines` returns it."""


class Gpu(NamedTuple):
    """One timeline of the GPU; the columns of `ffm.model.gpu_times.timelines.GpuTimes`."""

    gpu: Columns
    left: Columns
    latency: Columns
    late_from: Columns
    """For each site, the latency from which on a wait of it was late by chance (`ffm.model.estimators.lateness`)."""
    usual: int
    """The usual latency."""
    pause: int
    """The pause between a stream's work and the next, if that is queued."""
    late: Columns
    """For each process, the latency from which on a thread woke late because others used its processor."""
    starved: Columns
    """How much longer than usual each row's call took, since others used its thread's processor; may be empty."""
    starved_after: Columns
    """How much later the thread then came to its next one; may be empty."""
    shown: Columns
    """The latencies of the likely timeline, where what removed waits woke late disappears with them; else empty."""
    late_limit: int
    """The latency from which on a wait was late, there."""
    beside: Columns
    """For how long each row's work was ready before other work of its engine was over, as measured; empty if no two
    streams need the same engine.
    """
    delays: Columns
    """For how long each row's work went on, as measured, after the engine's latest work was ready that had been
    enqueued before it; empty in the same case.
    """


class Fix(NamedTuple):
    """What is fixed."""

    members: Columns
    """Positions in `order` of the rows that the fix changes, ascending: those with problems, and the allocations whose
    memory a free leaves to them.
    """
    fixes: bool
    """Whether the rows' problems are fixed; otherwise they only count as changed."""
    needed: bool
    """Whether the rows' waits disappear although they are needed."""
    fences: bool
    """Whether what follows on other streams then waits for the work of the waits that disappear."""
    copies: bool
    """Whether a download whose wait disappears or moves still copies what it copied behind that."""


class Probes(NamedTuple):
    """Time before each row that did not belong to the program and disappears; empty if there is none."""

    time: Columns
    start: Columns
    """Receives each row's own start, and `wait` its own wait; both may be empty."""
    wait: Columns


class Manner(NamedTuple):
    """How the run is simulated."""

    strict: bool
    """A joined thread helps only if all threads joined there end earlier, and no thread follows another."""
    jump: bool
    """Each process has one stream and one thread. Stretches in which the CPU and the GPU are early by the same time are
    skipped, because there the run is as measured. Not used with probes.
    """
    set_bytes_a_nanosecond: int
    """How fast the CPU sets memory that a fix makes it set."""
    waking: int
    """At most how much of a wait's latency is the waking of its thread; during the rest, the GPU was not done yet."""
    recurs: bool
    """A thread that comes to its next wait while a removed one would still last then waits for as long as the removed
    one's latency, as if all of that were falling asleep and waking.
    """
    uploads_overlap: int
    """If an upload of few bytes from pageable memory, which waited no longer than this, waits then, it does all but
    copy meanwhile. Below 0, none does.
    """
    loads_wait: bool
    """Loading device code overlaps with no more of the GPU's work than it did."""
    kernels_wait: bool
    """Kernels overlap with no more of other streams' kernels than they did, unless these surely can run at once."""
    as_measured: bool
    """Work begins as measured, and `Gpu.beside` and `Gpu.delays` receive how long it then runs beside other work."""


class Removed(NamedTuple):
    """Of the last wait that was removed in each thread; columns of shape (threads,)."""

    target: Columns
    """When its work should be over."""
    over: Columns
    """When its work is over."""
    waking: Columns
    """How long it woke."""
    scope: Columns
    """What it waited for."""
    latency: Columns
    ended: Columns
    """When it was over in the run as measured."""


class Waiting(NamedTuple):
    """The last row of each thread, if it waits for others to come. Columns of shape (threads,)."""

    entry: Columns
    """The first entry of that row; -1 if it does not."""
    begun: Columns
    own: Columns
    """How long its call takes without the wait."""
    alone: Columns
    """When it would be over if nobody had to come."""


class Late(NamedTuple):
    """How late threads woke while others ran; columns of shape (threads,)."""

    by: Columns
    """By how much more than usual each thread's last call woke late; 0 if it did not."""
    removed: Columns
    """Whether the fix removes that wait."""
    left: Columns
    """How much of that is left to the thread's next wait, where the fix removes it."""
    begun: Columns
    """By how much earlier each thread's last call began, less what is left so."""
    after: Columns
    """For how long each thread had no processor after its last call."""


class State(NamedTuple):
    """What the simulation has come to."""

    early: Columns
    """By how much each thread is early."""
    over: Columns
    """When each stream's work is done."""
    latest: Columns
    """When all work of each process is done."""
    latest_on: Columns
    """When all work of each device is done."""
    legacy_latest: Columns
    """When all work of each process is done that its legacy stream orders."""
    engines: Columns
    """For each engine of each device, when its last pause begins and ends, and when its work is done."""
    newest: Columns
    """The row of the latest work that each engine of each device does alone; -1 if there was none."""
    recorded: Columns
    """When the work before each event is done."""
    recorded_on: Columns
    """The stream of that work."""
    ordered: Columns
    """When the work of each process is done for which later work waits on the GPU, as the CPU does not wait for it."""
    removed: Removed
    removed_last: Columns
    """The thread of each process whose removed wait is over last; -1 if there is none."""
    moved_until: Columns
    """When each thread waits for what moved waits have left to it, or -1; in the time of the run as measured."""
    moved_for: Columns
    """Until when it waits then."""
    late: Late
    last: Columns
    """The thread of each process's last call; -1 if there was none."""
    touched: Columns
    """Whether the fix changes each thread."""
    ended: Columns
    """When each thread's last call ended in the run as measured."""
    let_go: Columns
    """By how much earlier each wait for another thread (`Family.locks`) is over."""
    came: Columns
    """When the last one came to each encounter (`Family.encounters`)."""
    waiting: Waiting
    reached: Columns
    """Two numbers: the next place in the order of rows, and whether all before the next changed row is as measured."""


class Change(NamedTuple):
    """What the fix changes of a call."""

    own: int
    """How long the call then takes without its wait,"""
    behind: int
    """and how much of that comes after it, if the call waits for what it puts on a stream."""
    no_wait: bool
    no_work: bool
    later: bool
    """Whether its wait is moved to the first use."""


def at_the_start(trace: Trace, locks: int, encounters: int, as_measured: bool) -> State:
    """Return the state before the first call of a run with this many waits for locks and encounters of threads.

    `as_measured`: everything before the first changed row is skipped.
    """
    threads, streams, processes = len(trace.process_of_thread), len(trace.stream_process), len(trace.legacy)
    return State(
        early=np.zeros(threads, np.int64),
        over=np.zeros(streams + 1, np.int64),
        latest=np.zeros(processes, np.int64),
        latest_on=np.zeros(int(trace.first_gpu[processes]), np.int64),
        legacy_latest=np.zeros(processes, np.int64),
        engines=np.zeros(3 * ENGINES * int(trace.first_gpu[processes]), np.int64),
        newest=np.full(ENGINES * int(trace.first_gpu[processes]), -1, np.int64),
        recorded=np.zeros(trace.events + 1, np.int64),
        recorded_on=np.full(trace.events + 1, EVERYTHING, np.int64),
        ordered=np.zeros(processes, np.int64),
        removed=Removed(
            target=np.zeros(threads, np.int64),
            over=np.full(threads, -1, np.int64),
            waking=np.zeros(threads, np.int64),
            scope=np.zeros(threads, np.int64),
            latency=np.zeros(threads, np.int64),
            ended=np.zeros(threads, np.int64),
        ),
        removed_last=np.full(processes, -1, np.int64),
        moved_until=np.full(threads, -1, np.int64),
        moved_for=np.zeros(threads, np.int64),
        late=Late(
            by=np.zeros(threads, np.int64),
            removed=np.zeros(threads, np.bool_),
            left=np.zeros(threads, np.int64),
            begun=np.zeros(threads, np.int64),
            after=np.zeros(threads, np.int64),
        ),
        last=np.full(processes, -1, np.int64),
        touched=np.zeros(threads, np.uint8),
        ended=np.zeros(threads, np.int64),
        let_go=np.zeros(locks, np.int64),
        came=np.full(encounters, -1, np.int64),
        waiting=Waiting(
            entry=np.full(threads, -1, np.int64),
            begun=np.zeros(threads, np.int64),
            own=np.zeros(threads, np.int64),
            alone=np.zeros(threads, np.int64),
        ),
        reached=np.array([0, as_measured], np.int64),
    )
