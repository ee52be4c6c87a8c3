"""Sequences of problem operations, and parts of them (dissertation 5.2; Figures 5.2 and 5.4).

A sequence starts at a problem and runs to the thread's next necessary synchronization; nothing between needs
a synchronization, so that what one of them could not save is carried to the next. It holds the rows with a
problem; launches, allocations and transfers without one lie between and are no part of it. A misplaced
synchronization is necessary, only too early, and so is the wait of an unnecessary transfer whose
synchronization is needed: such a row ends the sequence before it and begins the next.

Instances with the same distinct call stacks, in order of first appearance, are one sequence that recurs. Each
distinct call stack is one numbered line of it, however often an instance passes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.bound import Totals, bound_of_sequence, totals
from ffm.model.carry import carry, carry_by_group
from ffm.model.compiled import run
from ffm.model.timeline import Problem, Timeline


@dataclass(frozen=True, slots=True)
class Line:
    """A numbered operation of a sequence. `count` is over all recurrences; `problem` joins what was found."""

    site: int
    count: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class FoundSequence:
    """A sequence of the program, however often it recurs. `ends_at` is the first instance's; None: the
    thread's end."""

    lines: list[Line]
    recurrences: int
    ends_at: int | None


@dataclass(frozen=True, slots=True)
class Membership:
    """For each row of a timeline its sequence and its line there, both from 0; -1 where it is in no
    sequence."""

    sequence: NDArray[np.int32]
    position: NDArray[np.int32]


def find_sequences(timeline: Timeline, sites: int) -> tuple[list[FoundSequence], Membership]:
    """Find the sequences of a timeline, in order of first appearance. One pass over the rows.

    Args:
        timeline: the operations.
        sites: how many call stacks `timeline.site` counts.
    """
    membership = Membership(np.empty(len(timeline), np.int32), np.empty(len(timeline), np.int32))
    offsets, line_site, line_count, line_problem, recurrences, ends = run(
        kernels.find_sequences,
        len(timeline),
        timeline.thread,
        timeline.wait,
        timeline.kind,
        timeline.problem,
        timeline.site,
        timeline.occurrences,
        sites,
        membership.sequence,
        membership.position,
    )
    found = [
        FoundSequence(
            [
                Line(int(line_site[line]), int(line_count[line]), Problem(int(line_problem[line])))
                for line in range(offsets[number], offsets[number + 1])
            ],
            int(recurrences[number]),
            int(ends[number]) if ends[number] >= 0 else None,
        )
        for number in range(len(recurrences))
    ]
    return found, membership


def sequence_benefits(
    timeline: Timeline, membership: Membership, sequences: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds that fixing each whole sequence saves: by `carry`, and by `bound`. Two passes over the rows."""
    each = np.arange(sequences, dtype=np.int32)
    return (
        carry_by_group(timeline, membership.sequence, each, sequences),
        bound_of_sequence(totals(timeline, membership.sequence, each, sequences)),
    )


def in_subsequence(membership: Membership, sequence: int, start: int, end: int) -> NDArray[np.bool_]:
    """The rows of lines `start` to `end` of a sequence, both included and all from 0, over all its
    recurrences."""
    chosen: NDArray[np.bool_] = membership.sequence == sequence
    chosen &= membership.position >= start
    chosen &= membership.position <= end
    return chosen


def carry_of_subsequence(
    timeline: Timeline, membership: Membership, sequence: int, start: int, end: int
) -> float:
    """Seconds that fixing a part of a sequence saves, by `carry`; lines from 0, both included."""
    return carry(timeline, in_subsequence(membership, sequence, start, end))


def bound_of_subsequence(
    timeline: Timeline, membership: Membership, sequence: int, start: int, end: int
) -> float:
    """Seconds that fixing a part of a sequence saves, by `bound`; lines from 0, both included."""
    selected = in_subsequence(membership, sequence, start, end)
    label = selected.view(np.int8) - np.int8(1)
    operations: Totals = totals(timeline, label, np.zeros(1, np.int32), 1)
    return float(bound_of_sequence(operations)[0])
