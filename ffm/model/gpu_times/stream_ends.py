"""When the work of many streams ends, and which of them have work that nothing has waited for, in the subset of Python
that Numba compiles: a tree of maxima for each device, and lists, so that no wait looks at all streams.

A device's tree has one leaf for each of its streams, and one for work of no known stream. A node is the later of the
two below it. Changing a leaf, and finding the one that ends last, take O(log streams).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import index, inlined, inner

Columns = NDArray[Any]


class Streams(NamedTuple):
    """The streams of all devices (`ffm.model.device.Gpus`). Columns with one entry for each stream, if not said
    otherwise.
    """

    leaf: Columns
    """The node of the stream in its device's tree, whose root is node 1."""
    tree: Columns
    """By device: where its tree begins. One entry more."""
    unnamed: Columns
    """By device: the node for work of no known stream."""
    first: Columns
    """By device: where its streams begin in `stream`."""
    stream: Columns
    """The streams, by device."""
    ends: Columns
    """The nodes of the trees: when the work ends."""
    ordered_ends: Columns
    """The same, but only work of streams that the legacy stream orders; 0 for the others."""
    first_pending: Columns
    """By device, twice: the first stream with work that nothing has waited for; of streams that the legacy stream
    orders, then of the others; -1 if there is none.
    """
    next_pending: Columns
    """The next such stream; -1 behind the last."""
    is_pending: Columns
    """Whether the stream is in one of these lists. It may have been waited for alone since."""


@inlined
def streams_of(gpu_of_stream: Columns, gpus: int) -> Streams:
    """Return the streams without any work, given the device of each."""
    number = len(gpu_of_stream)
    count = np.zeros(gpus, np.int64)
    leaf = np.empty(number, np.int64)
    for stream in range(number):
        leaf[stream] = count[gpu_of_stream[stream]]
        count[gpu_of_stream[stream]] += 1
    tree, first, unnamed = np.zeros((3, gpus + 1), np.int64)
    for gpu in range(gpus):
        leaves = 1
        while leaves < count[gpu] + 1:
            leaves *= 2
        unnamed[gpu] = leaves + count[gpu]
        tree[gpu + 1] = tree[gpu] + 2 * leaves
        first[gpu + 1] = first[gpu] + count[gpu]
    by_gpu = np.empty(number, np.int64)
    for stream in range(number):
        gpu = gpu_of_stream[stream]
        by_gpu[first[gpu] + leaf[stream]] = stream
        leaf[stream] += unnamed[gpu] - count[gpu]
    return Streams(
        leaf=leaf,
        tree=tree,
        unnamed=unnamed,
        first=first,
        stream=by_gpu,
        ends=np.zeros(tree[gpus], np.int64),
        ordered_ends=np.zeros(tree[gpus], np.int64),
        first_pending=np.full(2 * gpus, -1, np.int64),
        next_pending=np.full(number, -1, np.int64),
        is_pending=np.zeros(number, np.bool_),
    )


@inner
def latest(streams: Streams, gpu: int) -> int:
    """Return when all work of a device is done."""
    return last_on(streams, streams.ends, gpu)


@inner
def ordered(streams: Streams, gpu: int) -> int:
    """Return when all is done on a device that the legacy stream orders."""
    return last_on(streams, streams.ordered_ends, gpu)


@inner
def last_on(streams: Streams, ends: Columns, gpu: int) -> int:
    """Return when the work of a device is done, by one of the two trees."""
    return int(ends[index(streams.tree[gpu]) + 1])


@inner
def set_end(streams: Streams, gpu: int, stream: int, apart: bool, end: int) -> None:
    """Let the work of a stream, or of no known one (-1), be done then. The legacy stream does not order one `apart`."""
    tree, node = index(streams.tree[gpu]), index(streams.leaf[stream] if stream >= 0 else streams.unnamed[gpu])
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
def forget_unnamed(streams: Streams, gpu: int) -> None:
    """Forget the work of no known stream."""
    tree, node = streams.tree[gpu], streams.unnamed[gpu]
    if streams.ends[tree + node] > 0:
        set_node(streams.ends, tree, node, 0)
        set_node(streams.ordered_ends, tree, node, 0)


@inner
def stream_that_ends_last(streams: Streams, ends: Columns, gpu: int) -> int:
    """Return the stream of a device whose work ends last, by one of the two trees; not that of unnamed work."""
    tree, node = streams.tree[gpu], 1
    leaves = (streams.tree[gpu + 1] - tree) // 2
    while node < leaves:
        node = 2 * node if ends[tree + 2 * node] == ends[tree + node] else 2 * node + 1
    return int(streams.stream[streams.first[gpu] + node - leaves])


@inner
def list_pending(streams: Streams, gpu: int, stream: int, apart: bool) -> None:
    """Remember that a stream has work that nothing has waited for."""
    if streams.is_pending[stream]:
        return
    head = 2 * gpu + int(apart)
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
