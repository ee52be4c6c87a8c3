"""Small programs of threads that hand results to each other in ways that ffm sees or does not see, and what must hold.

A flag is set by one or more threads ("tell"), and a thread that awaits it goes on once it is set: it comes after one of
the setters, and which one is chance. So an execution chooses one "tell" for each "await", and a program is right if,
whatever is chosen, every read comes after a wait that comes after the copy that it reads. So does every launch: it
reads on the GPU, in a stream that nothing but waits orders after those of the copies.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.necessity.program import (
    Action,
    Handovers,
    Operations,
    Role,
    Scope,
    StreamKind,
    Streams,
    UsedMemory,
    Uses,
)

STREAMS, FLAGS, STEP_NS = 2, 3, 10

NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread does next."""

    what: str
    """copy, wait (for a stream), device (wait for all), tell, await, read, or launch."""
    which: int = 0
    """The stream, the flag, or for a read or launch the number of the copy, in order of threads."""


Program = list[list[Step]]
"""The steps of each thread."""
Place = tuple[int, int]
"""A thread, and the number of one of its steps."""


def places(program: Program, *what: str) -> list[Place]:
    """Return where the program does one of these, in order of threads."""
    return [
        (thread, number)
        for thread, steps in enumerate(program)
        for number, step in enumerate(steps)
        if step.what in what
    ]


def sound(program: Program) -> Program:
    """Return the program without the reads and launches that would be wrong with all its waits."""
    wrong = set(wrong_reads(program, places(program, "wait", "device")))
    return [
        [step for number, step in enumerate(steps) if (thread, number) not in wrong]
        for thread, steps in enumerate(program)
    ]


def wrong_reads(program: Program, kept: Collection[Place]) -> list[Place]:
    """Return the reads and launches that may come too early if only these waits are left."""
    copies = places(program, "copy")
    found: set[Place] = set()
    for before in _executions(program):
        for read in places(program, "read", "launch"):
            number = program[read[0]][read[1]].which
            if number >= len(copies):
                found.add(read)
                continue
            copy = copies[number]
            stream = program[copy[0]][copy[1]].which
            covering = [
                place
                for place in kept
                if program[place[0]][place[1]] in (Step("wait", stream), Step("device")) and copy in before[place]
            ]
            if not any(place in before[read] for place in covering):
                found.add(read)
    return sorted(found)


def _executions(program: Program) -> Iterator[dict[Place, set[Place]]]:
    """Yield, for each possible choice, what comes before each step however threads are scheduled."""
    awaiting = places(program, "await")
    tellings = [
        [place for place in places(program, "tell") if program[place[0]][place[1]].which == program[one][two].which]
        for one, two in awaiting
    ]
    for choice in itertools.product(*tellings):
        order = _ordered(program, dict(zip(awaiting, choice, strict=True)))
        if order is not None:
            yield order


def _ordered(program: Program, told_by: dict[Place, Place]) -> dict[Place, set[Place]] | None:
    """Return what comes before each step, itself included; None if the choice would be a circle."""
    before: dict[Place, set[Place]] = {}
    at = [0] * len(program)
    while any(at[thread] < len(steps) for thread, steps in enumerate(program)):
        moved = False
        for thread, steps in enumerate(program):
            place = (thread, at[thread])
            if at[thread] == len(steps) or (place in told_by and told_by[place] not in before):
                continue
            before[place] = {place} | before.get((thread, at[thread] - 1), set())
            if place in told_by:
                before[place] |= before[told_by[place]]
            at[thread] += 1
            moved = True
        if not moved:
            return None
    return before


def run_of(program: Program, seed: int) -> list[Place] | None:
    """Return the steps in the order of one execution; None if it hangs."""
    chance = random.Random(seed)
    at = [0] * len(program)
    told: set[int] = set()
    run: list[Place] = []
    while True:
        left = [thread for thread, steps in enumerate(program) if at[thread] < len(steps)]
        if not left:
            return run
        ready = [
            thread
            for thread in left
            if program[thread][at[thread]].what != "await" or program[thread][at[thread]].which in told
        ]
        if not ready:
            return None
        thread = chance.choice(ready)
        step = program[thread][at[thread]]
        if step.what == "tell":
            told.add(step.which)
        run.append((thread, at[thread]))
        at[thread] += 1


def operations_of_run(program: Program, run: list[Place], *, shared: bool = False, told: bool = False) -> Operations:
    """Return the steps of a run as operations; those that call no driver do nothing.

    Each thread launches on a stream of its own, or all on one that is `shared`. If it is `told` what they use, each
    copy writes memory of its own, which launches read.
    """
    steps = [program[thread][number] for thread, number in run]
    count, streams = len(run), STREAMS + len(program)
    start = STEP_NS * np.arange(count, dtype=np.int64)
    scope = {"wait": Scope.STREAM, "device": Scope.CONTEXT}
    return Operations(
        start=start,
        end=start + STEP_NS // 2,
        thread=np.array([thread for thread, _ in run], np.int64),
        scope=np.array([scope.get(step.what, Scope.NONE) for step in steps], np.uint8),
        judged=np.array([step.what in scope for step in steps], np.bool_),
        stream=np.array(
            [_stream(step, 0 if shared else thread) for step, (thread, _) in zip(steps, run, strict=True)], np.int64
        ),
        context=np.zeros(count, np.int64),
        event=np.full(count, -1, np.int64),
        action=np.array(
            [Action.WORK if step.what in ("copy", "launch") else Action.NOTHING for step in steps], np.uint8
        ),
        streams=Streams(
            np.full(streams, StreamKind.INDEPENDENT, np.uint8),
            np.zeros(streams, np.int64),
            used=_used_memory(program, run) if told else None,
        ),
    )


def _used_memory(program: Program, run: list[Place]) -> UsedMemory:
    """Return what copies write and launches read."""
    copies = places(program, "copy")
    what = [program[thread][number].what for thread, number in run]
    memory = [
        copies.index(place) if one == "copy" else program[place[0]][place[1]].which
        for place, one in zip(run, what, strict=True)
        if one in ("copy", "launch")
    ]
    working = np.array([one in ("copy", "launch") for one in what], np.bool_)
    return UsedMemory(
        np.cumsum([0, *working]),
        np.array(memory, np.int64),
        np.array([one == "copy" for one in what], np.bool_)[working],
        np.zeros(int(working.sum()), np.uint8),
        np.zeros(len(run), np.bool_),
    )


def _stream(step: Step, thread: int) -> int:
    """Return the stream of a step, which a thread may launch on."""
    if step.what == "launch":
        return STREAMS + thread
    return step.which if step.what in ("copy", "wait") else 0


def uses_of_run(program: Program, run: list[Place]) -> Uses:
    """Return the reads of a run."""
    copies = places(program, "copy")
    reads = [(row, place) for row, place in enumerate(run) if program[place[0]][place[1]].what == "read"]
    return Uses(
        operation=np.array([run.index(copies[program[one][two].which]) for _, (one, two) in reads], np.int64),
        time=np.array([STEP_NS * row for row, _ in reads], np.int64),
        role=np.full(len(reads), Role.RESULT, np.uint8),
        thread=np.array([thread for _, (thread, _) in reads], np.int64),
    )


def handovers_of_run(program: Program, run: list[Place], seen: Collection[int]) -> Handovers:
    """Return what threads learn from those seen flags that a single step sets."""
    threads = len(program)
    known = np.full((threads, threads), NEVER, np.int64)
    told: dict[int, list[NDArray[np.int64]]] = {}
    learned: list[tuple[int, int, NDArray[np.int64]]] = []
    for row, (thread, number) in enumerate(run):
        step, time = program[thread][number], STEP_NS * row + STEP_NS // 2
        if step.what == "tell":
            told.setdefault(step.which, []).append(np.where(np.arange(threads) == thread, time, known[thread]))
        if step.what == "await" and step.which in seen:
            tellers = [place for place in places(program, "tell") if program[place[0]][place[1]].which == step.which]
            if len(tellers) == 1:
                known[thread] = np.maximum(known[thread], told[step.which][0])
                learned.append((thread, time, known[thread].copy()))
    return Handovers(
        thread=np.array([thread for thread, _, _ in learned], np.int64),
        time=np.array([time for _, time, _ in learned], np.int64),
        known=np.array([state for _, _, state in learned], np.int64).reshape(len(learned), threads),
    )
