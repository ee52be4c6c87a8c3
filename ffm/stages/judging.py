"""What stage 3 concludes from a watched run: verdicts, repeated transfers, and what stage 4 watches again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind as DriverKind
from ffm.driver.vocabulary import Memory as DriverMemory
from ffm.evidence.answers import answer_uses
from ffm.evidence.clock_reads import clocks_of
from ffm.evidence.matching.alignment import rows_of
from ffm.evidence.memory.kernels import GivenMemory
from ffm.evidence.memory.recycled import recycled_uses
from ffm.evidence.memory.streams import streams_with_memory
from ffm.evidence.operations import are_in_order
from ffm.evidence.printing import showing_waits
from ffm.evidence.program_order import (
    access_rows,
    host_function_uses,
    joined_uses,
    operations_of,
    shared_uses,
    timing_uses,
    unseen_uses,
)
from ffm.evidence.recorded_uses import RecordedUses, recorded_accesses, recorded_uses, threads_of
from ffm.evidence.stretches import is_limited, stretches_of
from ffm.evidence.threads.handovers import handovers_of
from ffm.evidence.transfers.downloads import unread_downloads, watched_to_their_end
from ffm.evidence.transfers.program_transfers import judged_transfers
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.edges import judgeable
from ffm.model.necessity.program import Clocks, Operations, Role, Scope, Uses
from ffm.model.necessity.reasons import UNNECESSARY, Reason
from ffm.model.necessity.rules import Necessity, needed_synchronizations, uses_after_clocks, uses_after_questions
from ffm.model.transfers import REPEATED
from ffm.results.columnar.columns import Columns

TOUCHING = (Role.RESULT, Role.RESULT_UNSEEN, Role.SOURCE, Role.SOURCE_UNSEEN, Role.OWN_SOURCE)
"""Accesses that stage 4 can observe again."""

ENOUGH_EVENTS = 8
"""So many pairs of events with nothing between them must be seen before their median counts."""


def judged_processes(
    recordings: list[Recording], columns: Columns, unseen: NDArray[np.bool_], among: NDArray[np.bool_]
) -> list[dict[str, Columns]]:
    """Return the rows of each table for each process of a run. Of stacks, `unseen` are those whose uses nobody watched,
    and `among` are those that the run was limited to.
    """
    used = _used_by_others(recordings)
    return [
        _judged(process, recordings, columns, unseen, among, used_by_others=recording.process_id in used)
        for process, recording in enumerate(recordings)
    ]


def _judged(
    process: int,
    recordings: list[Recording],
    columns: Columns,
    unseen: NDArray[np.bool_],
    among: NDArray[np.bool_],
    *,
    used_by_others: bool,
) -> dict[str, Columns]:
    """Return the rows of each table for one process; `used_by_others` is whether other processes use its memory."""
    recording = recordings[process]
    part = _in_order_of_time(columns, process)
    accesses = recorded_accesses(recording, recordings)
    uses = recorded_uses(part, accesses, threads_of(recording))
    operations = operations_of(part)
    uses = uses.without(recycled_uses(part, operations, uses.model, uses.recorded["address"], recording))
    given = GivenMemory(recording.given, recording.kernels, recording.modules)
    unread = unread_downloads(part, recording, accesses) & (not used_by_others)
    streams = streams_with_memory(part, operations, recording.contexts, recording.joined, given, unread)
    operations = replace(operations, streams=streams)
    handovers = handovers_of(recording, recording.threads, int(operations.thread.max(initial=-1)) + 1)
    wait_ends = np.sort(operations.end[operations.scope != Scope.NONE], kind="stable")  # nearly sorted, so in a pass
    clocks = clocks_of(recording, wait_ends)
    joined = joined_uses(
        uses.model,
        timing_uses(part),
        answer_uses(part, operations, recording),
        host_function_uses(part),
        shared_uses(part),
        unseen_uses(part, unseen[part["stack"]]),
        *([unseen_uses(part)] if used_by_others else []),
    )
    necessity = needed_synchronizations(
        operations,
        joined,
        clocks,
        handovers,
        unwatched_memory=_may_write_unseen(part),
        shows=showing_waits(part, operations, recording, handovers),
    )
    transfers = _transfer_table(part, recording)
    necessity = _within_portion(necessity, operations, recording, part, transfers)
    followed, used = watched_to_their_end(part, recording, unread)
    return {
        "synchronizations": _of_chosen(_synchronization_table(part, necessity), "stack", among),
        "transfers": _of_chosen(transfers, "stack", among),
        "accesses": _of_chosen(
            _access_table(part, operations, uses, joined, necessity, clocks), "synchronization_stack", among
        ),
        "downloads": _of_chosen({"stack": part["stack"][followed], **used}, "stack", among),
        "gpu-times": _gpu_time_table(part, recording),
    }


def _in_order_of_time(columns: Columns, process: int) -> Columns:
    """Return the operations of a process by start; if that is how all of them are, the columns themselves."""
    mine = columns["process"] == process
    if mine.all() and are_in_order(columns["start"]):
        return columns
    rows = np.flatnonzero(mine)
    rows = rows[np.argsort(columns["start"][rows], kind="stable")]
    return {name: column[rows] for name, column in columns.items()}


def _used_by_others(recordings: list[Recording]) -> set[int]:
    """Return the processes whose memory another one uses or may use, as far as the other one is measured too."""
    other = constant("FFM_ACCESS_OTHER")
    used = set[int]()
    for recording in recordings:
        used.update(recording.accesses["address"][recording.accesses["kind"] == other].tolist())
    return used


def _of_chosen(table: Columns, stack: str, among: NDArray[np.bool_]) -> Columns:
    """Return the rows whose stack is among the chosen ones: what was not to be measured gets no verdict."""
    if among.all():
        return table
    rows = among[table[stack]]
    return {name: column[rows] for name, column in table.items()}


def _within_portion(
    necessity: Necessity, operations: Operations, recording: Recording, columns: Columns, transfers: Columns
) -> Necessity:
    """Return the verdicts without those that would not hold outside of the portion that was measured."""
    if not is_limited(recording) and not recording.finished:
        return necessity
    stays = np.ones(len(operations.start), np.bool_)
    stays[rows_of(transfers, columns)[np.isin(transfers["kind"], REPEATED)]] = False
    judged = judgeable(operations, stretches_of(recording), stays)
    judged &= necessity.reason != Reason.EVENT_NOT_RECORDED  # it may have been, outside of the portion
    unsure = np.isin(necessity.reason, UNNECESSARY) & ~judged
    return replace(
        necessity,
        reason=np.where(unsure, Reason.OUTSIDE_PORTION, necessity.reason).astype(np.uint8),
        keep=np.where(unsure, -1, necessity.keep),
    )


def _may_write_unseen(columns: Columns) -> bool:
    """Return whether a library makes private calls, whose launches are unseen, while kernels can access host memory."""
    reached = [
        function.index
        for function in load_catalogue().functions
        if (function.kind is DriverKind.ALLOCATION and function.memory is DriverMemory.MANAGED)
        or function.kind is DriverKind.MAPPING
    ]
    private = columns["function"] == constant("FFM_FUNCTION_PRIVATE")
    return bool(private.any() and np.isin(columns["function"], reached).any())


def _identity(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    """Return the columns that identify the same operation in another run; `stack` is the number in this document."""
    return {name: columns[name][rows] for name in ("process", "thread", "stack", "occurrence")}


def _synchronization_table(columns: Columns, necessity: Necessity) -> Columns:
    rows = np.flatnonzero(necessity.reason != 0)
    keep = necessity.keep[rows]
    return {
        **_identity(columns, rows),
        "reason": necessity.reason[rows],
        "keep_stack": np.where(keep >= 0, columns["stack"][np.maximum(keep, 0)], -1).astype(np.int32),
    }


def _transfer_table(columns: Columns, recording: Recording) -> Columns:
    """Return rows for all transfers whose bytes were hashed."""
    rows, found = judged_transfers(columns, recording)
    return {
        **_identity(columns, rows),
        "kind": found.kind,
        "first_stack": np.where(found.first >= 0, columns["stack"][np.maximum(found.first, 0)], -1).astype(np.int32),
    }


def _access_table(
    columns: Columns,
    operations: Operations,
    uses: RecordedUses,
    joined: Uses,
    necessity: Necessity,
    clocks: Clocks,
) -> Columns:
    """Return rows for the uses that a synchronization was credited with, which stage 4 watches again, but for those to
    which it cannot be moved, because the program takes the time before, or asks for what is over. `joined` are the
    recorded uses and all others.
    """
    use = necessity.credited[:, 0]
    movable = (use < len(uses.recorded)) & np.isin(joined.role[use], TOUCHING)
    credited = necessity.credited[movable & ~uses_after_questions(necessity.credited, joined)]
    use, relied = credited[~uses_after_clocks(credited, operations, uses.model, clocks)].T
    operation = uses.model.operation[use]
    return {
        **_identity(columns, operation),
        "function": columns["function"][operation],
        "synchronization_function": columns["function"][relied],
        "synchronization_stack": columns["stack"][relied],
        "synchronization_occurrence": columns["occurrence"][relied],
        "synchronization_thread": columns["thread"][relied],
    }


def _gpu_time_table(columns: Columns, recording: Recording) -> Columns:
    """Return rows for the operations whose GPU work was timed by events."""
    times = recording.gpu_times
    rows = access_rows(columns, times)
    took, arriving = (times[name][rows >= 0].astype(np.int64) for name in ("nanoseconds", "arriving"))
    left = np.maximum(took - _between_events(times), np.minimum(took, 1))
    return {**_identity(columns, rows[rows >= 0]), "nanoseconds": np.maximum(left, arriving), "arriving": arriving}


def _between_events(times: NDArray[np.void]) -> int:
    """Return how many nanoseconds a GPU takes from one event to the next, which is part of each time between two."""
    alone = times["nanoseconds"][times["operation"] == constant("FFM_EVENTS_ALONE")]
    return int(np.median(alone)) if len(alone) >= ENOUGH_EVENTS else 0
