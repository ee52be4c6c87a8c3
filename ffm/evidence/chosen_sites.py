"""What the memory stage must watch if only some waits and transfers are to be measured.

A program can rely on a wait only for the work that it covers. If an earlier wait of the same thread already covers that
work, and stays, nothing needs the later one for it. So of the work that a chosen wait covers, only what it is the first
to cover is watched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.program_order import operations_of
from ffm.model.necessity.program import Action, Operations, Scope
from ffm.results.columnar.columns import Columns

_NEVER = np.iinfo(np.int64).max


def stacks_to_watch(columns: Columns, chosen: NDArray[np.bool_]) -> list[int]:
    """Return the stacks whose operations must be watched and hashed so that all is known about the chosen ones.

    Args:
        columns: the operations of a traced run.
        chosen: whether each of its stacks is chosen, by number.
    """
    watched = chosen.copy()
    for process in np.unique(columns["process"]):
        rows = np.flatnonzero(columns["process"] == process)
        rows = rows[np.argsort(columns["start"][rows], kind="stable")]
        part = {name: column[rows] for name, column in columns.items()}
        operations = operations_of(part)
        first = _covered_first(operations, chosen[part["stack"]])
        watched[part["stack"][first]] = True
    return np.flatnonzero(watched).tolist()


def _covered_first(operations: Operations, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which operations a chosen wait may be the first of its thread to cover; shape (n,).

    Any wait may cover any earlier work, because events order streams. A wait for the context, or for the stream of the
    work, surely does.
    """
    found = np.zeros(len(operations.start), bool)
    works = np.flatnonzero(np.isin(operations.action, (Action.WORK, Action.HOLD)))
    waits = operations.scope != Scope.NONE
    for thread in np.unique(operations.thread[waits & chosen]):
        mine = waits & (operations.thread == thread)
        reached = _next_end(operations, mine & chosen, operations.start[works])
        whole = mine & ~chosen & (operations.scope == Scope.CONTEXT)
        own = mine & ~chosen & (operations.scope == Scope.STREAM)
        covered = np.full(len(works), _NEVER)
        for context in np.unique(operations.context[whole]):
            inside = operations.context[works] == context
            ends = _next_end(operations, whole & (operations.context == context), operations.start[works[inside]])
            covered[inside] = np.minimum(covered[inside], ends)
        for stream in np.unique(operations.stream[own]):
            inside = operations.stream[works] == stream
            ends = _next_end(operations, own & (operations.stream == stream), operations.start[works[inside]])
            covered[inside] = np.minimum(covered[inside], ends)
        found[works[(reached < _NEVER) & (reached <= covered)]] = True
    return found


def _next_end(operations: Operations, waits: NDArray[np.bool_], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the first of some waits ends that begins at each time or later."""
    rows = np.flatnonzero(waits)
    place = np.searchsorted(operations.start[rows], after)
    return np.append(operations.end[rows], _NEVER)[place]
