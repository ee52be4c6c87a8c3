"""Call stacks from nesting: whatever contains a call in time, on the same thread, called it.

Profilers record Python functions, operators and ranges of a program as intervals. Those around a call, from the
innermost to the outermost, are its stack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run
from ffm.sources.nesting_kernels import enclose


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals that may nest; all columns have the same length. Times in nanoseconds."""

    process: NDArray[np.int64]
    thread: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)


def chains_of_calls(
    spans: Spans,
    process: NDArray[np.int64],
    thread: NDArray[np.int64],
    start: NDArray[np.int64],
) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
    """Return, for each call, its chain (-1: nothing is around it), and for each chain the names of its spans, innermost
    first.

    A span is around a call that begins within it: times that were rounded can let a call end after its caller. Calls
    with spans of the same names around them share a chain.
    """
    count = len(spans)
    calls = np.arange(len(start)) + count
    processes = np.concatenate((spans.process, process))
    threads = np.concatenate((spans.thread, thread))
    begins, ends = np.concatenate((spans.start, start)), np.concatenate((spans.end, start))
    is_call = np.arange(len(begins)) >= count
    order = np.lexsort((-ends, is_call, begins, threads, processes))
    _, group = np.unique(np.column_stack((processes, threads)), axis=0, return_inverse=True)
    outer = np.full(len(order), -1, np.int64)
    depth = np.zeros(len(order), np.int64)
    run(enclose, len(order), order, group.reshape(-1).astype(np.int64), begins, ends, count, outer, depth)
    node = np.full(count, -1, np.int64)
    names: list[int] = []
    above: list[int] = []
    by_depth = np.argsort(depth[:count], kind="stable")
    for spans_of_depth in np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1) if count else []:
        parent = outer[spans_of_depth]
        key = np.column_stack((np.where(parent >= 0, node[parent.clip(0)], -1), spans.name[spans_of_depth]))
        distinct, place = np.unique(key, axis=0, return_inverse=True)
        node[spans_of_depth] = place.reshape(-1) + len(names)
        above += distinct[:, 0].tolist()
        names += distinct[:, 1].tolist()
    holder = outer[calls] if len(calls) else np.zeros(0, np.int64)
    of_call = np.where(holder >= 0, node[holder.clip(0)] if count else -1, -1)
    used, chain = np.unique(of_call[of_call >= 0], return_inverse=True)
    found = np.full(len(calls), -1, np.int64)
    found[of_call >= 0] = chain.reshape(-1)
    return found, [_upwards(int(one), names, above) for one in used]


def _upwards(node: int, names: list[int], above: list[int]) -> tuple[int, ...]:
    chain = []
    while node >= 0:
        chain.append(names[node])
        node = above[node]
    return tuple(chain)
