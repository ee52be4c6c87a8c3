"""Which code requested the heap blocks to which a run downloads, so that later runs can put them on pages of their
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.names import RecordedModule
from ffm.instrument.recording.reader import Recording
from ffm.results.documents.measured import RequestedBlocks
from ffm.results.documents.stacks import Module

OWN_PAGES = 4 * 4096
"""Blocks of so many bytes and more have pages of their own in any case (`preload/pages.c`)."""

MOST_KINDS = 256
"""Kinds of blocks that are kept, the most frequent ones first: the library has room for as many
(`preload/result_blocks.c`).
"""


def requested_blocks(recordings: Sequence[Recording], modules: Sequence[Module]) -> list[RequestedBlocks]:
    """Return who requested the small blocks of pageable memory to which something was downloaded; `modules` are those
    of the document. Code outside of files is left out.
    """
    numbers = {module: number for number, module in enumerate(modules)}
    counts: Counter[RequestedBlocks] = Counter()
    for recording in recordings:
        for module, offset, size, blocks in _kinds(recording):
            number = numbers[Module(path=module.path, build_id=module.build_id)]
            counts[RequestedBlocks(module=number, offset=offset, bytes=size)] += blocks
    return [kind for kind, _count in counts.most_common(MOST_KINDS)]


def _kinds(recording: Recording) -> Iterator[tuple[RecordedModule, int, int, int]]:
    """Yield the module and offset that requested blocks, their bytes, and how many there are."""
    operations, uses, blocks = recording.operations, recording.host_uses, recording.host_blocks
    writes = operations["flags"] & constant("FFM_OPERATION_HOST_DESTINATION") != 0
    downloads = np.isin(uses["stack"], np.unique(operations["stack"][writes]))
    chosen = blocks[np.isin(blocks["number"], uses["number"][downloads]) & (blocks["bytes"] < OWN_PAGES)]
    kinds, counts = np.unique(chosen[["stack", "bytes"]], return_counts=True)
    for (stack, size), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        frames = recording.stacks.frames(stack)
        module, offset = recording.stacks.places[frames[0]] if frames else (None, 0)
        if module is not None:
            yield recording.modules[module], offset, size, count
