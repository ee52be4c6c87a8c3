"""An exact simulator: a small program on CPU threads and a GPU, simulated call by call.

What a trace of the run would contain is returned as a timeline; what fixing its problems saves is determined by
simulating the fixed program. Written independently of the replay: one plain loop, times in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.timeline import Kind, Problem, Timeline

SYNC = Problem.UNNECESSARY_SYNCHRONIZATION
TRANSFER = Problem.UNNECESSARY_TRANSFER
MISPLACED = Problem.MISPLACED_SYNCHRONIZATION

LEGACY = 0
"""The number of the legacy default stream."""

NON_BLOCKING = 3
"""The number of a stream that the legacy default stream does not order."""


@dataclass(frozen=True)
class Call:
    """One driver call, the GPU work it enqueues, and the CPU work after it. `event` counts from 0. A download does
    `behind` of its `own` work after its wait.
    """

    action: Action
    kind: Kind
    own: int = 0
    gpu: int = 0
    gap: int = 0
    stream: int = LEGACY
    event: int = -1
    problem: Problem = Problem.NONE
    first_use: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Lived:
    """A run: start, duration and wait of each call (0 if it was left out), and when it ended."""

    start: list[int]
    duration: list[int]
    wait: list[int]
    end: int


def live(calls: list[Call], fixed: list[bool]) -> Lived:
    """Simulate a program of one thread; where `fixed`, the problems of a call are fixed."""
    over: dict[int, int] = {}  # when each stream's work is done
    recorded: dict[int, int] = {}
    now = 0
    starts, durations, waits = [], [], []
    moved: tuple[int, int] | None = None  # CPU work left until the first use, and what is waited for there

    def work(nanoseconds: int) -> None:
        """Let the CPU work; a moved wait happens in between."""
        nonlocal now, moved
        if moved is not None and nanoseconds >= moved[0]:
            now = max(now + moved[0], moved[1]) + nanoseconds - moved[0]
            moved = None
        else:
            now += nanoseconds
            if moved is not None:
                moved = (moved[0] - nanoseconds, moved[1])

    def enqueue(call: Call) -> int:
        before = through(call.stream)
        if call.stream not in (LEGACY, NON_BLOCKING):
            before = max(before, over.get(LEGACY, 0))
        over[call.stream] = max(now, before) + call.gpu
        return over[call.stream]

    def everything() -> int:
        return max(over.values(), default=0)

    def through(stream: int) -> int:
        """Return when all work is done that a wait for the stream covers."""
        if stream != LEGACY:
            return over.get(stream, 0)
        return max((done for number, done in over.items() if number != NON_BLOCKING), default=0)

    for call, repaired in zip(calls, fixed, strict=True):
        without_wait = repaired and bool(call.problem & SYNC)
        without_call = repaired and (
            bool(call.problem & TRANSFER) or (without_wait and call.kind == Kind.SYNCHRONIZATION)
        )
        later = repaired and bool(call.problem & MISPLACED)
        # An asynchronous download to pinned memory leaves the copying to the GPU.
        copies = min(call.behind, call.own)
        behind = 0 if without_wait or later or without_call else copies
        own = 0 if without_call else call.own - copies + behind
        began, waited = now, 0
        if call.action in (Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.LOAD_AND_ENQUEUE):
            work(own - behind)
            if not (repaired and call.problem & TRANSFER):
                enqueue(call)
        if call.action in (Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.WAIT_STREAM):
            target = through(call.stream)
        elif call.action == Action.WAIT_CONTEXT:
            target = everything()
        elif call.action == Action.WAIT_EVENT:
            target = recorded.get(call.event, 0)
        else:
            target = 0
        if later:
            left = 0 if call.action == Action.ENQUEUE_AND_WAIT else call.own
            moved = (left + call.first_use, target)
        elif target > now and not without_wait:
            waited = target - now
            now = target
        if call.action not in (Action.ENQUEUE, Action.ENQUEUE_AND_WAIT, Action.LOAD_AND_ENQUEUE):
            work(own)
        work(behind)
        if call.action == Action.WAIT_AND_ENQUEUE and not (repaired and call.problem & TRANSFER):
            enqueue(call)
        if call.action == Action.RECORD_EVENT:
            recorded[call.event] = through(call.stream)
        if call.action == Action.STREAM_WAIT_EVENT:
            over[call.stream] = max(over.get(call.stream, 0), recorded.get(call.event, 0))
        starts.append(began)
        durations.append(now - began)
        waits.append(waited)
        work(call.gap)
    return Lived(starts, durations, waits, now)


def traced(calls: list[Call]) -> tuple[Timeline, DeviceWork, NDArray[np.int64]]:
    """Return what a trace of the program shows, and the GPU's true times."""
    lived = live(calls, [False] * len(calls))
    number = len(calls)
    timeline = Timeline(
        thread=np.zeros(number, np.int32),
        start=np.array(lived.start, np.int64),
        duration=np.array(lived.duration, np.int64),
        wait=np.array(lived.wait, np.int64),
        gap=np.array([call.gap for call in calls], np.int64),
        site=np.arange(number, dtype=np.int32),
        kind=np.array([call.kind for call in calls], np.uint8),
        problem=np.array([call.problem for call in calls], np.uint8),
        first_use=np.array([call.first_use for call in calls], np.int64),
        occurrences=np.ones(number, np.int64),
    )
    streams = max((call.stream for call in calls), default=0) + 1
    uses_stream = [
        call.action not in (Action.NONE, Action.WAIT_CONTEXT, Action.WAIT_EVENT, Action.LOAD) for call in calls
    ]
    work = DeviceWork(
        action=np.array([call.action for call in calls], np.uint8),
        stream=np.array([call.stream if used else -1 for call, used in zip(calls, uses_stream, strict=True)], np.int32),
        event=np.array([call.event for call in calls], np.int32),
        partner=np.full(number, -1, np.int32),
        copied=np.zeros(number, np.int64),
        measured=np.full(number, -1, np.int64),
        process_of_thread=np.zeros(1 if number else 0, np.int32),
        legacy=np.zeros(1, np.int32),
        stream_process=np.zeros(streams, np.int32),
        independent=np.arange(streams) == NON_BLOCKING,
        events=max((call.event for call in calls), default=-1) + 1,
        after_wait=np.array([call.behind for call in calls], np.int32),
    )
    return timeline, work, np.array([call.gpu for call in calls], np.int64)


KINDS = {
    Action.NONE: Kind.OTHER,
    Action.ENQUEUE: Kind.LAUNCH,
    Action.ENQUEUE_AND_WAIT: Kind.TRANSFER,
    Action.WAIT_AND_ENQUEUE: Kind.TRANSFER,
    Action.WAIT_CONTEXT: Kind.SYNCHRONIZATION,
    Action.WAIT_STREAM: Kind.SYNCHRONIZATION,
    Action.WAIT_EVENT: Kind.SYNCHRONIZATION,
    Action.RECORD_EVENT: Kind.OTHER,
    Action.STREAM_WAIT_EVENT: Kind.OTHER,
}


@st.composite
def programs(draw: st.DrawFn, *, streams: int = 1, misplaced: bool = False, max_size: int = 14) -> list[Call]:
    """Programs with every action; with one stream, without events."""
    actions = [action for action in KINDS if streams > 1 or action not in (6, 7, 8)]
    times = st.integers(0, 6).map(lambda value: 10_000 * value)
    calls = []
    for _ in range(draw(st.integers(0, max_size))):
        action = draw(st.sampled_from(actions))
        waits = Action.ENQUEUE_AND_WAIT <= action <= Action.WAIT_EVENT
        enqueues = Action.ENQUEUE <= action <= Action.WAIT_AND_ENQUEUE
        problems = [Problem.NONE]
        if waits:
            problems.append(SYNC)
        if action in (Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE):
            problems += [TRANSFER, SYNC | TRANSFER]
        if misplaced and action in (Action.WAIT_CONTEXT, Action.WAIT_STREAM, Action.ENQUEUE_AND_WAIT):
            problems.append(MISPLACED)
        problem = draw(st.sampled_from(problems))
        own = draw(times)
        calls.append(
            Call(
                action=action,
                kind=KINDS[action],
                own=own,
                behind=min(own, draw(times)) if action == Action.ENQUEUE_AND_WAIT else 0,
                gpu=draw(times) if enqueues else 0,
                gap=draw(times),
                stream=draw(st.integers(0, streams - 1)),
                event=draw(st.integers(0, 1)) if action >= Action.WAIT_EVENT else -1,
                problem=problem,
                first_use=draw(st.integers(1, 12)) * 10_000 if problem & MISPLACED else 0,
            )
        )
    return calls


@dataclass(frozen=True)
class Member:
    """A thread of a program of several: its process, when it starts, and what it calls.

    If `within` is the number of an earlier thread, it lives within that one's gap after its row `after`, which is as
    much longer: that thread started and joined it.
    """

    process: int
    begins: int
    calls: list[Call]
    within: int = -1
    after: int = 0


def traced_together(members: list[Member]) -> tuple[Timeline, DeviceWork, NDArray[np.int64]]:
    """As `traced`, for threads that are simulated alone; those of one process use its streams and events."""
    parts = [traced(member.calls) for member in members]
    streams = 1 + max((call.stream for member in members for call in member.calls), default=0)
    events = 1 + max((call.event for member in members for call in member.calls), default=-1)
    columns = {field.name: [getattr(part, field.name) for part, _, _ in parts] for field in fields(Timeline)}
    for number, member in enumerate(members):
        start, length = columns["start"][number], columns["duration"][number] + columns["gap"][number]
        columns["thread"][number] = np.full(len(start), number, np.int32)
        if member.within < 0:
            columns["start"][number] = start + member.begins
            continue
        lasts = int(length.sum()) + 2 * member.begins
        host, row = columns["start"][member.within], member.after
        columns["gap"][member.within] = columns["gap"][member.within] + lasts * (np.arange(len(host)) == row)
        ended = host[row] + columns["duration"][member.within][row]
        columns["start"][member.within] = host + lasts * (np.arange(len(host)) > row)
        columns["start"][number] = start + ended + member.begins
    works = [work for _, work, _ in parts]
    process = np.array([member.process for member in members], np.int32)
    processes = int(process.max(initial=0)) + 1
    shift = [(streams * int(owner), events * int(owner)) for owner in process]
    work = DeviceWork(
        action=np.concatenate([one.action for one in works]),
        stream=np.concatenate(
            [np.where(one.stream >= 0, one.stream + by, -1) for one, (by, _) in zip(works, shift, strict=True)]
        ).astype(np.int32),
        event=np.concatenate(
            [np.where(one.event >= 0, one.event + by, -1) for one, (_, by) in zip(works, shift, strict=True)]
        ).astype(np.int32),
        partner=np.concatenate([one.partner for one in works]),
        copied=np.concatenate([one.copied for one in works]),
        measured=np.concatenate([one.measured for one in works]),
        process_of_thread=process,
        legacy=(streams * np.arange(processes)).astype(np.int32),
        stream_process=np.repeat(np.arange(processes, dtype=np.int32), streams),
        independent=np.tile(np.arange(streams) == NON_BLOCKING, processes),
        events=events * processes,
        after_wait=np.concatenate([one.behind for one in works]),
    )
    timeline = Timeline(**{name: np.concatenate(column) for name, column in columns.items()})
    return timeline, work, np.concatenate([gpu for _, _, gpu in parts])


@st.composite
def families(draw: st.DrawFn) -> list[Member]:
    """One to four threads of one or two processes. Some live within a gap of an earlier one of their process."""
    members: list[Member] = []
    process = 0
    for number in range(draw(st.integers(1, 4))):
        calls = draw(programs(streams=2, max_size=8).filter(bool))
        begins = 10_000 * draw(st.integers(0, 20))
        process += number > 0 and process == 0 and draw(st.integers(0, 2)) == 0
        hosts = [
            other
            for other in range(number)
            if members[other].process == process and members[other].within < 0 and len(members[other].calls) > 1
        ]
        if hosts and draw(st.booleans()):
            within = draw(st.sampled_from(hosts))
            after = draw(st.integers(0, len(members[within].calls) - 2))
            members.append(Member(process, begins, calls, within, after))
        else:
            members.append(Member(process, begins, calls))
    return members
