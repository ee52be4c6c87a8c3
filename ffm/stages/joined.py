"""What stages 3 and 4 say about each operation that stage 2 traced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Kind, load_catalogue
from ffm.evidence.matching import align, translate
from ffm.results.chosen_sites import are_chosen
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.analysis import Matching, UnmatchedSite
from ffm.results.documents.measured import Memory, SyncUse, Tracing
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.tables import FIRST_USES, GPU_TIME_TABLE, SYNCHRONIZATIONS, TRANSFERS

MOST_UNMATCHED = 20
"""Sites whose runs differ that are listed."""

_TRANSFERS = [function.index for function in load_catalogue().of_kind(Kind.TRANSFER)]


@dataclass(frozen=True, slots=True)
class Joined:
    """Columns of length n, one row for each traced operation."""

    reason: NDArray[np.uint8]
    keep: NDArray[np.int32]
    """Stack of the synchronization that must stay; -1 for none."""
    first_use: NDArray[np.int64]
    """Nanoseconds from the end of a synchronization to the first use of what it protects; -1 for none. Empty if none
    was seen.
    """
    repetition: NDArray[np.uint8]
    first: NDArray[np.int32]
    """Stack of the transfer that is repeated; -1 for none."""
    unmatched: NDArray[np.bool_]
    """Waits and uploads about which stage 3 knows nothing."""
    left_out: NDArray[np.bool_]
    """Waits and transfers that stage 3 was not to measure."""
    gpu: NDArray[np.int64]
    """How long the GPU worked, in nanoseconds, if stage 3 timed the same operation; otherwise -1."""
    arriving: NDArray[np.int64]
    """As in `DeviceWork`."""


def join(columns: Columns, tracing: Tracing, memory: Memory, sync_use: SyncUse, folder: ResultsFolder) -> Joined:
    """Find for each traced operation the same one in the runs of stages 3 and 4.

    Raises:
        DocumentError: A table of theirs is missing or damaged.
    """
    count = len(columns["start"])
    synchronizations = stored_table(memory, "synchronizations", SYNCHRONIZATIONS, folder.root)
    transfers = stored_table(memory, "transfers", TRANSFERS, folder.root)
    first_uses = stored_table(sync_use, "first_uses", FIRST_USES, folder.root)
    times = stored_table(memory, "gpu_times", GPU_TIME_TABLE, folder.root)
    tables = (synchronizations, transfers, first_uses, times)
    for table in tables:
        table["stack"] = translate(table["stack"], memory.stacks, tracing.stacks)
    traced = align(tables, columns)
    reason = np.zeros(count, np.uint8)
    keep = np.full(count, -1, np.int32)
    rows = traced.rows(synchronizations)
    known = rows >= 0
    reason[rows[known]] = synchronizations["reason"][known]
    keep[rows[known]] = translate(synchronizations["keep_stack"], memory.stacks, tracing.stacks)[known]
    used = traced.rows(first_uses)
    first_use = np.full(count if (used >= 0).any() else 0, -1, np.int64)
    first_use[used[used >= 0]] = first_uses["first_use"][used >= 0]
    repetition = np.zeros(count, np.uint8)
    first = np.full(count, -1, np.int32)
    sent = traced.rows(transfers)
    hashed = sent >= 0
    repetition[sent[hashed]] = transfers["kind"][hashed]
    first[sent[hashed]] = translate(transfers["first_stack"], memory.stacks, tracing.stacks)[hashed]
    timed = traced.rows(times)
    gpu, arriving = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    gpu[timed[timed >= 0]] = (times["nanoseconds"] - times["arriving"])[timed >= 0]
    arriving[timed[timed >= 0]] = times["arriving"][timed >= 0]
    waits = columns["waits"] > 0
    left_out = np.zeros(count, bool)
    if memory.chosen is not None:
        among = are_chosen(memory.chosen, [stack.key for stack in tracing.stacks])
        left_out = (waits | np.isin(columns["function"], _TRANSFERS)) & ~among[columns["stack"]]
    unmatched = waits & (reason == 0) & ~left_out
    return Joined(reason, keep, first_use, repetition, first, unmatched, left_out, gpu, arriving)


def matching(columns: Columns, joined: Joined) -> Matching:
    """Return how much of the waiting operations' time was matched, and the sites with most operations that were not."""
    time, unmatched = columns["duration"], joined.unmatched
    waiting = (columns["waits"] > 0) & ~joined.left_out
    operations = np.bincount(columns["stack"][unmatched])
    most = np.argsort(-operations, kind="stable")[:MOST_UNMATCHED].tolist()
    return Matching(
        matched_s=float(time[waiting & ~unmatched].sum()) / 1e9,
        unmatched_s=float(time[unmatched].sum()) / 1e9,
        unmatched=[UnmatchedSite(site=site, operations=int(operations[site])) for site in most if operations[site]],
    )
