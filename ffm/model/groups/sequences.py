"""Sequences of problem operations, and parts of them (dissertation 5.2; Figures 5.2 and 5.4).

A sequence starts at a problem and extends to the thread's next necessary synchronization. Nothing in between needs a
synchronization, so what one operation could not save is carried to the next. A sequence contains the rows with a
problem; launches, allocations and transfers without one are in between but not part of it. A misplaced synchronization
is necessary, only too early, and so is the wait of an unnecessary transfer whose synchronization is needed: such a row
ends the sequence before it and starts the next.

Instances with the same distinct call stacks, in order of first appearance, are one sequence that recurs. Each distinct
call stack is one numbered line, however often an instance passes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ffm.model import kernels
from ffm.model.compiled import run
from ffm.model.timeline import Problem, Timeline


@dataclass(frozen=True, slots=True)
class Line:
    """A numbered operation of a sequence. `count` is over all recurrences; `problem` combines its problems."""

    site: int
    count: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class FoundSequence:
    """A sequence of the program, however often it recurs. `ends_at` is that of the first instance; None means the
    thread's end.
    """

    lines: list[Line]
    recurrences: int
    ends_at: int | None


@dataclass(frozen=True, slots=True)
class Membership:
    """Which rows of a timeline belong to which sequence, in four bytes per row.

    `line` contains each row's line, or -1 if it is in no sequence. Lines are numbered through all sequences, so
    sequence i has the lines from `offsets[i]` to before `offsets[i + 1]`.
    """

    line: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def none(cls) -> Membership:
        """Return the membership of no rows in no sequences."""
        return cls(np.empty(0, np.int32), np.zeros(1, np.int64))

    def sequence_of_line(self) -> NDArray[np.int32]:
        """Return the sequence of each line, shape (lines,)."""
        sequences = np.arange(len(self.offsets) - 1, dtype=np.int32)
        return np.repeat(sequences, np.diff(self.offsets))

    def rows_of(self, sequence: int, start: int, end: int) -> NDArray[np.bool_]:
        """Return the rows of lines `start` to `end` of a sequence, both included and from 0, over all recurrences."""
        first = self.offsets[sequence]
        chosen: NDArray[np.bool_] = self.line >= first + start
        chosen &= self.line <= first + end
        return chosen

    def reorder(self, order: NDArray[np.integer]) -> Membership:
        """Return the membership when only the sequences in `order` remain, in that order; rows of others are in none.

        Works in place because the column is large: do not use this membership afterwards.
        """
        offsets = offsets_of(np.diff(self.offsets)[order])
        new_line = np.full(self.offsets[-1], -1, np.int32)
        for begin, sequence in zip(offsets, order, strict=False):
            part = slice(self.offsets[sequence], self.offsets[sequence + 1])
            new_line[part] = np.arange(begin, begin + part.stop - part.start)
        run(kernels.relabel, len(self.line), self.line, new_line)
        return Membership(self.line, offsets)


def offsets_of(lengths: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where each sequence's lines start, and finally where they end, for sequences of these lengths."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


class FoundSequences(Sequence[FoundSequence]):
    """The sequences of a timeline, described one by one on demand: irregular programs have very many."""

    def __init__(
        self,
        offsets: NDArray[np.int64],
        lines: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]],
        recurrences: NDArray[np.int64],
        ends: NDArray[np.int32],
    ) -> None:
        self._offsets, self._lines, self._recurrences, self._ends = offsets, lines, recurrences, ends

    def __len__(self) -> int:
        return len(self._recurrences)

    @overload
    def __getitem__(self, index: int) -> FoundSequence: ...
    @overload
    def __getitem__(self, index: slice) -> list[FoundSequence]: ...
    def __getitem__(self, index: int | slice) -> FoundSequence | list[FoundSequence]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        part = slice(self._offsets[number], self._offsets[number + 1])
        columns = (column[part].tolist() for column in self._lines)
        return FoundSequence(
            [Line(site, count, Problem(problem)) for site, count, problem in zip(*columns, strict=True)],
            int(self._recurrences[number]),
            int(self._ends[number]) if self._ends[number] >= 0 else None,
        )


def find_sequences(timeline: Timeline, sites: int) -> tuple[Sequence[FoundSequence], Membership]:
    """Find the sequences of a timeline, in order of first appearance. One pass over the rows.

    Args:
        timeline: the operations.
        sites: the number of call stacks that `timeline.site` refers to.
    """
    line = np.empty(len(timeline), np.int32)
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
        line,
    )
    found = FoundSequences(offsets, (line_site, line_count, line_problem), recurrences, ends)
    return found, Membership(line, offsets)
