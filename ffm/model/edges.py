"""What cannot be judged at the edges of a measured portion of a run.

A wait may be needed for what lies outside: it may cover work that was issued before, or protect data that is used
afterwards. Neither matters if other waits of the same thread stay that cover all of that: one before it in the same
stretch, and one after it. So the first and the last wait that cover everything are not judged and count as needed;
those in between are judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.necessity.program import Action, Operations, Scope, StreamKind

FAR = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Stretches:
    """The measured stretches of a process, in order of time. Columns of equal length; nanoseconds."""

    begin: NDArray[np.int64]
    settled: NDArray[np.int64]
    """The time from which all calls are recorded, at or after the start."""
    end: NDArray[np.int64]
    judged_begin: NDArray[np.int64]
    judged_end: NDArray[np.int64]
    """What is judged of it; the rest shows what lies at its edges."""
    from_the_start: NDArray[np.bool_]
    """Whether no work was issued before it."""
    to_the_end: NDArray[np.bool_]
    """Whether it lasts to the end of the run, after which nothing can come."""

    def __len__(self) -> int:
        return len(self.begin)


def stretch_of(
    stretches: Stretches, start: NDArray[np.int64], end: NDArray[np.int64], *, judged: bool
) -> NDArray[np.int64]:
    """Return the stretch in which each operation lies, if `judged` in the judged part of it; otherwise -1."""
    if not len(stretches):
        return np.full(len(start), -1, np.int64)
    place = np.searchsorted(stretches.begin, start, side="right") - 1
    of = np.maximum(place, 0)
    first = stretches.judged_begin if judged else stretches.begin
    last = stretches.judged_end if judged else stretches.end
    inside = (place >= 0) & (start >= first[of]) & (end <= last[of])
    return np.where(inside, place, -1)


def judgeable(operations: Operations, stretches: Stretches, stays: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which operations lie so far inside a stretch that what is outside cannot rely on them. Shape (n,).

    `stays` are those that no other finding removes, as it does a transfer that repeats another.
    """
    found = np.zeros(len(operations.start), np.bool_)
    inside = stretch_of(stretches, operations.start, operations.end, judged=True)
    for stretch in np.unique(inside[inside >= 0]).tolist():
        begin, end = stretches.settled[stretch], stretches.end[stretch]
        low = int(np.searchsorted(operations.start, stretches.begin[stretch]))
        high = int(np.searchsorted(operations.start, end, side="right"))
        rows = np.arange(low, high)
        whole = (operations.start[rows] >= begin) & (operations.end[rows] <= end)
        independent = not (operations.action[rows] == Action.WAIT_EVENT).any()
        for thread in np.unique(operations.thread[rows]).tolist():
            mine = rows[operations.thread[rows] == thread]
            waits = rows[whole & stays[rows] & (operations.thread[rows] == thread)]
            edges = bool(stretches.from_the_start[stretch]), bool(stretches.to_the_end[stretch])
            _judge(found, operations, mine, waits, rows, independent, edges)
    return found & (inside >= 0)


def _judge(
    found: NDArray[np.bool_],
    operations: Operations,
    mine: NDArray[np.int64],
    waits: NDArray[np.int64],
    rows: NDArray[np.int64],
    independent: bool,
    edges: tuple[bool, bool],
) -> None:
    """Set which of a thread's rows have a wait before and one after them that cover what is outside.

    A wait for a stream does so for waits for that stream, unless events order it after others (`independent` is false).
    `edges` is whether nothing comes before and after the stretch.
    """
    scope = operations.scope
    on_stream = np.isin(scope[mine], (Scope.STREAM, Scope.STAGING)) & independent
    before, after = np.full(len(mine), edges[0]), np.full(len(mine), edges[1])
    for context in np.unique(operations.context[waits]).tolist():
        all_of = waits[(operations.context[waits] == context) & (scope[waits] == Scope.CONTEXT)]
        here = operations.context[mine] == context
        before |= here & (operations.start[mine] >= operations.end[all_of].min(initial=FAR))
        after |= here & (operations.end[mine] <= operations.start[all_of].max(initial=-1))
    for stream in np.unique(operations.stream[waits[scope[waits] == Scope.STREAM]]).tolist():
        all_of = waits[(operations.stream[waits] == stream) & (scope[waits] == Scope.STREAM)]
        here = on_stream & (operations.stream[mine] == stream)
        after |= here & (operations.end[mine] <= operations.start[all_of].max(initial=-1))
        if stream >= 0 and operations.streams.kind[stream] == StreamKind.BLOCKING:
            # Work of this stream comes after that of the default stream, which a wait for it covers only then.
            works = rows[np.isin(operations.action[rows], (Action.WORK, Action.HOLD))]
            works = works[operations.stream[works] == stream]
            all_of = all_of[operations.start[all_of] > operations.start[works].min(initial=FAR)]
        before |= here & (operations.start[mine] >= operations.end[all_of].min(initial=FAR))
    found[mine] = before & after
