"""When the work of many streams ends, and which of them have work that nothing has waited for, in the part of Python
that Numba compiles: a tree of maxima for each process, and lists, so that no wait looks at all streams.

A process's tree has one leaf for each of its streams, and one for work of no known stream. A node is the later of the
two below it. Changing a leaf, and finding the one that ends last, take O(log streams).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import inlined, inner

Columns = NDArray[Any]


class Streams(NamedTuple):
    """The streams of all processes. Columns with one entry for each stream, if not said otherwise."""

    leaf: Columns
    """The node of the stream in its process's tree, whose root is node 1."""
    tree: Columns
    """By process: where its tree begins. One entry more."""
    unnamed: Columns
    """By process: the node for work of no known stream."""
    first: Columns
    """By process: where its streams begin in `stream`."""
    stream: Columns
    """The streams, by process."""
    ends: Columns
    """The nodes of the trees: when the work ends."""
    ordered_ends: Columns
    """The same, but only work of streams that the legacy stream orders; 0 for the others."""
    first_pending: Columns
    """By process, twice: the first stream with work that nothing has waited for; of streams that the legacy stream
    orders, then of the others; -1 if there is none.
    """
    next_pending: Columns
    """The next such stream; -1 behind the last."""
    is_pending: Columns
    """Whether the stream is in one of these lists. It may have been waited for alone since."""


@inlined
def streams_of(stream_process: Columns, processes: int) -> Streams:
    """Return the streams without any work."""
    number = len(stream_process)
    count = np.zeros(processes, np.int64)
    leaf = np.empty(number, np.int64)
    for stream in range(number):
        leaf[stream] = count[stream_process[stream]]
        count[stream_process[stream]] += 1
    tree, first, unnamed = np.zeros((3, processes + 1), np.int64)
    for process in range(processes):
        leaves = 1
        while leaves < count[process] + 1:
            leaves *= 2
        unnamed[process] = leaves + count[process]
        tree[process + 1] = tree[process] + 2 * leaves
        first[process + 1] = first[process] + count[process]
    by_process = np.empty(number, np.int64)
    for stream in range(number):
        process = stream_process[stream]
        by_process[first[process] + leaf[stream]] = stream
        leaf[stream] += unnamed[process] - count[process]
    return Streams(
        leaf=leaf,
        tree=tree,
        unnamed=unnamed,
        first=first,
        stream=by_process,
        ends=np.zeros(tree[processes], np.int64),
        ordered_ends=np.zeros(tree[processes], np.int64),
        first_pending=np.full(2 * processes, -1, np.int64),
        next_pending=np.full(number, -1, np.int64),
        is_pending=np.zeros(number, np.bool_),
    )


@inner
def latest(streams: Streams, process: int) -> int:
    """Return when all work of a process is done."""
    return int(streams.ends[streams.tree[process] + 1])


@inner
def ordered(streams: Streams, process: int) -> int:
    """Return when all is done that the legacy stream of a process orders."""
    return int(streams.ordered_ends[streams.tree[process] + 1])


@inner
def set_end(streams: Streams, process: int, stream: int, apart: bool, end: int) -> None:
    """Let the work of a stream, or of no known one (-1), be done then. The legacy stream does not order one `apart`."""
    tree, node = streams.tree[process], streams.leaf[stream] if stream >= 0 else streams.unnamed[process]
    set_node(streams.ends, tree, node, end)
    if not apart:
        set_node(streams.ordered_ends, tree, node, end)


@inner
def set_node(ends: Columns, tree: int, node: int, end: int) -> None:
    """Set a leaf, and the nodes above it that this changes."""
    ends[tree + node] = end
    node //= 2
    while node > 0:
        later = max(ends[tree + 2 * node], ends[tree + 2 * node + 1])
        if ends[tree + node] == later:
            break
        ends[tree + node] = later
        node //= 2


@inner
def forget_unnamed(streams: Streams, process: int) -> None:
    """Forget the work of no known stream."""
    tree, node = streams.tree[process], streams.unnamed[process]
    if streams.ends[tree + node] > 0:
        set_node(streams.ends, tree, node, 0)
        set_node(streams.ordered_ends, tree, node, 0)


@inner
def stream_that_ends_last(streams: Streams, ends: Columns, process: int) -> int:
    """Return the stream of a process whose work ends last, by one of the two trees; not that of unnamed work."""
    tree, node = streams.tree[process], 1
    leaves = (streams.tree[process + 1] - tree) // 2
    while node < leaves:
        node = 2 * node if ends[tree + 2 * node] == ends[tree + node] else 2 * node + 1
    return int(streams.stream[streams.first[process] + node - leaves])


@inner
def list_pending(streams: Streams, process: int, stream: int, apart: bool) -> None:
    """Remember that a stream has work that nothing has waited for."""
    if streams.is_pending[stream]:
        return
    head = 2 * process + int(apart)
    streams.next_pending[stream] = streams.first_pending[head]
    streams.first_pending[head] = stream
    streams.is_pending[stream] = True


@inner
def unlist_pending(streams: Streams, last: Columns, head: int) -> None:
    """Empty a list: all work of its streams has been waited for, so that each one's `last` becomes -1."""
    stream = streams.first_pending[head]
    while stream >= 0:
        last[stream] = -1
        streams.is_pending[stream] = False
        stream = streams.next_pending[stream]
    streams.first_pending[head] = -1
