"""Which code of a driver library belongs to which exported function.

A driver's export is often a stub that jumps through a table slot to the implementation. So the export never appears in
the stack of a blocked thread; the implementation does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ffm.driver.call_graph import JUMPS, CallGraph, Reference
from ffm.driver.library import Library

LARGEST_STUB = 64
"""Bytes; the stubs of NVIDIA's builds 470 to 555 have 30 to 62."""
_THROUGH_SLOT = (Reference.SLOT_CALL, Reference.SLOT_JUMP, Reference.SLOT_LOAD)


@dataclass(frozen=True, slots=True)
class Implementation:
    """A range of code that runs on behalf of exported functions only."""

    start: int
    end: int
    names: tuple[str, ...]
    """The exports, sorted; more than one if they share the code."""


def implementations(library: Library, graph: CallGraph) -> tuple[Implementation, ...]:
    """Return the ranges that belong to exports, sorted by start and disjoint.

    A range is the export itself, what its stub leads to, or what only these reach, and only by jumps: cold parts and
    tail-called bodies.
    """
    functions = graph.functions
    if not library.exports:
        return ()
    names = np.array(list(library.exports))
    numbers = functions.starting_at(np.array(list(library.exports.values()), dtype=np.int64))
    pointed_at = set(functions.starting_at(library.slot_targets).tolist())
    callers = _callers(graph)
    owners: dict[int, set[str]] = {}
    for name, number in zip(names.tolist(), numbers.tolist(), strict=True):
        if number < 0:
            continue
        body = _body(graph, number)
        for part in {number} | _family(graph, body, callers, pointed_at):
            owners.setdefault(part, set()).add(name)
    return tuple(
        Implementation(int(functions.starts[part]), int(functions.ends[part]), tuple(sorted(owners[part])))
        for part in sorted(owners)
    )


def _body(graph: CallGraph, function: int) -> int:
    """Return the target of the stub `function`, or `function` if it is not a stub."""
    rows = graph.references_of(function)
    size = graph.functions.ends[function] - graph.functions.starts[function]
    if rows.stop - rows.start != 1 or size > LARGEST_STUB or graph.kinds[rows][0] not in _THROUGH_SLOT:
        return function
    return int(graph.callees[rows][0])


def _callers(graph: CallGraph) -> dict[int, set[int]]:
    """Return, for each function, all functions that refer to it."""
    callers: dict[int, set[int]] = {}
    for caller, callee in zip(graph.callers.tolist(), graph.callees.tolist(), strict=True):
        callers.setdefault(callee, set()).add(caller)
    return callers


def _family(graph: CallGraph, body: int, callers: dict[int, set[int]], pointed_at: set[int]) -> set[int]:
    """Return `body` and the functions that only it and the rest of the result refer to, by jumps."""
    family = {body}
    waiting = [body]
    while waiting:
        rows = graph.references_of(waiting.pop())
        for callee, kind in zip(graph.callees[rows].tolist(), graph.kinds[rows].tolist(), strict=True):
            if kind in JUMPS and callee not in family and callee not in pointed_at and callers[callee] <= family:
                family.add(callee)
                waiting.append(callee)
    return family
