"""Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Effect, load_catalogue
from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import Memory as DriverMemory
from ffm.errors import ProgramError
from ffm.evidence.answers import answer_uses
from ffm.evidence.chosen_sites import stacks_to_watch
from ffm.evidence.clock_reads import clocks_of
from ffm.evidence.matching.alignment import rows_of
from ffm.evidence.memory.kernels import GivenMemory
from ffm.evidence.memory.recycled import recycled_uses
from ffm.evidence.memory.streams import streams_with_memory
from ffm.evidence.operations import EVENTS, are_in_order, operation_columns
from ffm.evidence.printing import showing_waits
from ffm.evidence.program_order import (
    access_rows,
    access_uses,
    host_function_uses,
    joined_uses,
    operations_of,
    shared_uses,
    timing_uses,
    unseen_uses,
)
from ffm.evidence.stack_table import StackTable
from ffm.evidence.stretches import is_limited, stretches_of
from ffm.evidence.threads.handovers import handovers_of
from ffm.evidence.transfers.downloads import followed_downloads, unread_downloads
from ffm.evidence.transfers.program_transfers import judged_transfers
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.edges import judgeable
from ffm.model.grouping import numbered
from ffm.model.necessity.program import Clocks, Operations, Role, Scope, Uses
from ffm.model.necessity.reasons import Reason
from ffm.model.necessity.rules import Necessity, needed_synchronizations, uses_after_clocks
from ffm.model.transfers import REPEATED
from ffm.results.chosen_sites import are_chosen
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table, write_table
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import Baseline, Memory, Tracing
from ffm.results.folder.identity import read_latest
from ffm.results.memory.heap import kept_memory
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.plan_files import write_unread, write_watch_plan
from ffm.stages.portions import lasting, traced_portion
from ffm.stages.tracing import traced_functions

CONTENTS, WATCH, PLAN, GPU_TIMES, NO_ORDINARY, CHOSEN, NAMES = 1, 2, 4, 16, 32, 64, 256
"""Flags `FFM_MODE_*` of `ffm/instrument/native/collector/modes.h`."""

TOUCHING = (Role.RESULT, Role.RESULT_UNSEEN, Role.SOURCE, Role.SOURCE_UNSEEN, Role.OWN_SOURCE)
"""Accesses that stage 4 can observe again."""

ENOUGH_EVENTS = 8
"""So many pairs of events with nothing between them must be seen before their median counts."""


def run_memory(request: Request) -> Memory:
    """Run the program with host memory watched, transfers hashed and the GPU's work timed; write `memory.json` and its
    tables.

    Raises:
        DocumentError: Stage 1 is missing; or stage 2, if the stage is limited to chosen sites.
        ProgramError: The program could not be measured, or failed; or it never calls a chosen site.
    """
    baseline = read_latest(Baseline, request.folder, "baseline")
    plan, planned = (None, []) if request.chosen is None else _plan(request, request.chosen)
    trace = request.watch == "trace"
    measured = measure(
        "memory",
        request,
        on=baseline.runs,
        functions=watched_functions(baseline),
        mode=CONTENTS
        | WATCH
        | GPU_TIMES
        | NAMES
        | (0 if request.ordinary_memory else NO_ORDINARY)
        | (0 if plan is None else PLAN | CHOSEN),
        plan=plan,
        own_pages=not trace,
        trace=trace,
        portion=traced_portion(request.folder),
        until=lasting(request.folder, request.for_s),
        unread=write_unread([module.path for module in baseline.modules], request.folder.root),
    )
    return record_memory(measured, request, planned)


def watched_functions(baseline: Baseline) -> list[str]:
    """Return the functions to hook: those of stage 2, and those that end a context, or let it reach another device."""
    effects = (Effect.END_CONTEXT, Effect.RELEASE_CONTEXT, Effect.REACH_PEER)
    more = [function.name for effect in effects for function in load_catalogue().with_effect(effect)]
    return [*traced_functions(baseline.functions), *more]


def _plan(request: Request, chosen: list[str]) -> tuple[Path, list[str]]:
    """Write the plan for chosen sites; return its file, and the keys of its stacks."""
    tracing = read_latest(Tracing, request.folder, "tracing")
    columns = stored_table(tracing, "events", EVENTS, request.folder.root)
    among = are_chosen(chosen, [stack.key for stack in tracing.stacks])
    if not among[np.unique(columns["stack"])].any():
        raise ProgramError(
            f"{request.command[0]} calls none of the chosen sites in this run. Choose them from a quick run of the "
            "same program: `ffm run --quick`."
        )
    path = request.folder.root / "memory.plan"
    planned = [tracing.stacks[number].key for number in stacks_to_watch(columns, among)]
    write_watch_plan([bytes.fromhex(key) for key in planned], path)
    return path, planned


@kept_memory()
def record_memory(measured: Measurement, request: Request, planned: Sequence[str] = ()) -> Memory:
    """Judge and store a watched run; `planned` are the keys of what was watched if the run was limited to some sites.

    Raises:
        ProgramError: The program failed.
    """
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    among, unseen = np.ones(len(stacks.stacks), bool), np.zeros(len(stacks.stacks), bool)
    if request.chosen is not None:
        keys = [stack.key for stack in stacks.stacks]
        among = are_chosen(request.chosen, keys)
        unseen[stacks_to_watch(columns, among)] = True  # where this run calls what the traced one did not
        unseen &= ~are_chosen(planned, keys)
    parts = [
        _judged(process, measured.recordings, columns, unseen, among) for process in range(len(measured.recordings))
    ]
    for name in ("synchronizations", "transfers", "accesses", "downloads", "gpu-times"):
        _write(request, f"memory-{name}", [part[name] for part in parts])
    document = Memory(
        runs=measured.runs,
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        watch=request.watch,
        ordinary_memory=request.ordinary_memory,
        chosen=request.chosen,
        synchronizations=request.folder.table("memory-synchronizations").name,
        transfers=request.folder.table("memory-transfers").name,
        accesses=request.folder.table("memory-accesses").name,
        downloads=request.folder.table("memory-downloads").name,
        gpu_times=request.folder.table("memory-gpu-times").name,
    )
    document = write_document(document, request.folder.document("memory"), own=True)
    require_sound(measured.run, request)
    return document


def _in_order_of_time(columns: Columns, process: int) -> Columns:
    """Return the operations of a process by start; if that is how all of them are, the columns themselves."""
    mine = columns["process"] == process
    if mine.all() and are_in_order(columns["start"]):
        return columns
    rows = np.flatnonzero(mine)
    rows = rows[np.argsort(columns["start"][rows], kind="stable")]
    return {name: column[rows] for name, column in columns.items()}


def _judged(
    process: int,
    recordings: list[Recording],
    columns: Columns,
    unseen: NDArray[np.bool_],
    among: NDArray[np.bool_],
) -> dict[str, Columns]:
    """Return the rows of each table for one process of a run. Of stacks, `unseen` are those whose uses nobody watched,
    and `among` are those that the run was limited to.
    """
    recording = recordings[process]
    part = _in_order_of_time(columns, process)
    accesses = recorded_accesses(recording, recordings)
    used_by_others = recording.process_id in _used_by_others(recordings)
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
    necessity = needed_synchronizations(
        operations,
        joined_uses(
            uses.model,
            timing_uses(part),
            answer_uses(part, operations, recording),
            host_function_uses(part),
            shared_uses(part),
            unseen_uses(part, unseen[part["stack"]]),
            *([unseen_uses(part)] if used_by_others else []),
        ),
        clocks,
        handovers,
        unwatched_memory=_may_write_unseen(part),
        shows=showing_waits(part, operations, recording, handovers),
    )
    transfers = _transfer_table(part, recording)
    necessity = _within_portion(necessity, operations, recording, part, transfers)
    followed, used = followed_downloads(part, recording)
    return {
        "synchronizations": _of_chosen(_synchronization_table(part, necessity), "stack", among),
        "transfers": _of_chosen(transfers, "stack", among),
        "accesses": _of_chosen(
            _access_table(part, operations, uses, necessity, clocks), "synchronization_stack", among
        ),
        "downloads": _of_chosen({"stack": part["stack"][followed], **used}, "stack", among),
        "gpu-times": _gpu_time_table(part, recording),
    }


def _write(request: Request, name: str, parts: list[Columns]) -> None:
    whole = parts[0]
    if len(parts) > 1:
        whole = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    write_table(whole, request.folder.table(name))


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
    unsure = np.isin(necessity.reason, (Reason.NOTHING_RELIES, Reason.LATER_COVERS)) & ~judged
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


def _used_by_others(recordings: list[Recording]) -> set[int]:
    """Return the processes whose memory another one uses or may use, as far as the other one is measured too."""
    rows = [recording.accesses[recording.accesses["kind"] == constant("FFM_ACCESS_OTHER")] for recording in recordings]
    return set(np.concatenate(rows)["address"].tolist())


@dataclass(frozen=True, slots=True)
class RecordedUses:
    """Accesses to the memory of a process's operations: as the model reads them, and as recorded."""

    model: Uses
    recorded: NDArray[np.void]

    def without(self, which: NDArray[np.bool_]) -> RecordedUses:
        """Return the uses without some of them."""
        if not which.any():
            return self
        model = self.model
        kept = Uses(model.operation[~which], model.time[~which], model.role[~which], model.thread[~which])
        return RecordedUses(kept, self.recorded[~which])


def recorded_accesses(recording: Recording, recordings: list[Recording]) -> NDArray[np.void]:
    """Return the accesses to what a process's operations wrote, by it and by its forked children."""
    inherited = constant("FFM_ACCESS_INHERITED")
    found = [_where((recording.accesses["flags"] & inherited) == 0, recording.accesses)]
    family = {recording.process_id}
    for other in recordings:  # in order of start: parents come before their children
        if other.parent_id in family:
            family.add(other.process_id)
            found.append(other.accesses[(other.accesses["flags"] & inherited) != 0])
    return found[0] if len(found) == 1 else np.concatenate(found)


def _where(chosen: NDArray[np.bool_], rows: NDArray[Any]) -> NDArray[Any]:
    """Return the chosen rows; nothing is copied if these are all."""
    return rows if chosen.all() else rows[chosen]


def threads_of(recording: Recording) -> dict[int, int]:
    """Return the numbers of a process's threads by the kernel's; one whose number in the kernel was used again is the
    last one.
    """
    accesses = recording.accesses
    marks = accesses[accesses["kind"] >= constant("FFM_ACCESS_CLOCK")]
    marks = marks[(marks["flags"] & constant("FFM_ACCESS_EARLY")) == 0]
    seen = [
        (recording.operations["thread_id"], recording.operations["thread"]),
        (marks["thread_id"], marks["operation_thread"]),
    ]
    pairs = set[tuple[int, int]]()
    for kernel, own in seen:
        _, first = numbered(kernel, own)
        pairs |= set(zip(kernel[first].tolist(), own[first].tolist(), strict=True))
    return dict(sorted(pairs))


def recorded_uses(columns: Columns, recorded: NDArray[np.void], threads: Mapping[int, int]) -> RecordedUses:
    """Convert recorded accesses to uses of a process's operations, without clock reads and handovers."""
    recorded = _where(recorded["kind"] < constant("FFM_ACCESS_CLOCK"), recorded)
    rows = access_rows(columns, recorded)
    usable = np.append(columns["result"] == 0, False)
    known = usable[rows]
    recorded, rows = _where(known, recorded), _where(known, rows)
    return RecordedUses(access_uses(columns, recorded, rows, threads), recorded)


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
    columns: Columns, operations: Operations, uses: RecordedUses, necessity: Necessity, clocks: Clocks
) -> Columns:
    """Return rows for the uses that a synchronization was credited with, which stage 4 watches again, but for those to
    which it cannot be moved, because the program takes the time before.
    """
    use = necessity.credited[:, 0]
    credited = necessity.credited[(use < len(uses.recorded)) & np.isin(_roles(uses, use), TOUCHING)]
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


def _roles(uses: RecordedUses, use: NDArray[np.int64]) -> NDArray[np.uint8]:
    own = use < len(uses.recorded)
    roles = np.full(len(use), Role.TIMING, np.uint8)
    roles[own] = uses.model.role[use[own]]
    return roles
