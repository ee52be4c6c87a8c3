"""What stages 3 and 4 say about each operation that stage 2 traced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.evidence.calls import waiting
from ffm.evidence.matching.alignment import IDENTITY, Alignment, align, rows_of, translation
from ffm.evidence.matching.alignment_kernels import put, put_found, put_times
from ffm.evidence.matching.changing_threads import CALLED, chosen_by_chance, in_turn, rows_by_turn
from ffm.evidence.matching.task_stacks import numbered_tasks
from ffm.model.compiled import run
from ffm.model.grouping import looked_up
from ffm.model.necessity.reasons import is_required
from ffm.model.timeline import Timeline
from ffm.results.chosen_sites import are_chosen
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table
from ffm.results.documents.analysis import ChosenByChance, Matching, UnmatchedSite
from ffm.results.documents.measured import Memory, SyncUse, Tracing
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.tables import FIRST_USES, GPU_TIME_TABLE, SYNCHRONIZATIONS, TRANSFERS

MOST_UNMATCHED = 20
"""At most this many sites whose runs differ are listed."""

MOST_SHORT_NS = (1 << 31) - 1
"""If no work takes longer, 32 bits are enough for its times: long runs then need less memory."""

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
    """Waits and transfers that stage 3 was told not to measure."""
    gpu: NDArray[np.int32] | NDArray[np.int64]
    """How long the GPU worked, in nanoseconds, if stage 3 timed the same operation; otherwise -1."""
    arriving: NDArray[np.int32] | NDArray[np.int64]
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
    task_of_traced, task_of_stack = numbered_tasks((tracing.stacks, tracing.modules), (memory.stacks, memory.modules))
    called_by = synchronizations["stack"]
    traced_stack = translation(memory.stacks, tracing.stacks)
    for table in tables:
        table["stack"] = looked_up(traced_stack, table["stack"])
    traced = align(tables, columns)
    waits = waiting(columns)
    reason = np.zeros(count, np.uint8)
    keep = np.full(count, -1, np.int32)
    rows = rows_of_waits(traced, synchronizations, waits)
    if (task_of_stack >= 0).any():
        task = np.append(task_of_stack, -1)[called_by]
        rows = rows_of_tasks(synchronizations, rows, task, columns, task_of_traced[columns["stack"]], waits)
    run(put, len(rows), rows, synchronizations["reason"], reason)
    run(put_found, len(rows), rows, synchronizations["keep_stack"], traced_stack, keep)
    used = traced.rows(first_uses)
    lost = np.flatnonzero(used < 0)
    place = rows_of({name: first_uses[name][lost] for name in IDENTITY}, synchronizations)
    used[lost[place >= 0]] = rows[place[place >= 0]]
    first_use = np.full(count if (used >= 0).any() else 0, -1, np.int64)
    first_use[used[used >= 0]] = first_uses["first_use"][used >= 0]
    repetition = np.zeros(count, np.uint8)
    first = np.full(count, -1, np.int32)
    rows = traced.rows_by_turn(transfers, traced.rows(transfers))
    run(put, len(rows), rows, transfers["kind"], repetition)
    run(put_found, len(rows), rows, transfers["first_stack"], traced_stack, first)
    rows = traced.rows_by_turn(times, traced.rows(times))
    short = int(times["nanoseconds"].max(initial=0)) <= MOST_SHORT_NS
    gpu = np.full(count, -1, np.int32) if short else np.full(count, -1, np.int64)
    arriving = np.zeros_like(gpu)
    run(put_times, len(rows), rows, times["nanoseconds"], times["arriving"], gpu, arriving)
    left_out = np.zeros(count, bool)
    if memory.chosen is not None:
        among = are_chosen(memory.chosen, [stack.key for stack in tracing.stacks])
        left_out = (waits | np.isin(columns["function"], _TRANSFERS)) & ~among[columns["stack"]]
    unmatched = waits & (reason == 0) & ~left_out
    return Joined(reason, keep, first_use, repetition, first, unmatched, left_out, gpu, arriving)


def rows_of_waits(traced: Alignment, table: Columns, waits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the traced row for each row of stage 3's table of synchronizations, or -1; `waits` says which traced rows
    wait.

    Where stage 3 saw more waits of a stack than stage 2, none that was needed is left out: it takes the place of one
    that was not, the last one first. A loop that took more turns there may have needed only the last wait.
    """
    rows = traced.rows_by_turn(table, traced.rows(table), waits)
    lost = np.flatnonzero(rows < 0)
    needed = is_required(table["reason"]) if len(lost) else np.zeros(0, np.bool_)
    lost = lost[needed[lost]]
    if not len(lost):
        return rows
    stacks = np.unique(table["stack"][lost])
    spared = np.flatnonzero((rows >= 0) & ~needed & np.isin(table["stack"], stacks))[::-1]
    place = in_turn({name: table[name][lost] for name in CALLED}, {name: table[name][spared] for name in CALLED})
    taken = spared[place[place >= 0]]
    rows[lost[place >= 0]] = rows[taken]
    rows[taken] = -1
    return rows


def rows_of_tasks(
    table: Columns,
    rows: NDArray[np.int64],
    task: NDArray[np.int64],
    columns: Columns,
    traced_task: NDArray[np.int64],
    waits: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return `rows`, of stage 3's synchronizations, with those that are left of tasks which run under other stacks of
    their runtime in stage 2. Only those of tasks are taken whose waits, under all of these stacks, have one reason.

    `task` and `traced_task` are the task of each row of both tables, or -1.
    """
    verdict = table["reason"].astype(np.int64)
    tasks = int(max(task.max(initial=-1), traced_task.max(initial=-1))) + 1
    if not tasks:
        return rows
    least, most = np.full(tasks, 255), np.zeros(tasks, np.int64)
    np.minimum.at(least, task[task >= 0], verdict[task >= 0])
    np.maximum.at(most, task[task >= 0], verdict[task >= 0])
    alike = np.append(least == most, False)
    free = waits & alike[traced_task]
    free[rows[rows >= 0]] = False
    left, open_rows = np.flatnonzero((rows < 0) & alike[task]), np.flatnonzero(free)
    open_rows = open_rows[np.argsort(columns["start"][open_rows], kind="stable")]
    anywhere = {"thread": np.full(len(rows), -1)}
    found = rows_by_turn(
        {"process": table["process"], "stack": task, **anywhere},
        left,
        {"process": columns["process"], "stack": traced_task, "thread": columns["thread"]},
        open_rows,
    )
    rows = rows.copy()
    rows[left] = found
    return rows


def matching(columns: Columns, joined: Joined, timeline: Timeline) -> Matching:
    """Return how much of the waiting operations' time was matched, the sites with most operations that were not, and
    those where chance decides which operations are problems.
    """
    time, unmatched = columns["duration"], joined.unmatched
    waited = waiting(columns) & ~joined.left_out
    operations = np.bincount(columns["stack"][unmatched])
    most = np.argsort(-operations, kind="stable")[:MOST_UNMATCHED].tolist()
    chance = chosen_by_chance(columns, waited, timeline.problem != 0)
    return Matching(
        matched_s=float(time[waited & ~unmatched].sum()) / 1e9,
        unmatched_s=float(time[unmatched].sum()) / 1e9,
        unmatched=[UnmatchedSite(site=site, operations=int(operations[site])) for site in most if operations[site]],
        by_chance=[
            ChosenByChance(site=one.stack, operations=one.chosen, of=one.of, least=one.least, most=one.most)
            for one in chance
        ],
    )
