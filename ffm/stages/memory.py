"""Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import Effect, load_catalogue
from ffm.driver.catalogue import Kind as DriverKind
from ffm.driver.catalogue import Memory as DriverMemory
from ffm.evidence.clock_reads import clocks_of
from ffm.evidence.downloads import followed_downloads
from ffm.evidence.handovers import handovers_of
from ffm.evidence.operations import FUNCTION, operation_columns
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
from ffm.evidence.program_transfers import judged_transfers
from ffm.evidence.stack_table import StackTable
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.necessity import Necessity, Reason, Role, Scope, Uses, needed_synchronizations
from ffm.model.transfers import Repetition
from ffm.results.columns import LONGEST, Column, Columns, Table, duration, identity, number_of, size, time
from ffm.results.documents import Baseline, Memory, write_document
from ffm.results.identity import read_latest
from ffm.results.tables import write_table
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.tracing import traced_functions

CONTENTS, WATCH, PLAN, GPU_TIMES, NO_ORDINARY = 1, 2, 4, 16, 32
"""Flags `FFM_MODE_*` of `ffm/instrument/native/collector/collector.h`."""

TOUCHING = (Role.RESULT, Role.SOURCE, Role.OWN_SOURCE)
"""Accesses that stage 4 can observe again."""


SYNCHRONIZATIONS = Table(
    {
        **identity(),
        "reason": Column(np.uint8, among=lambda: list(Reason)),
        "keep_stack": number_of("stacks", none=True),
        "first_use": Column(np.int64, least=-1, most=LONGEST),
    }
)

TRANSFERS = Table(
    {
        **identity(),
        "kind": Column(np.uint8, among=lambda: list(Repetition)),
        "first_stack": number_of("stacks", none=True),
        "share": Column(np.float64, least=0, most=1),
        "bytes": size(),
    }
)

ACCESSES = Table(
    {
        **identity(),
        "function": FUNCTION,
        "synchronization_function": FUNCTION,
        **{f"synchronization_{name}": column for name, column in identity().items() if name != "process"},
        "address": Column(np.uint64),
        "time": time(),
    }
)

GPU_TIME_TABLE = Table({**identity(), "nanoseconds": duration()})


def run_memory(request: Request) -> Memory:
    """Run the program with host memory watched, transfers hashed and the GPU's work timed; write `memory.json` and its
    tables.

    Raises:
        DocumentError: Stage 1 is missing.
        ProgramError: The program could not be measured, or failed.
    """
    baseline = read_latest(Baseline, request.folder, "baseline")
    trace = request.watch == "trace"
    ends = [function.name for function in load_catalogue().with_effect(Effect.END_CONTEXT)]  # and of its events
    measured = measure(
        "memory",
        request,
        on=baseline.runs,
        functions=[*traced_functions(baseline.functions), *ends],
        mode=CONTENTS | WATCH | GPU_TIMES | (0 if request.ordinary_memory else NO_ORDINARY),
        own_pages=not trace,
        trace=trace,
    )
    return record_memory(measured, request)


def record_memory(measured: Measurement, request: Request) -> Memory:
    """Judge and store a watched run.

    Raises:
        ProgramError: The program failed.
    """
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    synchronizations: list[Columns] = []
    transfers: list[Columns] = []
    accesses: list[Columns] = []
    downloads: list[Columns] = []
    gpu_times: list[Columns] = []
    for process, recording in enumerate(measured.recordings):
        rows = np.flatnonzero(columns["process"] == process)
        rows = rows[np.argsort(columns["start"][rows], kind="stable")]
        part = {name: column[rows] for name, column in columns.items()}
        uses = recorded_uses(part, recorded_accesses(recording, measured.recordings), threads_of(recording))
        operations = operations_of(part)
        necessity = needed_synchronizations(
            operations,
            joined_uses(
                uses.model,
                timing_uses(part),
                host_function_uses(part),
                shared_uses(part),
                *([unseen_uses(part)] if recording.process_id in _used_by_others(measured.recordings) else []),
            ),
            clocks_of(recording, np.sort(operations.end[operations.scope != Scope.NONE])),
            handovers_of(recording, recording.threads),
            unwatched_memory=_may_write_unseen(part),
        )
        synchronizations.append(_synchronization_table(part, necessity))
        transfers.append(_transfer_table(part, recording))
        accesses.append(_access_table(part, uses, necessity))
        followed, used = followed_downloads(part, recording)
        downloads.append({**_identity(part, followed), **used})
        gpu_times.append(_gpu_time_table(part, recording))
    _write(request, "memory-synchronizations", synchronizations)
    _write(request, "memory-transfers", transfers)
    _write(request, "memory-accesses", accesses)
    _write(request, "memory-downloads", downloads)
    _write(request, "memory-gpu-times", gpu_times)
    document = Memory(
        runs=measured.runs,
        run=measured.run,
        modules=stacks.modules,
        stacks=stacks.stacks,
        watch=request.watch,
        ordinary_memory=request.ordinary_memory,
        synchronizations=request.folder.table("memory-synchronizations").name,
        transfers=request.folder.table("memory-transfers").name,
        accesses=request.folder.table("memory-accesses").name,
        downloads=request.folder.table("memory-downloads").name,
        gpu_times=request.folder.table("memory-gpu-times").name,
    )
    document = write_document(document, request.folder.document("memory"), own=True)
    require_sound(measured.run, request)
    return document


def _write(request: Request, name: str, parts: list[Columns]) -> None:
    write_table(
        {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}, request.folder.table(name)
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


def recorded_accesses(recording: Recording, recordings: list[Recording]) -> NDArray[np.void]:
    """Return the accesses to what a process's operations wrote, by it and by its forked children."""
    inherited = constant("FFM_ACCESS_INHERITED")
    found = [recording.accesses[(recording.accesses["flags"] & inherited) == 0]]
    family = {recording.process_id}
    for other in recordings:  # in order of start: parents come before their children
        if other.parent_id in family:
            family.add(other.process_id)
            found.append(other.accesses[(other.accesses["flags"] & inherited) != 0])
    return np.concatenate(found)


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
    pairs = np.unique(np.concatenate([kernel.astype(np.int64) << 32 | own for kernel, own in seen]))
    return dict(zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True))


def recorded_uses(columns: Columns, recorded: NDArray[np.void], threads: Mapping[int, int]) -> RecordedUses:
    """Convert recorded accesses to uses of a process's operations, without clock reads and handovers."""
    recorded = recorded[recorded["kind"] < constant("FFM_ACCESS_CLOCK")]
    rows = access_rows(columns, recorded)
    usable = np.append(columns["result"] == 0, False)
    known = usable[rows]
    recorded, rows = recorded[known], rows[known]
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
        "first_use": necessity.first_use[rows],
    }


def _transfer_table(columns: Columns, recording: Recording) -> Columns:
    """Return rows for all transfers whose bytes were hashed."""
    rows, found = judged_transfers(columns, recording)
    return {
        **_identity(columns, rows),
        "kind": found.kind,
        "first_stack": np.where(found.first >= 0, columns["stack"][np.maximum(found.first, 0)], -1).astype(np.int32),
        "share": found.share,
        "bytes": columns["bytes"][rows],
    }


def _access_table(columns: Columns, uses: RecordedUses, necessity: Necessity) -> Columns:
    """Return rows for the uses that a synchronization was credited with, which stage 4 watches again."""
    use, relied = necessity.credited[:, 0], necessity.credited[:, 1]
    seen = (use < len(uses.recorded)) & np.isin(_roles(uses, use), TOUCHING)
    use, relied = use[seen], relied[seen]
    operation = uses.model.operation[use]
    return {
        **_identity(columns, operation),
        "function": columns["function"][operation],
        "synchronization_function": columns["function"][relied],
        "synchronization_stack": columns["stack"][relied],
        "synchronization_occurrence": columns["occurrence"][relied],
        "synchronization_thread": columns["thread"][relied],
        "address": uses.recorded["address"][use],
        "time": uses.model.time[use],
    }


def _gpu_time_table(columns: Columns, recording: Recording) -> Columns:
    """Return rows for the operations whose GPU work was timed by events."""
    times = recording.gpu_times
    rows = access_rows(columns, times)
    return {**_identity(columns, rows[rows >= 0]), "nanoseconds": times["nanoseconds"][rows >= 0].astype(np.int64)}


def _roles(uses: RecordedUses, use: NDArray[np.int64]) -> NDArray[np.uint8]:
    own = use < len(uses.recorded)
    roles = np.full(len(use), Role.TIMING, np.uint8)
    roles[own] = uses.model.role[use[own]]
    return roles
